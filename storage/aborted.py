"""The .txnindex of a segment: which ranges of offsets belong to aborted transactions.

An entry stands in the segment that holds the abort marker.  The file exists only where something was aborted.
"""

import os
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from trilogue.storage import system
from trilogue.storage.files import File, Handle, OpenFiles, read_up_to, unlink_if_there, write_all
from trilogue.storage.passing import passes

VERSION = 0
_ENTRY = Struct(">hqqqq")
ENTRY_SIZE = _ENTRY.size


class AbortedTransaction(NamedTuple):
    """`last_stable_offset` is how far transactions were decided when this one was."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class AbortedIndex:
    """The aborted transactions whose markers are in one segment, in the order of their markers."""

    __slots__ = ("_file", "_pending", "_stored")

    def __init__(self, path: str, pool: OpenFiles, size: int) -> None:
        self._file = File(path, pool)
        self._stored = size // ENTRY_SIZE
        self._pending = b""
        """Entries that could not be written yet.  Their markers are in the log, and readers must know of them."""

    @property
    def count(self) -> int:
        """How many there are."""
        return self._stored + len(self._pending) // ENTRY_SIZE

    @property
    def path(self) -> str:
        """Where the file is, or would be."""
        return self._file.path

    def append(self, aborted: AbortedTransaction) -> None:
        """Note a transaction whose abort marker has just gone into the segment."""
        self._pending += _ENTRY.pack(VERSION, *aborted)
        try:
            self.spill()
        except OSError as error:
            if not passes(error):
                raise

    def spill(self) -> None:
        """Write what could not be written when it came."""
        if self._pending:
            write_all(self._file.create().fd, self._pending, self._stored * ENTRY_SIZE)
            self._stored, self._pending = self.count, b""

    def create(self) -> None:
        """Make the file, empty as it may be."""
        self._file.create()

    def entries(self) -> Iterator[AbortedTransaction]:
        """All of them.  A file that was damaged ends where it stops making sense."""
        if not self.count:
            return
        data = read_up_to(self._file.open().fd, self._stored * ENTRY_SIZE, 0) if self._stored else b""
        data = data[: len(data) - len(data) % ENTRY_SIZE] + self._pending
        for version, *fields in _ENTRY.iter_unpack(data):
            if version != VERSION:
                return
            yield AbortedTransaction(*fields)

    def sound(self, base_offset: int, size: int) -> bool:
        """Whether the file can be what it claims: whole entries of markers that follow each other."""
        last = base_offset - 1
        number = 0
        for number, aborted in enumerate(self.entries(), 1):  # noqa: B007
            if not (aborted.producer_id >= 0 and 0 <= aborted.first_offset <= aborted.last_offset > last):
                return False
            last = aborted.last_offset
        return number * ENTRY_SIZE == size

    def truncate(self, offset: int) -> None:
        """Forget the transactions whose markers are at `offset` or above."""
        self.spill()
        kept = sum(aborted.last_offset < offset for aborted in self.entries())
        if kept < self._stored:
            system.ftruncate(self._file.open().fd, kept * ENTRY_SIZE)
            self._stored = kept

    def handle(self) -> Handle:
        """The file, open; there must be one."""
        return self._file.open()

    def sleep(self) -> None:
        """Let go of the file."""
        self._file.sleep()

    def rename(self, path: str) -> None:
        """Move the file, if there is one."""
        if os.path.exists(self._file.path):
            self._file.rename(path)
        self._file.path = path

    def remove(self) -> None:
        """Delete the file and forget everything."""
        self._file.sleep()
        unlink_if_there(self._file.path)
        self._stored, self._pending = 0, b""
