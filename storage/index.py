"""The two sparse indexes of a segment: offset to position, and timestamp to offset.

An entry is made about every `index.interval.bytes` of log.  Entries gather in memory and go to the file a few
hundred at a time: a `pwrite` each would cost as much as a quarter of the append that they belong to, and with a
few dozen at a time one small request in a hundred paid for it, which then was the p99 of all.  What a
crash takes with it is made again from the log, so nothing depends on these files being complete; and because
they may hold anything after a crash, whoever uses an entry checks it against the batch it points to
(`segment.py`)."""

import os
from struct import Struct

from trilogue.storage import system
from trilogue.storage.files import File, Handle, OpenFiles, read_up_to, unlink_if_there, write_all
from trilogue.storage.passing import passes

SPILL_BYTES = 3072
"""How much gathers in memory, whole entries of either index: few enough that an idle partition which was busy once
holds little."""

PAGE_ENTRIES = 256
"""Down to this many entries a search reads single ones from the file, then all of them at once."""

NOT_THERE = -1, (-1, -1)

OFFSET_ENTRY = Struct(">ii")
TIME_ENTRY = Struct(">qi")


class Index:
    """Entries of one size, sorted by their first field, in a file and behind it in memory."""

    __slots__ = ("_entry", "_file", "_stored", "_stored_last", "pending")

    def __init__(self, entry: Struct, path: str, pool: OpenFiles, size: int) -> None:
        self._entry = entry
        self._file = File(path, pool)
        self._stored = size // entry.size
        """How many are in the file."""
        self._stored_last: tuple[int, int] | None = None
        self.pending = bytearray()
        """Those that are not in the file yet, as they will be.  The hot path adds to it by itself (`Segment.mark`)."""
        if self._stored:
            self._stored_last = self.at(self._stored - 1)

    @property
    def path(self) -> str:
        """Where the file is, or would be."""
        return self._file.path

    @property
    def count(self) -> int:
        """How many entries, with those that are not in the file yet."""
        return self._stored + len(self.pending) // self._entry.size

    @property
    def size(self) -> int:
        """Bytes, with those that are not in the file yet."""
        return self.count * self._entry.size

    @property
    def last(self) -> tuple[int, int] | None:
        """The newest entry, relative as it is stored."""
        return self._waiting(-1) if self.pending else self._stored_last

    def add(self, first: int, second: int) -> None:
        """Append an entry; the caller sees to the order."""
        self.pending += self._entry.pack(first, second)
        if len(self.pending) >= SPILL_BYTES:
            self.spill_if_possible()

    def spill_if_possible(self) -> None:
        """Bring what has gathered into the file, now or another time: the batch that it is about is written already."""
        try:
            self.spill()
        except OSError as error:
            if not passes(error):
                raise

    def spill(self) -> None:
        """Bring what has gathered into the file."""
        if self.pending:
            content = bytes(self.pending)  # a copy: an error would hold on to it
            write_all(self._file.create().fd, content, self._stored * self._entry.size)
            self._stored, self._stored_last = self.count, self.last
            self.pending.clear()

    def at(self, number: int) -> tuple[int, int]:
        """One entry."""
        if number >= self._stored:
            return self._waiting(number - self._stored)
        size = self._entry.size
        first, second = self._entry.unpack(read_up_to(self._file.open().fd, size, number * size))
        return first, second

    def find(self, wanted: int) -> tuple[int, tuple[int, int]]:
        """The last entry whose first field is at most `wanted`, behind its number; -1 if there is none."""
        if self.pending and self._waiting(0)[0] <= wanted:
            number = self._up_to(wanted, self.pending) - 1
            return self._stored + number, self._waiting(number)
        low, high = 0, self._stored
        while high - low > PAGE_ENTRIES:
            middle = (low + high) // 2
            if self.at(middle)[0] <= wanted:
                low = middle
            else:
                high = middle
        size = self._entry.size
        page = read_up_to(self._file.open().fd, (high - low) * size, low * size) if low < high else b""
        found = self._up_to(wanted, page)
        if not found:
            return NOT_THERE
        first, second = self._entry.unpack_from(page, (found - 1) * size)
        return low + found - 1, (first, second)

    def _waiting(self, number: int) -> tuple[int, int]:
        """One of those in memory; from their end if it is negative."""
        first, second = self._entry.unpack_from(self.pending, number * self._entry.size)
        return first, second

    def _up_to(self, wanted: int, entries: bytes | bytearray) -> int:
        """How many of them have a first field that is at most `wanted`."""
        size, unpack = self._entry.size, self._entry.unpack_from
        low, high = 0, len(entries) // size
        while low < high:
            middle = (low + high) // 2
            if unpack(entries, middle * size)[0] <= wanted:
                low = middle + 1
            else:
                high = middle
        return low

    def keep(self, count: int) -> None:
        """Drop all entries but the first `count`."""
        self.spill()
        if count < self._stored:
            system.ftruncate(self._file.open().fd, count * self._entry.size)
            self._stored = count
            self._stored_last = self.at(count - 1) if count else None

    def handle(self) -> Handle:
        """The file, open."""
        return self._file.create()

    def sleep(self) -> None:
        """Let go of the file."""
        self._file.sleep()

    def rename(self, path: str) -> None:
        """Move the file, if there is one; entries in memory follow."""
        if os.path.exists(self._file.path):
            self._file.rename(path)
        self._file.path = path

    def remove(self) -> None:
        """Delete the file and forget everything."""
        self._file.sleep()
        unlink_if_there(self._file.path)
        self._stored = 0
        self._stored_last = None
        self.pending.clear()


class OffsetIndex(Index):
    """Last offset of a batch, relative to the segment's first -> where that batch begins."""

    __slots__ = ("_base",)

    def __init__(self, path: str, pool: OpenFiles, size: int, base_offset: int) -> None:
        super().__init__(OFFSET_ENTRY, path, pool, size)
        self._base = base_offset

    def append(self, last_offset: int, position: int) -> None:
        """The batch at `position` ends with `last_offset`."""
        self.add(last_offset - self._base, position)

    def lookup(self, offset: int) -> tuple[int, int]:
        """(offset, position) of the last entry at or before `offset`; the segment's beginning if there is
        none."""
        number, (relative, position) = self.find(offset - self._base)
        return (self._base, 0) if number < 0 else (self._base + relative, position)

    def truncate(self, offset: int) -> None:
        """Drop the entries of `offset` and above."""
        self.keep(self.find(offset - self._base - 1)[0] + 1)


class TimeIndex(Index):
    """Largest timestamp so far -> last offset, relative, of the batch that brought it."""

    __slots__ = ("_base", "newest")

    def __init__(self, path: str, pool: OpenFiles, size: int, base_offset: int) -> None:
        super().__init__(TIME_ENTRY, path, pool, size)
        self._base = base_offset
        self.newest = self.last_entry()[0]
        """The timestamp of the newest entry; -1 if there is none."""

    def append(self, timestamp: int, offset: int) -> None:
        """Note a timestamp, if it is later than all before it."""
        if timestamp > self.newest:
            self.newest = timestamp
            self.add(timestamp, offset - self._base)

    def lookup(self, timestamp: int) -> tuple[int, int]:
        """(timestamp, offset) of the last entry at or before `timestamp`; (-1, the first offset) if there is
        none."""
        number, (found, relative) = self.find(timestamp)
        return (-1, self._base) if number < 0 else (found, self._base + relative)

    def last_entry(self) -> tuple[int, int]:
        """(timestamp, offset) of the newest entry; (-1, the first offset) if there is none."""
        last = self.last
        return (-1, self._base) if last is None else (last[0], self._base + last[1])

    def truncate(self, offset: int) -> None:
        """Drop the entries that speak of `offset` and above."""
        relative = offset - self._base
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            if self.at(middle)[1] < relative:
                low = middle + 1
            else:
                high = middle
        self.keep(low)
        self.newest = self.last_entry()[0]

    def remove(self) -> None:
        """Delete the file and forget everything."""
        super().remove()
        self.newest = -1
