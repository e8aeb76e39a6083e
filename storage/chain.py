"""The segments of a log in their order, and what happens to all of them together."""

import os
from bisect import bisect_right
from collections.abc import Iterable
from contextlib import suppress

from trilogue.storage import names, snapshot
from trilogue.storage.files import OpenFiles, unlink_if_there
from trilogue.storage.producers import Producer
from trilogue.storage.segment import Segment


class Chain:
    """Segments, oldest first; the last is the active one.  Also the snapshots that lie between them."""

    __slots__ = ("_doomed", "active", "bases", "folder", "pool", "segments", "snapshots")

    def __init__(self, folder: str, pool: OpenFiles, segments: list[Segment], snapshots: list[int]) -> None:
        self.folder = folder
        self.pool = pool
        self.segments = segments
        self.bases = [segment.base_offset for segment in segments]
        self.active = segments[-1] if segments else None
        self.snapshots = snapshots
        """The offsets they were taken at."""
        self._doomed: list[tuple[int, Segment]] = []

    def number_for(self, offset: int) -> int:
        """Which segment holds `offset`; the first, if it lies before all of them."""
        return max(bisect_right(self.bases, offset) - 1, 0)

    def add(self, base_offset: int, now_ms: int) -> Segment:
        """Begin a new active segment."""
        segment = Segment(self.folder, base_offset, self.pool, created_ms=now_ms)
        try:
            segment.create()
        except OSError:
            with suppress(OSError):  # or else it would begin in the midst of the one that goes on
                segment.remove()
            raise
        self.segments.append(segment)
        self.bases.append(base_offset)
        self.active = segment
        return segment

    def retire(self, segments: list[Segment], due_ms: int) -> None:
        """Take segments out of the chain; their files are deleted by the first `sweep` after `due_ms`."""
        for segment in segments:
            number = self.segments.index(segment)
            segment.rename(names.DELETED)
            del self.segments[number], self.bases[number]
            self._doomed.append((due_ms, segment))
        self.active = self.segments[-1] if self.segments else None

    def successor(self, old: list[Segment], base_offset: int) -> Segment:
        """The compacted segment that lies ready as .cleaned, with all opened that it takes to `replace` the old."""
        changed_ms = old[-1].created_ms
        new = Segment(self.folder, base_offset, self.pool, created_ms=changed_ms, suffix=names.CLEANED)
        new.measure()
        for segment in (new, *old):
            segment.prepare_rename()
        return new

    def replace(self, old: list[Segment], new: Segment, due_ms: int) -> None:
        """Put it in the place of those it was made of.

        From the moment its .log is called .swap it counts, whatever happens: opening the log finishes what is
        left."""
        new.rename(names.SWAP)
        number = self.segments.index(old[0])
        self.retire(old, due_ms)
        new.rename("")
        if not new.aborted.count:
            new.aborted.remove()
        self.segments.insert(number, new)
        self.bases.insert(number, new.base_offset)
        self.active = self.segments[-1]

    def sweep(self, now_ms: int) -> int | None:
        """Delete the files whose time has come.  Returns when to come again, if there is more."""
        for _, segment in [entry for entry in self._doomed if entry[0] <= now_ms]:
            segment.remove()
        self._doomed = [entry for entry in self._doomed if entry[0] > now_ms]
        return min((due for due, _ in self._doomed), default=None)

    def truncate(self, offset: int) -> int:
        """Cut behind `offset`, which does not lie before the first segment.  Returns where the log ends now:
        before `offset`, if that was inside a batch."""
        while self.segments[-1].base_offset > offset:
            self._drop_last()
        self.active = self.segments[-1]
        found = self.active.find(offset)
        if found is not None:
            position, header = found
            offset = min(offset, header.base_offset)
            self.active.truncate(position, offset)
        return offset

    def clear(self) -> None:
        """Delete everything."""
        while self.segments:
            self._drop_last()
        self.active = None
        for taken_at in self.snapshots[:]:
            self.drop_snapshot(taken_at)

    def _drop_last(self) -> None:
        self.segments.pop().remove()
        self.bases.pop()

    def take_snapshot(self, offset: int, producers: Iterable[Producer]) -> None:
        """Write down the producers as of `offset`, unless that has been done."""
        if self.segments and offset > max(self.snapshots, default=self.bases[0]):
            snapshot.write(os.path.join(self.folder, names.numbered(offset, names.SNAPSHOT)), producers)
            self.snapshots.append(offset)

    def drop_snapshot(self, offset: int) -> None:
        """Delete the snapshot that was taken at `offset`."""
        self.snapshots.remove(offset)
        unlink_if_there(os.path.join(self.folder, names.numbered(offset, names.SNAPSHOT)))

    def close(self) -> None:
        """Let go of all files, and delete those that wait for it."""
        for segment in self.segments:
            segment.sleep()
        for _, segment in self._doomed:
            segment.remove()
        self._doomed.clear()
