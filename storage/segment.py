"""One .log file with its indexes.

Only the newest segment of a log is written to; the others change by truncation and compaction alone.  The
time a segment covers, and its aborted transactions, are read from its side files when somebody asks: an idle
segment is a handful of numbers.

An index is a hint.  Before an entry is believed, the batch it points to is looked at; if it is not the one
that the entry speaks of, the indexes of the segment are made anew from the log, and a line is logged."""

import logging
import os
from collections.abc import Iterator
from itertools import chain

from trilogue.storage import names, system
from trilogue.storage.aborted import AbortedIndex
from trilogue.storage.files import Bytes, File, Handle, OpenFiles, touch, unlink_if_there, write_all
from trilogue.storage.index import OFFSET_ENTRY, SPILL_BYTES, TIME_ENTRY, OffsetIndex, TimeIndex
from trilogue.storage.scan import Damaged, batches, headers
from trilogue.wire.records import NO_TIMESTAMP, Batch, Header

logger = logging.getLogger(__name__)

LARGEST_RELATIVE_OFFSET = 2**31 - 1

RESERVE_FROM = 1 << 20
RESERVE_AT_ONCE = 64 << 20
"""A segment of at least the first reserves as much again as it has, up to the second: writing into allocated
blocks is a tenth faster.  What is not used goes back when the segment is finished."""


class Segment:
    """The batches from `base_offset` up to the next segment's."""

    __slots__ = (
        "_aborted",
        "_folder",
        "_index",
        "_pool",
        "_sizes",
        "_suffix",
        "_timeindex",
        "base_offset",
        "created_ms",
        "file",
        "first_timestamp",
        "newest",
        "reserved",
        "since_index",
        "size",
        "synced",
    )

    def __init__(
        self,
        folder: str,
        base_offset: int,
        pool: OpenFiles,
        *,
        created_ms: int,
        sizes: dict[str, int] | None = None,
        suffix: str = "",
    ) -> None:
        self._folder, self._suffix, self._pool = folder, suffix, pool
        self._sizes = sizes
        """Of the side files, as they were found; until the indexes are opened."""
        self.base_offset = base_offset
        self.file = File(self.path(names.LOG), pool)
        self.size = sizes.get(names.LOG, 0) if sizes else 0
        self.created_ms = created_ms
        """Or last changed, for a segment that was found; it stands in where records carry no timestamps."""
        self.first_timestamp: int | None = None
        """Of its first batch, once somebody asked; -1 if that has none."""
        self.since_index = 0
        self.synced = self.size
        """How much of it is known to survive a power cut."""
        self.reserved = RESERVE_FROM
        """Up to here blocks are allocated, or it is too early to bother."""
        self._index: OffsetIndex | None = None
        self._timeindex: TimeIndex | None = None
        self._aborted: AbortedIndex | None = None
        self.newest: tuple[int, int] | None = None
        """What `time` answers, once it has been read."""

    def __repr__(self) -> str:
        return f"Segment({self.path(names.LOG)}, {self.size} bytes)"

    def path(self, kind: str) -> str:
        """Where one of its files is; `kind` is one of `names.SEGMENT_FILES`."""
        return os.path.join(self._folder, names.numbered(self.base_offset, kind) + self._suffix)

    def found_size(self, kind: str) -> int:
        """How large one of its files was when the segment was found; 0 if it was not there."""
        return self._sizes.get(kind, 0) if self._sizes else 0

    def measure(self) -> None:
        """Take the sizes from the files."""
        self._sizes = {kind: os.stat(self.path(kind)).st_size for kind in names.SEGMENT_FILES}
        self.size = self.synced = self._sizes[names.LOG]

    @property
    def index(self) -> OffsetIndex:
        """Offset -> position."""
        if self._index is None:
            size = self.found_size(names.INDEX)
            self._index = OffsetIndex(self.path(names.INDEX), self._pool, size, self.base_offset)
        return self._index

    @property
    def timeindex(self) -> TimeIndex:
        """Timestamp -> offset."""
        if self._timeindex is None:
            size = self.found_size(names.TIMEINDEX)
            self._timeindex = TimeIndex(self.path(names.TIMEINDEX), self._pool, size, self.base_offset)
        return self._timeindex

    @property
    def aborted(self) -> AbortedIndex:
        """The aborted transactions whose markers are in here."""
        if self._aborted is None:
            self._aborted = AbortedIndex(self.path(names.TXNINDEX), self._pool, self.found_size(names.TXNINDEX))
        return self._aborted

    # ---- writing -----------------------------------------------------------------------------------------

    def create(self) -> None:
        """Make the files.  They are there from the first append on, empty indexes included, as Kafka's
        are."""
        self.file.create()
        for kind in (names.INDEX, names.TIMEINDEX):
            touch(self.path(kind))
        self.newest = (NO_TIMESTAMP, self.base_offset)

    def append(self, data: Bytes, size: int, last_offset: int, max_timestamp: int, index_interval: int) -> None:
        """Write one batch at the end.  If that fails nothing has changed, but for bytes after the end.

        `Log.append_as_leader` does the same in line.
        """
        position = self.size
        self.time()  # which may have to be read, and so may fail: before anything has changed
        if position + size > self.reserved:
            self.reserve()
        write_all(self.file.open().fd, data, position)
        self.size = position + size
        self.note(position, size, last_offset, max_timestamp, index_interval)

    def note(self, position: int, size: int, last_offset: int, max_timestamp: int, index_interval: int) -> None:
        """Keep the indexes up to date with a batch that is in the file."""
        if position == 0:
            self.first_timestamp = max_timestamp
        if max_timestamp > self.time()[0]:
            self.newest = (max_timestamp, last_offset)
        if self.since_index > index_interval:
            self.mark(last_offset, position)
            self.since_index = size
        else:
            self.since_index += size

    def mark(self, last_offset: int, position: int) -> None:
        """Make an entry in both indexes for the batch at `position`, whose timestamp has been taken in."""
        base = self.base_offset
        index, timeindex = self._index or self.index, self._timeindex or self.timeindex
        self.file.used = True
        pending = index.pending
        pending += OFFSET_ENTRY.pack(last_offset - base, position)
        if len(pending) >= SPILL_BYTES:
            index.spill_if_possible()
        timestamp, offset = self.newest or self.time()
        if timestamp > timeindex.newest:
            timeindex.append(timestamp, offset)

    def reserve(self) -> None:
        """Allocate blocks ahead.  Where that cannot be had, do not ask again."""
        begin = max(self.size, self.reserved)
        step = min(begin, RESERVE_AT_ONCE)
        self.reserved = begin + step if system.reserve(self.file.open().fd, begin, step) else 2**63

    def cut_off(self) -> None:
        """Nothing lies behind the end: not half a batch, and no blocks that were reserved."""
        system.ftruncate(self.file.open().fd, self.size)
        self.reserved = RESERVE_FROM

    def give_back(self) -> None:
        """Free the blocks that were reserved and not used."""
        if self.reserved > max(self.size, RESERVE_FROM):
            system.ftruncate(self.file.open().fd, self.size)
        self.reserved = RESERVE_FROM

    def index_full(self, index_bytes: int) -> bool:
        """Whether an index has no room for another entry under `segment.index.bytes`."""
        return (
            self.index.count >= index_bytes // OFFSET_ENTRY.size
            or self.timeindex.count >= index_bytes // TIME_ENTRY.size - 1
        )

    def finish(self) -> None:
        """Complete the side files: nothing will be appended for now."""
        self.give_back()
        if self.size:
            self.timeindex.append(*self.time())
        self.index.spill()
        self.timeindex.spill()
        self.aborted.spill()

    def sleep(self) -> None:
        """Let go of all descriptors.  Slices keep theirs."""
        self.file.sleep()
        for side in (self._index, self._timeindex, self._aborted):
            if side is not None:
                side.sleep()

    def is_there(self) -> bool:
        """Whether the .log can be found by its name, and is the one that we write to."""
        handle = self.file.handle
        try:
            found = os.stat(self.file.path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True  # it cannot be seen, which is another trouble
        return handle is None or os.path.samestat(found, system.fstat(handle.fd))

    def handles(self) -> list[Handle]:
        """All its files, open, for somebody who syncs them."""
        handles = [self.file.open(), self.index.handle(), self.timeindex.handle()]
        self.aborted.spill()
        if self.aborted.count:
            handles.append(self.aborted.handle())
        return handles

    # ---- reading -----------------------------------------------------------------------------------------

    def handle(self) -> Handle:
        """The .log, open."""
        return self.file.open()

    def headers(self, position: int = 0) -> Iterator[tuple[int, Header]]:
        """(position, header) of every batch from `position` on."""
        return headers(self.file.open(), position, self.size)

    def batches(self, position: int = 0) -> Iterator[tuple[int, Batch]]:
        """(position, batch) of every batch from `position` on; each valid until the next is asked for."""
        return batches(self.file.open(), position, self.size)

    def salvage(self) -> Iterator[Batch | Damaged]:
        """The same, with what cannot be read in between.  Behind that, the index knows where to go on."""
        begin: int | None = 0
        while begin is not None:
            try:
                for position, batch in self.batches(begin):
                    yield batch if batch.crc_ok() else Damaged(position, "a batch whose checksum is another")
                return
            except Damaged as damage:
                yield damage
                indexed = (self.index.at(number)[1] for number in range(self.index.count))
                begin = next((each for each in indexed if damage.position < each < self.size), None)

    def find(self, offset: int) -> tuple[int, Header] | None:
        """Where the batch begins that holds `offset`, or the first after it; None if the segment ends
        before."""
        for position, header in self._headers_for(offset):
            if header.base_offset + header.last_offset_delta >= offset:
                return position, header
        return None

    def _headers_for(self, offset: int) -> Iterator[tuple[int, Header]]:
        """(position, header) of every batch from one on that is at or before the one that holds `offset`; from
        the index, if that can be believed: a batch must begin there that does not begin after the entry's
        offset.  (An entry may speak of the last of several batches that were appended at once; brokers before
        Kafka 4.1 wrote such.)"""
        if offset <= self.base_offset:
            return self.headers()
        for _ in "as found", "made anew":
            entry_offset, position = self.index.lookup(offset)
            if position == 0:
                break
            if 0 < position < self.size:
                found = self.headers(position)
                try:
                    first = next(found)
                except Damaged:
                    first = None
                if first is not None and self.base_offset <= first[1].base_offset <= entry_offset:
                    return chain((first,), found)
            self.reindex("the index points to no batch")
        return self.headers()

    def time(self) -> tuple[int, int]:
        """(largest timestamp, last offset of the batch that brought it); (-1, base offset) if there is
        none."""
        if self.newest is None:
            self.newest = self._read_time()
        return self.newest

    def _read_time(self) -> tuple[int, int]:
        # A wrong answer lets retention delete too early, so the entry is checked and what follows it is read.
        timestamp, offset = self.timeindex.last_entry()
        if timestamp >= 0 and not self.has_time_entry(timestamp, offset):
            self.reindex("the time index speaks of no batch")
            timestamp, offset = self.timeindex.last_entry()
        largest = (timestamp, offset)
        try:
            for _, header in self._headers_for(offset):
                if header.max_timestamp > largest[0]:
                    largest = (header.max_timestamp, header.last_offset)
        except Damaged as damage:
            logger.warning("%s: %s", self.path(names.LOG), damage)
        return largest

    def has_time_entry(self, timestamp: int, offset: int) -> bool:
        """Whether a batch ends at `offset` with that largest timestamp."""
        if not self.base_offset <= offset <= self.base_offset + LARGEST_RELATIVE_OFFSET:
            return False
        try:
            found = self.find(offset)
        except Damaged:
            return False
        # Brokers before Kafka 3.7 noted the record, later ones the batch; both lie in the batch that is found.
        return found is not None and found[1].base_offset <= offset and found[1].max_timestamp == timestamp

    def rolling_timestamp(self) -> int:
        """The timestamp its age is counted from: that of its first batch; -1 if there is none, or none to be read."""
        if self.first_timestamp is None:
            try:
                self.first_timestamp = next((header.max_timestamp for _, header in self.headers()), None)
            except Damaged:
                self.first_timestamp = NO_TIMESTAMP  # its age is counted from when it was made
        return NO_TIMESTAMP if self.first_timestamp is None else self.first_timestamp

    def end(self) -> int:
        """The offset after its last batch, from the file.  Raises `Damaged` if it does not end with a whole
        batch."""
        offset = self.base_offset
        for position, header in self._headers_for(self.base_offset + LARGEST_RELATIVE_OFFSET):
            if header.base_offset < offset:
                raise Damaged(position, f"offset {header.base_offset} after {offset - 1}")
            offset = header.next_offset
        return offset

    # ---- repairing ---------------------------------------------------------------------------------------

    def reindex(self, why: str, index_interval: int = 4096) -> None:
        """Make both indexes anew from the log."""
        logger.warning("%s: %s; indexes are made anew", self.path(names.LOG), why)
        self.clear_indexes()
        try:
            for position, header in self.headers():
                self.note(position, header.size, header.last_offset, header.max_timestamp, index_interval)
        except Damaged as damage:
            logger.warning("%s: %s", self.path(names.LOG), damage)

    def clear_indexes(self) -> None:
        """Forget both indexes, before they are made anew batch by batch with `note`."""
        self.index.remove()
        self.timeindex.remove()
        self.newest = (NO_TIMESTAMP, self.base_offset)
        self.since_index = 0
        self.first_timestamp = None

    def truncate(self, position: int, offset: int) -> None:
        """Cut the file at `position`, where `offset` begins or would begin."""
        handle = self.file.open()
        system.ftruncate(handle.fd, position)
        self.size = position
        self.synced = min(self.synced, position)
        self.index.truncate(offset)
        self.timeindex.truncate(offset)
        self.aborted.truncate(offset)
        self.since_index = 0
        self.newest = self.first_timestamp = None

    # ---- moving ------------------------------------------------------------------------------------------

    def prepare_rename(self) -> None:
        """Open what has to be open: side files must know their sizes before the paths change."""
        _ = self.index, self.timeindex, self.aborted

    def rename(self, suffix: str) -> None:
        """Give all files another suffix.  The .log goes last: as long as it is there, so is the segment."""
        self.prepare_rename()
        self._suffix = suffix
        self.index.rename(self.path(names.INDEX))
        self.timeindex.rename(self.path(names.TIMEINDEX))
        self.aborted.rename(self.path(names.TXNINDEX))
        self.file.rename(self.path(names.LOG))

    def remove(self) -> None:
        """Delete all files.  Who holds the handle can go on reading."""
        self.sleep()
        for kind in names.SEGMENT_FILES:
            unlink_if_there(self.path(kind))
        if self._index is not None:
            self._index.remove()
        if self._timeindex is not None:
            self._timeindex.remove()
        if self._aborted is not None:
            self._aborted.remove()
