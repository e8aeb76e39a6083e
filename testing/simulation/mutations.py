"""Ways to break the product, in this process only: what the simulation has to find, or it is of no use.

Each is a law of replication that is left out (part by part of what Kafka's own history has got wrong), made by putting
another function in the place of one.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch


class Mutation(NamedTuple):
    breaks: str
    """What is not so any more."""
    parts: Callable[[], list[tuple[Any, str, Any]]]
    """Where, which name, and what stands there instead."""


MUTATIONS: dict[str, Mutation] = {}


def mutation(name: str, breaks: str) -> Callable[[Callable[[], list[tuple[Any, str, Any]]]], None]:
    def note(parts: Callable[[], list[tuple[Any, str, Any]]]) -> None:
        MUTATIONS[name] = Mutation(breaks, parts)

    return note


@contextmanager
def mutated(name: str | None) -> Iterator[None]:
    with ExitStack() as stack:
        for where, what, instead in MUTATIONS[name].parts() if name is not None else ():
            stack.enter_context(patch.object(where, what, instead))
        yield
