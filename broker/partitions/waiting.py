"""Whoever waits for news of partitions, and is woken when there is enough.

What is appended is counted as it comes.  Nobody is woken to find out that it is not enough, and whoever is woken looks
again only at what has changed.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from trilogue.broker.partitions.partition import Partition


class Bell:
    """Rung by partitions; `heard` is called when it is time to look."""

    __slots__ = ("changed", "heard", "lacks")

    def __init__(self, heard: Callable[[], None], lacks: int = 0) -> None:
        self.heard = heard
        self.lacks = lacks
        """How many bytes have to come until there may be enough."""
        self.changed: dict[Partition, None] = {}
        """What has news since somebody looked, in the order in which it came."""

    def ring(self, partition: "Partition") -> None:
        """There is something to be heard at once."""
        self.changed[partition] = None
        self.heard()

    def note(self, partition: "Partition") -> None:
        """There is something that nobody need be woken for."""
        self.changed[partition] = None

    def grow(self, partition: "Partition", size: int) -> None:
        """There are more bytes to read, at most so many."""
        self.changed[partition] = None
        self.lacks -= size
        if self.lacks <= 0:
            self.heard()


class TaskBell(Bell):
    """Heard by a task that waits for nothing else."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        super().__init__(self._hear)
        self._event = trio.Event()

    def _hear(self) -> None:
        self._event.set()

    async def wait(self) -> None:
        await self._event.wait()
        self._event = trio.Event()
