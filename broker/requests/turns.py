"""The loop has a budget: long work is done in pieces, and between two of them everybody else has a turn.

Whose work it is does not matter: of all that is long, one piece is done and then the sockets are looked at again.  So a
client waits for one piece of others' work, however many they are and however much they ask for.
"""

from collections.abc import Callable, Iterable, Iterator
from time import monotonic
from typing import Any, TypeVar

import trio

from trilogue.broker.requests.later import Later, settled
from trilogue.storage.validation import QUICK_BYTES

PIECE_SECONDS = 0.002
"""From then on work is long.  A turn of all the others costs a tenth of this."""

THREADS = 2
"""For work that cannot be done in pieces.  Each of them takes the interpreter from the loop for half a millisecond at a
time, so that more would be felt; with one, a client with much to do would keep all the others waiting."""

PIECE_BYTES = 1 << 20
"""And so are answers, which wait in memory until they are sent."""

T = TypeVar("T")
S = TypeVar("S")
R = TypeVar("R")


class Turns:
    """Handlers do what they do to each of many things with `each`; those that are coroutines anyway have a `pace`."""

    def __init__(self) -> None:
        self._line = trio.Lock()
        self._threads = trio.CapacityLimiter(THREADS)
        self.room = bytearray(QUICK_BYTES)
        """Where the loop inflates what it looks at.  The next that it looks at goes there, too."""

    async def next(self) -> None:
        """Wait until everybody else has had a turn, and whoever waits here longer."""
        async with self._line:
            await trio.lowlevel.checkpoint()

    async def in_thread(self, do: Callable[..., R], *given: Any) -> R:
        """What `do` answers, which touches nothing that the loop owns."""
        return await trio.to_thread.run_sync(do, *given, limiter=self._threads)

    def pace(self) -> "Pace":
        return Pace(self)

    def each(self, items: Iterable[T], do: Callable[[T], S], shape: Callable[[list[S]], R | Later[R]]) -> R | Later[R]:
        """What `shape` makes of what is done to each: now, or in pieces if that takes long."""
        left = iter(items)
        done: list[S] = []
        return shape(done) if _piece(left, do, done) else self._rest(left, do, done, shape)

    async def _rest(
        self, left: Iterator[T], do: Callable[[T], S], done: list[S], shape: Callable[[list[S]], R | Later[R]]
    ) -> R:
        await self.next()
        while not _piece(left, do, done):
            await self.next()
        await self.next()
        return await settled(shape(done))


class Pace:
    """Of one piece of work after the other."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._until = monotonic() + PIECE_SECONDS

    async def step(self) -> None:
        """Something is done: if that was a piece by now, others have a turn."""
        if monotonic() > self._until:
            await self._turns.next()
            self._until = monotonic() + PIECE_SECONDS


def _piece(left: Iterator[T], do: Callable[[T], S], done: list[S]) -> bool:
    """Go on until it has taken long; whether that was everything."""
    until = monotonic() + PIECE_SECONDS
    for item in left:
        done.append(do(item))
        if monotonic() > until:
            return False
    return True
