"""Guests whose answers are parked: who has been woken, and until when the others may wait.

No task waits for any of them.  Whoever handles the request that they wait for wakes them; they are served at the end of
the same turn of the gate, or by a task if somebody else has woken them: a coordinator, or time.
"""

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Generic, Protocol, TypeVar

import trio


class Parks(Protocol):
    """What is asked of a guest."""

    woken: bool
    """It is about to be served."""
    looked_at: float
    """When it is looked at by itself; never if that is infinite."""

    @property
    def deadline(self) -> float:
        """When it has to be; infinite if nothing is parked."""


G = TypeVar("G", bound=Parks)


class Parking(Generic[G]):
    """`serve` is for those who were woken while the gate does nothing."""

    def __init__(self, serve: Callable[[], None]) -> None:
        self._serve = serve
        self.open = False
        """The gate serves, and will come to those who are woken now by itself."""
        self.woken: deque[G] = deque()
        """Those who are to be served."""
        self._deadlines: list[tuple[float, int, G]] = []
        """A heap.  A guest may be in it more than once; `looked_at` says which is true."""
        self._order = count()
        self._next = inf
        """When the task wakes up."""
        self._stirred = trio.Event()

    def wake(self, guest: G) -> None:
        if not guest.woken:
            guest.woken = True
            self.woken.append(guest)
            if not self.open:
                self._stirred.set()

    def next_woken(self) -> G:
        guest = self.woken.popleft()
        guest.woken = False
        return guest

    def go_on(self) -> None:
        """Others have a turn before those who are left."""
        self._stirred.set()

    def expect(self, guest: G) -> None:
        """It waits; it is woken when its time is over."""
        deadline = guest.deadline
        if deadline < guest.looked_at:
            guest.looked_at = deadline
            heappush(self._deadlines, (deadline, next(self._order), guest))
            if deadline < self._next:
                self._next = deadline
                self._stirred.set()

    async def run(self) -> None:
        """Never ends."""
        while True:
            with trio.move_on_at(self._next):
                await self._stirred.wait()
            self._stirred = trio.Event()
            self._wake_due(trio.current_time())
            self._next = self._deadlines[0][0] if self._deadlines else inf
            if self.woken:
                self._serve()

    def _wake_due(self, now: float) -> None:
        while self._deadlines and self._deadlines[0][0] <= now:
            deadline, _, guest = heappop(self._deadlines)
            if guest.looked_at != deadline:
                continue  # it was to be looked at earlier, and was
            guest.looked_at = inf
            if guest.deadline <= now:
                self.wake(guest)
            else:
                self.expect(guest)
