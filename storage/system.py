"""What storage asks of the operating system: one door, in two forms.

`direct.py` is a POSIX system's own calls, bound here without a word of Python around them: the hot path of the log
pays nothing for the other form.  `indirect.py` serves systems that read and write only where the last call
ended, and that let nobody rename or remove an open file, as Windows.  What is there decides, not the name of the
system.

The law: nothing else in storage calls `os` with a descriptor, nor renames or removes anything.  Who needs a
descriptor has a `Handle` (`files.py`)."""

import os
from collections.abc import Sequence
from typing import Protocol

POSITIONAL = ("pread", "preadv", "pwrite")
"""What `direct.py` cannot do without.  A system that has them also has `fcntl`, and lets open files be renamed."""


class System(Protocol):
    """The promises that both forms keep.  A descriptor is a number that only the form it came from understands."""

    def open(self, path: str, flags: int, mode: int = 0o777, /) -> int:
        """A descriptor, not inherited by child processes; bytes go in and out as they are."""

    def close(self, fd: int, /) -> None:
        """May be called from anywhere, by the garbage collector too: it waits for nobody."""

    def pread(self, fd: int, size: int, position: int, /) -> bytes:
        """Up to `size` bytes from `position` on."""

    def preadv(self, fd: int, buffers: Sequence[memoryview], position: int, /) -> int:
        """The same into one buffer, the only element of `buffers`.  How many bytes."""

    def pwrite(self, fd: int, data: bytes | bytearray | memoryview, position: int, /) -> int:
        """How many bytes were taken.  Threads that write to other positions do not get in each other's way."""

    def fsync(self, fd: int, /) -> None:
        """Bring to the disk what was written; the descriptor must be one for writing."""

    def ftruncate(self, fd: int, size: int, /) -> None:
        """Make the file as long as that."""

    def fstat(self, fd: int, /) -> os.stat_result:
        """What `os.stat` knows of the file."""

    def rename(self, old: str, new: str, /) -> None:
        """Move a file or a folder; a file takes the place of another.  Descriptors go on, those of files below a
        folder too, and so do those of the file whose place was taken."""

    def unlink(self, path: str, /) -> None:
        """Remove a file; its name is free at once.  Who has it open can go on reading."""

    def rmtree(self, path: str, /) -> None:
        """Remove a folder and what is in it, as far as that can be done.  Who has a file of it open can go on."""

    def copy(self, source: str, target: str, /) -> None:
        """Copy a file, and bring the copy to the disk.  May run in a thread."""

    def sync_directory(self, path: str, /) -> None:
        """Make renames, creations and deletions in a directory survive a power cut, where that can be had."""

    def reserve(self, fd: int, position: int, size: int, /) -> bool:
        """Allocate blocks behind the end of a file without making it longer.  False if that cannot be had: it is
        a hint."""

    def lock(self, fd: int, /) -> None:
        """Keep other processes from doing the same; OSError if one has.  It ends with the descriptor."""

    def unlock(self, fd: int, path: str, /) -> None:
        """End a lock, and remove its file.  The descriptor is good for nothing but `close` afterwards."""


def chosen() -> System:
    """The form that fits the system we run on."""
    if all(hasattr(os, name) for name in POSITIONAL):
        from trilogue.storage.direct import Direct

        return Direct()
    from trilogue.storage.indirect import Indirect

    return Indirect()


SYSTEM = chosen()

open = SYSTEM.open  # noqa: A001  that of descriptors
close = SYSTEM.close
pread = SYSTEM.pread
preadv = SYSTEM.preadv
pwrite = SYSTEM.pwrite
fsync = SYSTEM.fsync
ftruncate = SYSTEM.ftruncate
fstat = SYSTEM.fstat
rename = SYSTEM.rename
unlink = SYSTEM.unlink
rmtree = SYSTEM.rmtree
copy = SYSTEM.copy
sync_directory = SYSTEM.sync_directory
reserve = SYSTEM.reserve
lock = SYSTEM.lock
unlock = SYSTEM.unlock
