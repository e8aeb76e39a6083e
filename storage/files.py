"""Descriptors that close themselves, and writes that are whole or raise.

A `Handle` owns one descriptor and closes it when the last holder lets go.  That is what keeps a slice
readable whose segment has been deleted or whose file has been put to sleep meanwhile: the slice holds the
handle.  Nobody closes a descriptor in any other way; what descriptors are, `system.py` knows.

A `File` is a path that is opened at its first use.  The pool it belongs to puts the files that were not used
lately to sleep again, so that ten thousand idle partitions hold no descriptor."""

import errno
import os
from collections.abc import Callable
from contextlib import suppress

from trilogue.storage import system

Bytes = bytes | bytearray | memoryview

OPEN_FILES = 1000
"""How many files of partitions a pool keeps awake: more would save little.  Whoever may not have so many descriptors
gives his pool a smaller number."""

MODE = 0o644
"""Who may read and write what we make, where the system knows such things."""


class Handle:
    """An open descriptor.  It is closed when nobody refers to the handle any more."""

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __del__(self, close: Callable[[int], None] = system.close) -> None:
        close(self.fd)


class OpenFiles:
    """The files that are awake, at most `cap` of them.  Second chance: who was used since we looked,
    stays."""

    def __init__(self, cap: int = OPEN_FILES) -> None:
        self.cap = cap
        self._awake: dict[File, None] = {}

    def __len__(self) -> int:
        return len(self._awake)

    def admit(self, file: "File") -> None:
        """Note a file that was just opened, and put another to sleep if there are too many."""
        self._awake[file] = None
        while len(self._awake) > self.cap:
            oldest = next(iter(self._awake))
            del self._awake[oldest]
            if oldest.used:
                oldest.used = False
                self._awake[oldest] = None
            else:
                oldest.handle = None

    def clear(self) -> None:
        """All of them to sleep."""
        for file in self._awake:
            file.handle = None
        self._awake.clear()

    def forget(self, file: "File") -> None:
        """The file went to sleep by itself."""
        self._awake.pop(file, None)


class File:
    """A path, and its handle while it is awake."""

    __slots__ = ("handle", "path", "pool", "used")

    def __init__(self, path: str, pool: OpenFiles) -> None:
        self.path = path
        self.pool = pool
        self.handle: Handle | None = None
        self.used = False

    def open(self) -> Handle:
        """The handle, waking the file if need be.  The file must exist."""
        self.used = True
        if self.handle is None:
            self._wake(os.O_RDWR)
        assert self.handle is not None
        return self.handle

    def create(self) -> Handle:
        """The handle of a file that may not be there yet."""
        self.used = True
        if self.handle is None:
            self._wake(os.O_RDWR | os.O_CREAT)
        assert self.handle is not None
        return self.handle

    def _wake(self, flags: int) -> None:
        self.handle = Handle(system.open(self.path, flags, MODE))
        self.pool.admit(self)

    def sleep(self) -> None:
        """Let go of the handle; who else holds it may go on reading."""
        self.handle = None
        self.pool.forget(self)

    def rename(self, path: str) -> None:
        """Move the file; an open handle follows it."""
        system.rename(self.path, path)
        self.path = path


def write_all(fd: int, data: Bytes, position: int) -> None:
    """Write everything, or raise OSError; the kernel may take less than it was given when the disk is nearly
    full."""
    written = system.pwrite(fd, data, position)
    if written != len(data):
        left = memoryview(data)[written:]
        while left:
            position += written
            written = system.pwrite(fd, left, position)
            if not written:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            left = left[written:]


def read_up_to(fd: int, size: int, position: int) -> bytes:
    """Up to `size` bytes; fewer only at the end of the file."""
    data = system.pread(fd, size, position)
    if len(data) in (0, size):
        return data
    parts = [data]
    got = len(data)
    while got < size and (data := system.pread(fd, size - got, position + got)):
        parts.append(data)
        got += len(data)
    return b"".join(parts)


def touch(path: str) -> None:
    """Make an empty file, unless there is one."""
    Handle(system.open(path, os.O_WRONLY | os.O_CREAT, MODE))


def replace_file(path: str, content: bytes) -> None:
    """Put `content` at `path` so that a crash leaves the old file or the new one, and nothing else."""
    beside = path + ".tmp"
    handle = Handle(system.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, MODE))
    try:
        write_all(handle.fd, content, 0)
        system.fsync(handle.fd)
        system.rename(beside, path)
    except OSError:
        with suppress(OSError):  # half of it would only take space, and on a full disk that is what there is none of
            system.unlink(beside)
        raise
    system.sync_directory(os.path.dirname(path))


def open_to_read(path: str) -> Handle:
    """A file that somebody else made; FileNotFoundError where there is none."""
    return Handle(system.open(path, os.O_RDONLY))


def read_file(path: str) -> bytes | None:
    """The whole content of a small file, or None where there is none."""
    try:
        handle = open_to_read(path)
    except FileNotFoundError:
        return None
    return read_up_to(handle.fd, system.fstat(handle.fd).st_size, 0)


def unlink_if_there(path: str) -> bool:
    """Remove a file; False if there was none."""
    try:
        system.unlink(path)
    except FileNotFoundError:
        return False
    return True
