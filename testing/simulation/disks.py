"""Disks that fill up, fail, and forget what was not synced: real files, behind `storage/system.py`.

Files lie in memory (/dev/shm), so nothing of a process that was killed is lost.  When a whole host goes down, what was
written since the last fsync of a file is taken back: all of it, or all but a beginning, in which the last write may be
torn.  A dead process changes nothing any more.
"""

import errno
import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from trilogue.storage import log, system
from trilogue.testing.simulation.lives import LIFE

Bytes = bytes | bytearray | memoryview


class Unsynced:
    """What was done to a file since it was synced."""

    __slots__ = ("before", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self.before: list[tuple[int, bytes, int]] = []
        """For every change: where, what had been there, and how long the file had been."""


class Disk:
    """Of one host.  `path` is where everything of it lies."""

    def __init__(self, path: str, chance: random.Random) -> None:
        self.path, self._chance = path, chance
        self.full = False
        self.broken: int | None = None
        """Everything that changes something fails with this error."""
        self.fsync_fails = False
        self.unreadable = False
        self.die_after: int | None = None
        """So many writes later the process is killed, in the midst of the last."""
        self.kill: Callable[[], None] = lambda: None
        self.unsynced: dict[str, Unsynced] = {}

    def check(self, *, grows: bool = False) -> None:
        """Before anything is changed."""
        life = LIFE.get()
        if life is not None and not life.alive:
            raise OSError(errno.EIO, "the process is dead")
        if self.broken is not None:
            raise OSError(self.broken, os.strerror(self.broken))
        if grows and self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def note(self, fd: int, path: str, size: int, position: int) -> None:
        """So many bytes are about to be changed there."""
        length = os.fstat(fd).st_size
        before = os.pread(fd, min(size, length - position), position) if position < length else b""
        self.unsynced.setdefault(path, Unsynced(path)).before.append((position, before, length))

    def go_down(self) -> int:
        """Take back what was not synced, and answer of how many files."""
        for each in self.unsynced.values():
            kept = self._chance.choice((0, 0, self._chance.randrange(len(each.before) + 1)))
            try:
                fd = os.open(each.path, os.O_RDWR)
            except FileNotFoundError:
                continue
            try:
                for position, before, length in reversed(each.before[kept:]):
                    if before:
                        os.pwrite(fd, before, position)
                    os.ftruncate(fd, length)
            finally:
                os.close(fd)
        count = len(self.unsynced)
        self.unsynced.clear()
        return count


class Disks:
    """All of them; `installed` puts them between storage and the system."""

    def __init__(self) -> None:
        self._disks: dict[str, Disk] = {}
        self._open: dict[int, tuple[Disk, str]] = {}
        """What descriptors mean.  One that was closed stays until its number is used again."""

    def add(self, disk: Disk) -> None:
        self._disks[disk.path] = disk

    def _of(self, path: str) -> Disk | None:
        return next((disk for home, disk in self._disks.items() if path.startswith(home)), None)

    # -- what storage calls --------------------------------------------------------------------

    def open(self, path: str, flags: int, mode: int = 0o777) -> int:
        disk = self._of(path)
        if disk is None:
            return os.open(path, flags, mode)
        if flags & (os.O_CREAT | os.O_TRUNC) and (flags & os.O_TRUNC or not os.path.exists(path)):
            disk.check(grows=True)
        fd = os.open(path, flags, mode)
        self._open[fd] = disk, path
        return fd

    def pread(self, fd: int, size: int, position: int) -> bytes:
        found = self._open.get(fd)
        if found is not None and found[0].unreadable:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return os.pread(fd, size, position)

    def preadv(self, fd: int, buffers: Sequence[memoryview], position: int) -> int:
        found = self._open.get(fd)
        if found is not None and found[0].unreadable:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return os.preadv(fd, buffers, position)

    def pwrite(self, fd: int, data: Bytes, position: int) -> int:
        found = self._open.get(fd)
        if found is None:
            return os.pwrite(fd, data, position)
        disk, path = found
        disk.check(grows=True)
        if disk.die_after is not None:
            disk.die_after -= 1
            if disk.die_after <= 0:
                disk.die_after = None
                torn = memoryview(data)[: disk._chance.randrange(len(data) + 1)]
                disk.note(fd, path, len(torn), position)
                os.pwrite(fd, torn, position)
                disk.kill()
                raise OSError(errno.EIO, "the process is dead")
        disk.note(fd, path, len(data), position)
        return os.pwrite(fd, data, position)

    def fsync(self, fd: int) -> None:
        found = self._open.get(fd)
        if found is None:
            return
        disk, path = found
        disk.check()
        if disk.fsync_fails:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        disk.unsynced.pop(path, None)

    def ftruncate(self, fd: int, size: int) -> None:
        found = self._open.get(fd)
        if found is not None:
            disk, path = found
            disk.check()
            length = os.fstat(fd).st_size
            disk.note(fd, path, max(0, length - size), size)
        os.ftruncate(fd, size)

    def rename(self, old: str, new: str) -> None:
        disk = self._of(old)
        if disk is not None:
            disk.check()
            moved = [path for path in disk.unsynced if path == old or path.startswith(old + "/")]
            disk.unsynced.pop(new, None)
            for path in moved:
                each = disk.unsynced.pop(path)
                each.path = new + path[len(old) :]
                disk.unsynced[each.path] = each
            for fd, (home, path) in list(self._open.items()):
                if home is disk and (path == old or path.startswith(old + "/")):
                    self._open[fd] = disk, new + path[len(old) :]
        os.rename(old, new)

    def unlink(self, path: str) -> None:
        disk = self._of(path)
        if disk is not None:
            disk.check()
            disk.unsynced.pop(path, None)
        os.unlink(path)

    def rmtree(self, path: str) -> None:
        disk = self._of(path)
        if disk is not None:
            disk.check()
            for each in [each for each in disk.unsynced if each.startswith(path + "/")]:
                del disk.unsynced[each]
        REAL["rmtree"](path)

    def copy(self, source: str, target: str) -> None:
        disk = self._of(target)
        if disk is not None:
            disk.check(grows=True)
        REAL["copy"](source, target)

    def sync_directory(self, path: str) -> None:
        disk = self._of(path + "/")
        if disk is not None:
            disk.check()

    def reserve(self, fd: int, position: int, size: int) -> bool:
        return True

    def lock(self, fd: int) -> None:
        """No two processes ever share a host here."""

    def unlock(self, fd: int, path: str) -> None:
        disk = self._of(path)
        if disk is not None:
            disk.check()
        os.unlink(path)


NAMES = (
    *("open", "pread", "preadv", "pwrite", "fsync", "ftruncate", "rename", "unlink", "rmtree", "copy"),
    *("sync_directory", "reserve", "lock", "unlock"),
)
REAL: dict[str, Any] = {name: getattr(system, name) for name in NAMES}


@contextmanager
def installed(disks: Disks) -> Iterator[None]:
    for name in NAMES:
        setattr(system, name, getattr(disks, name))
    log._pwrite = disks.pwrite  # it has a name of its own for it, since it is hot
    try:
        yield
    finally:
        for name, real in REAL.items():
            setattr(system, name, real)
        log._pwrite = REAL["pwrite"]
