"""fsync: when it is due, and doing it beside the appends.

`Log.start_flush` collects what has to reach the disk; `Flush.run` brings it there, in a thread if the broker
likes, while appends go on; `Log.finish_flush` moves the recovery point.  One run serves everybody who waits:
that is group commit. A failed fsync says nothing about what is on the disk afterwards, so it is final:
`Log.fail`."""

from typing import NamedTuple

from trilogue.storage import system
from trilogue.storage.config import FOREVER, LogConfig
from trilogue.storage.files import Handle
from trilogue.storage.segment import Segment


class Flush(NamedTuple):
    """What one flush has to do.  Holding the handles, it does not care if segments are deleted meanwhile."""

    end_offset: int
    """Everything before it will be safe."""
    folder: str | None
    """To be synced as well, because files were created in it."""
    parts: list[tuple[Segment, int, list[Handle]]]
    """A segment, how much of it was there, and its open files."""

    @classmethod
    def of(cls, folder: str, segments: list[Segment], end_offset: int) -> "Flush":
        """Everything of a log that is not known to be safe."""
        parts = [(segment, segment.size, segment.handles()) for segment in segments if segment.synced < segment.size]
        return cls(end_offset, folder if parts else None, parts)

    def mark(self) -> None:
        """It has run."""
        for segment, size, _ in self.parts:
            segment.synced = min(max(segment.synced, size), segment.size)

    def run(self) -> None:
        """Bring it to the disk; OSError if that fails.  Touches nothing but the descriptors it holds."""
        for _, _, handles in self.parts:
            for handle in handles:
                system.fsync(handle.fd)
        if self.folder is not None:
            system.sync_directory(self.folder)


def flush_due(config: LogConfig, unflushed: int, last_flush_ms: int, now_ms: int) -> bool:
    """Whether flush.messages or flush.ms asks for a flush now, with `unflushed` offsets not known to be
    safe.  If the clock has been put back, nobody knows how long the last is ago."""
    if unflushed <= 0 or unflushed >= config.flush_messages:
        return unflushed > 0
    return config.flush_ms < FOREVER and not 0 <= now_ms - last_flush_ms < config.flush_ms


def flush_deadline_ms(config: LogConfig, unflushed: int, last_flush_ms: int) -> int:
    """When flush.ms will ask for a flush; `FOREVER` if never."""
    return last_flush_ms + config.flush_ms if unflushed > 0 and config.flush_ms < FOREVER else FOREVER
