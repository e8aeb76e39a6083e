"""What a machine may ask for, and what it is told.

A machine is pure: it is told what happened and when, and returns what to do, in order.  `shard.py` does it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeVar

from trilogue.wire.schema import Key, Value

P = ParamSpec("P")
E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer the request that was given this ticket.  After a `Store` it goes out when that is safe, not before."""

    ticket: Any
    response: object


@dataclass(frozen=True, slots=True)
class Put:
    """One record of a coordinator's log: what it is about, and what it says; None removes it."""

    key: Key
    value: Value | None
    version: int = 0
    """Of the value."""


@dataclass(frozen=True, slots=True)
class Store:
    """Append these records, together, and take them over by `replay`.

    With a producer they belong to its transaction: they are stored now, and count when it is committed.
    """

    records: tuple[Put, ...]
    producer_id: int = -1
    producer_epoch: int = -1


@dataclass(frozen=True, slots=True)
class Send:
    """Something for a task that talks to others, such as markers of a transaction."""

    message: object


Effect = Reply | Store | Send


class Machine(Protocol):
    """What the runner needs of one."""

    @property
    def deadline(self) -> float:
        """When `tick` next matters; infinity if never."""
        ...

    def tick(self, now: float) -> list[Effect]:
        """What follows from time having passed."""
        ...

    def replay(self, put: Put, offset: int, producer_id: int) -> None:
        """A record is in the log: the only way that stored state changes.  `producer_id` is -1 outside transactions."""
        ...

    def replay_end(self, producer_id: int, committed: bool) -> None:
        """A transaction of that producer has ended."""
        ...

    def loaded(self, now: float) -> list[Effect]:
        """Everything has been replayed; from here on requests come."""
        ...


def effects(method: Callable[P, Iterator[E]]) -> Callable[P, list[E]]:
    """Lets a decision be told with `yield`, yet be made whole when it is called."""

    @wraps(method)
    def whole(*args: P.args, **kwargs: P.kwargs) -> list[E]:
        return list(method(*args, **kwargs))

    return whole
