"""Moves a partition from one data directory to another while it is being used.

Only finished segments are copied: they do not change any more.  Round by round the active one is finished, and what is
new is copied in a thread, until so little is left that it can be copied on the spot.  Then the partition changes over
to the copy, without an `await` in between: nothing is written twice, nothing is missed.

Until then the copy lies in a folder that ends in `-future`, as with Kafka, and counts for nothing.  Retention and
compaction leave a partition alone while it moves: `broker/replicas.py` sees to that.
"""

import os
from collections.abc import Iterable

from trilogue.storage import names, system
from trilogue.storage.directory import DataDirectory
from trilogue.storage.log import Log

FUTURE_FOLDER = "-future"
ON_THE_SPOT_BYTES = 1 << 20
"""What may be copied while everybody waits: some milliseconds."""

ROUNDS_MAX = 20
"""A partition that is written to faster than it can be copied would never arrive."""

UNFINISHED = (names.DELETED, names.CLEANED, names.SWAP, ".tmp")


class Move:
    """One move under way."""

    def __init__(self, log: Log, target: DataDirectory, unique: str) -> None:
        self.log, self.target = log, target
        self.folder = os.path.join(target.path, f"{log.name}.{unique}{FUTURE_FOLDER}")
        self.rounds = 0
        self.copied_to = log.start_offset
        """The copy ends before this offset."""
        self.copied_bytes = 0
        self._copied: set[str] = set()

    def next_round(self, now_ms: int) -> list[str]:
        """The files that are still to be copied."""
        self.rounds += 1
        if not self.log.segments:
            return []
        self.log.roll(now_ms)
        self.copied_to = self.log.end_offset
        files = (entry.name for entry in os.scandir(self.log.path) if not entry.name.endswith(UNFINISHED))
        return sorted(name for name in files if name not in self._copied and self._stays(name))

    def _stays(self, name: str) -> bool:
        """Whether a file is as it will always be.  Those of the active segment and the small lists are not."""
        base = names.offset_of(name)
        return base is not None and (base < self.log.segments[-1].base_offset or name.endswith(names.SNAPSHOT))

    def size(self, files: Iterable[str]) -> int:
        return sum(os.stat(os.path.join(self.log.path, name)).st_size for name in files)

    def copy(self, files: list[str]) -> None:
        """May run in a thread."""
        os.makedirs(self.folder, exist_ok=True)
        for name in files:
            target = os.path.join(self.folder, name)
            system.copy(os.path.join(self.log.path, name), target)
            self._copied.add(name)
            self.copied_bytes += os.stat(target).st_size if name.endswith(names.LOG) else 0

    def change_over(self, now_ms: int) -> Log:
        """Copy the rest, and open the log at its new place.  No `await` from the last `next_round` to here."""
        old = self.log
        place = os.path.join(self.target.path, old.name)
        if old.segments:
            rest = (name for name in os.listdir(old.path) if not name.endswith(UNFINISHED))
            self.copy(sorted(name for name in rest if name not in self._copied))
            system.sync_directory(self.folder)
            system.rename(self.folder, place)
            system.sync_directory(self.target.path)
        new = Log.open(
            place,
            old.config,
            now_ms,
            topic_id=old.topic_id,
            start_offset=old.start_offset,
            recovery_point=old.end_offset,
            clean_offset=old.clean_offset,
            clean=True,
            pool=self.target.pool,
        )
        if old.latest_epoch is not None:
            new.begin_epoch(old.latest_epoch)
        return new

    def give_up(self) -> None:
        """Remove what was copied."""
        system.rmtree(self.folder)


def remove_unfinished(directory: DataDirectory) -> None:
    """What moves left behind that were under way when the broker ended."""
    for entry in list(os.scandir(directory.path)):
        if entry.is_dir() and entry.name.endswith(FUTURE_FOLDER):
            system.rmtree(entry.path)
