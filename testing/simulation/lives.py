"""Lives of processes: who is running now, and whether it is still alive.

A process that is killed does nothing more.  Its tasks are unwound, as trio's have to be, and while that goes on every
door to what outlives it is closed: disks, the network, ZooKeeper.  Every task of a life knows whose it is by a context
variable, which it has from whoever has started it.
"""

from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from typing import Any


class Life:
    """One run of one process on one host."""

    def __init__(self, host: str, number: int) -> None:
        self.host, self.number = host, number
        self.alive = True
        self.frozen = False
        """It is stopped, as by SIGSTOP: its tasks do not run, and it does not know."""
        self.ahead_ms = 0
        self._context: Context = copy_context()
        self._context.run(LIFE.set, self)

    def run(self, call: Callable[..., Any], *args: Any) -> Any:
        """As if one of its tasks did it."""
        return self._context.run(call, *args)


LIFE: ContextVar[Life | None] = ContextVar("LIFE", default=None)
