"""The files of a POSIX system, by its own calls.

Reads and writes say where, and an open file can be renamed and removed under its readers: all that `system.py`
promises is what the system does anyway.  `Direct().pwrite` is `os.pwrite`."""

import ctypes
import fcntl
import functools
import os
import shutil
from collections.abc import Callable

FALLOC_FL_KEEP_SIZE = 1


class Direct:
    """See `System` for what each of them promises."""

    open = staticmethod(os.open)
    close = staticmethod(os.close)
    pread = staticmethod(os.pread)
    preadv = staticmethod(os.preadv)
    pwrite = staticmethod(os.pwrite)
    fsync = staticmethod(os.fsync)
    ftruncate = staticmethod(os.ftruncate)
    fstat = staticmethod(os.fstat)
    rename = staticmethod(os.rename)
    unlink = staticmethod(os.unlink)

    @staticmethod
    def rmtree(path: str) -> None:
        shutil.rmtree(path, ignore_errors=True)

    @staticmethod
    def copy(source: str, target: str) -> None:
        shutil.copyfile(source, target)
        _sync(target, os.O_RDONLY)

    @staticmethod
    def sync_directory(path: str) -> None:
        _sync(path, os.O_RDONLY | os.O_DIRECTORY)

    @staticmethod
    def reserve(fd: int, position: int, size: int) -> bool:
        call = _fallocate()
        return call is not None and call(fd, FALLOC_FL_KEEP_SIZE, position, size) == 0

    @staticmethod
    def lock(fd: int) -> None:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)  # as Java does; flock would not meet it

    @staticmethod
    def unlock(fd: int, path: str) -> None:
        os.unlink(path)  # while it is still locked: afterwards it may be another's


def _sync(path: str, flags: int) -> None:
    fd = os.open(path, flags)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@functools.cache
def _fallocate() -> Callable[[int, int, int, int], int] | None:
    """Linux has it; Python's `os.posix_fallocate` would also change the size of the file."""
    call = getattr(ctypes.CDLL(None), "fallocate", None)
    if call is not None:
        call.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    return call
