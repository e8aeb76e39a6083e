"""Work on partitions that failed: counted, and left alone for a while that grows.

Pure.  A failure costs the partition that it happened to; the others go on.
"""

from collections import Counter
from typing import NamedTuple

from trilogue.broker.names import TopicPartition

FIRST_PAUSE_MS, LONGEST_PAUSE_MS = 1000, 3_600_000
"""What fails is mostly wrong for good, as a batch that cannot be read; trying it every time would fill the log."""

SAID_AGAIN_MS = 60_000
"""What passes is tried every time, by every producer too.  So often it is said that it has not passed yet."""


class Rest(NamedTuple):
    until_ms: int
    pause_ms: int


class Troubles:
    def __init__(self) -> None:
        self.failures: Counter[str] = Counter()
        """By what was done."""
        self._resting: dict[tuple[str, TopicPartition], Rest] = {}
        self._said_at_ms: dict[tuple[str, int | None], int] = {}

    def rests(self, work: str, key: TopicPartition, now_ms: int) -> bool:
        """Whether it failed so lately that it is left alone.  Not if the clock has been put back since."""
        rest = self._resting.get((work, key))
        return rest is not None and rest.until_ms - rest.pause_ms <= now_ms < rest.until_ms

    def failed(self, work: str, key: TopicPartition, now_ms: int) -> int:
        """Answers how long it rests, in milliseconds."""
        self.failures[work] += 1
        before = self._resting.get((work, key))
        pause_ms = FIRST_PAUSE_MS if before is None else min(before.pause_ms * 2, LONGEST_PAUSE_MS)
        self._resting[work, key] = Rest(now_ms + pause_ms, pause_ms)
        return pause_ms

    def news(self, where: str, number: int | None, now_ms: int) -> bool:
        """Whether to say that something is short there, by the number of the error."""
        said_at_ms = self._said_at_ms.get((where, number))
        if said_at_ms is not None and 0 <= now_ms - said_at_ms < SAID_AGAIN_MS:
            return False
        self._said_at_ms[where, number] = now_ms
        return True

    def succeeded(self, work: str, key: TopicPartition) -> None:
        self._resting.pop((work, key), None)
