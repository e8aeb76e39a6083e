"""Answers that are there now, or come later.

Most requests are answered at once, and a task or a future for each would cost more than the answer.  So whoever may
have to wait returns its answer, or a coroutine that will: `T | Later[T]`.
"""

from collections.abc import Callable, Coroutine, Iterable
from types import CoroutineType
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")
S = TypeVar("S")
T_co = TypeVar("T_co", covariant=True)

Later: TypeAlias = Coroutine[Any, Any, T]
"""An answer that has to be waited for.  Whoever is given one awaits it once, or closes it."""


class Unconfirmed(NamedTuple, Generic[T_co]):
    """What was asked for is done, and `later` only waits until it is safe: the next request of the same API may be
    handled meanwhile."""

    later: Later[T_co]


async def settled(answer: T | Later[T] | Unconfirmed[T]) -> T:
    """The answer itself, waited for if need be."""
    if type(answer) is Unconfirmed:
        return await answer.later  # type: ignore[no-any-return]
    return await answer if type(answer) is CoroutineType else answer  # type: ignore[return-value]


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
