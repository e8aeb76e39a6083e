"""Time that passes only when nobody has anything to do, and what happens at a time without anybody waiting for it.

trio asks its clock how long to sleep when no task can run.  Everything that could wake one is simulated, so nothing can
come but the next deadline or the next thing on the agenda: it is that time at once, and nobody sleeps.
"""

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from itertools import count
from math import inf

import trio
from trio._core import _run

BEGINNING = 1000.0
"""Seconds.  Not nothing: there may be code that takes a time of 0 for none."""


IDLE_SECONDS, IDLE_MAX = 0.001, 1000
"""Real ones."""


def waiting() -> Iterator[str]:
    """Every task, and where it is."""
    tasks = [trio.lowlevel.current_root_task()]
    while tasks:
        task = tasks.pop()
        if task is None:
            continue
        frames = [frame.f_code.co_qualname for frame, _ in task.iter_await_frames()]
        yield f"{task.name}: {' > '.join(frames[-4:])}"
        tasks += [child for nursery in task.child_nurseries for child in nursery.child_tasks]


class NothingMore(Exception):
    """Everybody waits for ever: nothing would ever happen again."""


class Agenda(trio.abc.Clock):
    def __init__(self) -> None:
        self.now = BEGINNING
        self.moves = 0
        """How often it was another time."""
        self.before_time_moves: Callable[[], None] | None = None
        """Called when everybody has done what there was to do at this time."""
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._idle = 0

    # -- for trio ------------------------------------------------------------------------------

    def start_clock(self) -> None:
        pass

    def current_time(self) -> float:
        return self.now

    def deadline_to_sleep_time(self, deadline: float) -> float:
        if deadline <= self.now:
            return 0
        if self.before_time_moves is not None:
            self.before_time_moves()
            if self._stirred():
                return 0
        heap = self._heap
        when = min(deadline, heap[0][0]) if heap else deadline
        if when == inf:
            self._idle += 1
            if self._idle > IDLE_MAX:
                raise NothingMore("; ".join(waiting()))
            return IDLE_SECONDS  # in the end trio waits for a socket of its own
        self._idle = 0
        self.now = when
        self.moves += 1
        while heap and heap[0][0] <= when:
            heappop(heap)[2]()
        return 0

    def _stirred(self) -> bool:
        """Whether somebody can run now, for what has been seen."""
        return bool(_run.GLOBAL_RUN_CONTEXT.runner.runq)

    # -- for what is simulated -----------------------------------------------------------------

    def at(self, when: float, do: Callable[[], None]) -> None:
        """Do it then.  No task does it, so it must not fail, and can only wake others."""
        heappush(self._heap, (max(when, self.now), next(self._order), do))

    def after(self, seconds: float, do: Callable[[], None]) -> None:
        self.at(self.now + seconds, do)
