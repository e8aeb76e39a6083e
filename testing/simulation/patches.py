"""Everything that is changed in other people's modules while a simulation runs, and why.  There is nothing of the kind
anywhere else but in `disks.py`, which stands behind storage's one door, and `mutations.py`, which breaks the product.

- trio's scheduler: of tasks that could run at once, which comes first is drawn from the seed.  trio has this for
  hypothesis, behind a flag.
- `Runner.reschedule`: tasks of a frozen process are put aside until it goes on.  There is no other way to stop somebody
  who does not wait for us; a broker's threads and tasks do not know that they were stopped.
- `trio.to_thread.run_sync`: work in threads is done on the loop, after a while and before another, as a thread's could
  come at any moment.  A seam for it would be a second way to write every `await` that the product has.
- `trio.from_thread.check_cancelled`: asked by work in such a thread, which nobody cancels here.
- `monotonic` in `network/connection.py` and `requests/turns.py`: how long a piece of work has taken is no property of
  the seed.  It takes no time, or by chance so long that others have to have a turn.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import trio
from trio._core import _run

from trilogue.broker.network import connection
from trilogue.broker.requests import turns
from trilogue.testing.simulation.lives import LIFE, Life

THREAD_SECONDS = 0.002
LONG_PIECES = 0.01
"""So often a piece of work has taken long."""


class Frozen:
    """Tasks that could run if their process were not stopped."""

    def __init__(self) -> None:
        self._tasks: dict[Life, list[trio.lowlevel.Task]] = {}
        self._reschedule: Callable[..., None] = _run.Runner.reschedule

    def reschedule(self, runner: Any, task: trio.lowlevel.Task, *value: Any) -> None:
        self._reschedule(runner, task, *value)
        if self._tasks:
            life = task.context.get(LIFE)
            if life in self._tasks:
                runner.runq.remove(task)
                self._tasks[life].append(task)

    def freeze(self, life: Life) -> None:
        life.frozen = True
        self._tasks[life] = []

    def thaw(self, life: Life) -> None:
        life.frozen = False
        _run.GLOBAL_RUN_CONTEXT.runner.runq.extend(self._tasks.pop(life, []))


@contextmanager
def patched(seed: str) -> Iterator[Frozen]:
    chance, frozen = random.Random(seed), Frozen()

    async def run_inline(do: Callable[..., Any], *given: Any, **_: Any) -> Any:
        await trio.sleep(chance.random() * THREAD_SECONDS)
        try:
            return do(*given)
        finally:
            await trio.sleep(chance.random() * THREAD_SECONDS)

    ahead = 0.0

    def monotonic() -> float:
        nonlocal ahead
        if chance.random() < LONG_PIECES:
            ahead += 0.01
        return trio.current_time() + ahead

    def reschedule(runner: Any, task: trio.lowlevel.Task, *value: Any) -> None:
        frozen.reschedule(runner, task, *value)

    places: list[tuple[Any, str, Any]] = [
        (_run, "_ALLOW_DETERMINISTIC_SCHEDULING", True),
        (_run.Runner, "reschedule", reschedule),
        (trio.to_thread, "run_sync", run_inline),
        (trio.from_thread, "check_cancelled", lambda: None),
        (connection, "monotonic", monotonic),
        (turns, "monotonic", monotonic),
    ]
    before = [(where, name, getattr(where, name)) for where, name, _ in places]
    _run._r.seed(seed)
    for where, name, new in places:
        setattr(where, name, new)
    try:
        yield frozen
    finally:
        for where, name, old in before:
            setattr(where, name, old)
