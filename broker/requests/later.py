"""Answers that are there now, or come later.

Most requests are answered at once, and a task or a future for each would cost more than the answer.  So whoever may
have to wait returns its answer, or a coroutine that will: `T | Later[T]`.  What waits for other requests, and so is
waited for again and again, is `Parked`: no task waits for it, and whoever makes it happen makes the answer, too.
"""

from collections.abc import Callable, Coroutine, Iterable
from math import inf
from types import CoroutineType
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import trio

T = TypeVar("T")
S = TypeVar("S")
T_co = TypeVar("T_co", covariant=True)

Later: TypeAlias = Coroutine[Any, Any, T]
"""An answer that has to be waited for.  Whoever is given one awaits it once, or closes it."""


def nobody() -> None:
    """Is woken."""


class Parked(Generic[T_co]):
    """An answer that waits for something to happen until its deadline.

    Whoever serves the connection sets `wake`, which is called when `take` may have something to answer.  Afterwards, or
    when nobody wants the answer any more, it is closed.
    """

    __slots__ = ("deadline", "wake")

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        """By trio's clock."""
        self.wake: Callable[[], None] = nobody

    def take(self, now: float) -> T_co | Later[T_co] | None:
        """The answer, if it is time for it; None if it has to wait on."""
        raise NotImplementedError

    def hurry(self) -> None:
        """Its time is over."""
        self.deadline = -inf
        self.wake()

    def close(self) -> None:
        """Nobody is to be woken any more."""
        raise NotImplementedError


class Unconfirmed(NamedTuple, Generic[T_co]):
    """What was asked for is done, and `later` only waits until it is safe: the next request of the same API may be
    handled meanwhile."""

    later: Later[T_co] | Parked[T_co]


async def settled(answer: T | Later[T] | Parked[T] | Unconfirmed[T]) -> T:
    """The answer itself, waited for if need be."""
    if isinstance(answer, Unconfirmed):
        answer = answer.later
    if isinstance(answer, Parked):
        return await waited(answer)
    return await answer if type(answer) is CoroutineType else answer  # type: ignore[return-value]


async def waited(parked: Parked[T]) -> T:
    """The answer, by one who has a task to wait in."""
    try:
        while True:
            stirred = trio.Event()
            parked.wake = stirred.set
            answer = parked.take(trio.current_time())
            if answer is not None:
                return await settled(answer)
            with trio.move_on_at(parked.deadline):
                await stirred.wait()
    finally:
        parked.close()


def then(answer: T | Later[T], shape: Callable[[T], S]) -> S | Later[S]:
    """What `shape` makes of an answer, now or when it is there."""
    return _then(answer, shape) if type(answer) is CoroutineType else shape(answer)  # type: ignore[arg-type]


async def _then(answer: Later[T], shape: Callable[[T], S]) -> S:
    return shape(await answer)


def together(answers: Iterable[T | Later[T]], shape: Callable[[list[T]], S]) -> S | Later[S]:
    """What `shape` makes of all the answers, now or when they are there."""
    found = list(answers)
    if any(type(each) is CoroutineType for each in found):
        return _together(found, shape)
    return shape(found)  # type: ignore[arg-type]


async def _together(answers: list[T | Later[T]], shape: Callable[[list[T]], S]) -> S:
    return shape([await settled(each) for each in answers])
