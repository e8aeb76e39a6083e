"""Descriptors that close themselves, and writes that are whole or raise.

A `Handle` owns one descriptor and closes it when the last holder lets go.  That is what keeps a slice
readable whose segment has been deleted or whose file has been put to sleep meanwhile: the slice holds the
handle.  Nobody calls `os.close` anywhere else.

A `File` is a path that is opened at its first use.  The pool it belongs to puts the files that were not used
lately to sleep again, so that ten thousand idle partitions hold no descriptor."""

import ctypes
import errno
import functools
import os
from collections.abc import Callable

Bytes = bytes | bytearray | memoryview

OPEN_FILES = 1000
"""How many files of partitions a pool keeps awake: under the usual 1,024 only with few sockets, so a broker
that raises its limit also gives its pool a larger number."""


class Handle:
    """An open descriptor.  It is closed when nobody refers to the handle any more."""

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
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
        self.handle = Handle(os.open(self.path, flags | os.O_CLOEXEC, 0o644))
        self.pool.admit(self)

    def sleep(self) -> None:
        """Let go of the handle; who else holds it may go on reading."""
        self.handle = None
        self.pool.forget(self)

    def rename(self, path: str) -> None:
        """Move the file; an open handle follows it."""
        os.rename(self.path, path)
        self.path = path


def write_all(fd: int, data: Bytes, position: int) -> None:
    """Write everything, or raise OSError; the kernel may take less than it was given when the disk is nearly
    full."""
    written = os.pwrite(fd, data, position)
    if written != len(data):
        left = memoryview(data)[written:]
        while left:
            position += written
            written = os.pwrite(fd, left, position)
            if not written:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            left = left[written:]


FALLOC_FL_KEEP_SIZE = 1


@functools.cache
def _fallocate() -> Callable[[int, int, int, int], int] | None:
    """Linux has it; Python's `os.posix_fallocate` would also change the size of the file."""
    call = getattr(ctypes.CDLL(None), "fallocate", None)
    if call is not None:
        call.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    return call


def reserve(fd: int, position: int, size: int) -> bool:
    """Allocate blocks behind the end of a file without making it longer.  False if that cannot be had: it is
    a hint."""
    call = _fallocate()
    return call is not None and call(fd, FALLOC_FL_KEEP_SIZE, position, size) == 0


def read_up_to(fd: int, size: int, position: int) -> bytes:
    """Up to `size` bytes; fewer only at the end of the file."""
    data = os.pread(fd, size, position)
    if len(data) in (0, size):
        return data
    parts = [data]
    got = len(data)
    while got < size and (data := os.pread(fd, size - got, position + got)):
        parts.append(data)
        got += len(data)
    return b"".join(parts)


def replace_file(path: str, content: bytes) -> None:
    """Put `content` at `path` so that a crash leaves the old file or the new one, and nothing else."""
    beside = path + ".tmp"
    handle = Handle(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644))
    write_all(handle.fd, content, 0)
    os.fsync(handle.fd)
    os.rename(beside, path)
    sync_directory(os.path.dirname(path))


def sync_directory(path: str) -> None:
    """Make renames, creations and deletions in a directory survive a power cut."""
    handle = Handle(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    os.fsync(handle.fd)


def read_file(path: str) -> bytes | None:
    """The whole content of a small file, or None where there is none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    handle = Handle(fd)
    return read_up_to(fd, os.fstat(handle.fd).st_size, 0)


def unlink_if_there(path: str) -> bool:
    """Remove a file; False if there was none."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    return True
