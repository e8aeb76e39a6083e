"""Files where the system is in the way: it reads and writes only where the last call ended, and an open file can be
neither renamed nor removed, nor can the folder that it is in.

So descriptors are numbers of our own.  Behind each stands a descriptor of the system's, with a lock, because seeking
and reading are two calls; it can be closed under its holders, and is opened again at its path when one of them wants
something.  A rename closes all those of the file, or below the folder, renames, and tells them the new path.  A file
that is removed while somebody holds it is put aside under a name of its own, and goes with its last holder.

Two laws.  Who holds the lock of the table may wait for that of a descriptor, never the other way round.  And `close`
waits for nobody, because the garbage collector calls it wherever it likes: it notes the number, and whoever has
the table strikes it out."""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from threading import Event, Lock

FIRST_NUMBER = 1 << 20
"""Far from the system's own: one of ours that strays into a call of the system's is refused there."""

ASIDE = ".tmp"
"""What is put aside ends so: opening a log removes what a crash has left of those (`folder.py`)."""

ONCE = os.O_CREAT | os.O_EXCL | os.O_TRUNC
"""Asked for when a file is opened for the first time, not when it is opened again."""

AS_IT_IS = getattr(os, "O_BINARY", 0)
"""Windows would otherwise take bytes for text, and end lines in its own way."""

COPY_BYTES = 1 << 20

PAUSES_SECONDS = [0.001 * 2**turn for turn in range(10)]
"""Between attempts to rename or remove: a virus scanner or a search index may have the file open, and lets go of it
soon.  A second in all: an error after that takes the data directory offline."""

NEVER = Event()
"""Waiting for it is a pause."""


class Descriptor:
    """What a number stands for."""

    __slots__ = ("_fd", "_flags", "doomed", "lock", "path")

    def __init__(self, path: str, flags: int, mode: int) -> None:
        self.path = os.path.abspath(path)
        self.lock = Lock()
        """Held by whoever uses the descriptor, or closes it, or changes its path."""
        self._flags = flags & ~ONCE | AS_IT_IS
        self._fd: int | None = os.open(path, flags | AS_IT_IS, mode)
        self.doomed = False
        """The file was removed, and goes with the last that holds it."""

    def fd(self) -> int:
        """The system's own, open.  With the lock."""
        if self._fd is None:
            self._fd = os.open(self.path, self._flags)
        return self._fd

    def at(self, position: int) -> int:
        """The same, where the next call is to begin."""
        fd = self.fd()
        os.lseek(fd, position, os.SEEK_SET)
        return fd

    def rest(self) -> None:
        """Close it; who wants something opens it again.  With the lock."""
        if self._fd is not None:
            fd, self._fd = self._fd, None
            os.close(fd)


class Indirect:
    """See `System` for what each of them promises.  A flush holds up who reads or writes the same file."""

    def __init__(self, pause: Callable[[float], object] = NEVER.wait) -> None:
        self._pause = pause
        self._table = Lock()
        self._next = FIRST_NUMBER
        self._open: dict[int, Descriptor] = {}
        self._at: dict[str, list[Descriptor]] = {}
        """The same, by path."""
        self._let_go: deque[int] = deque()
        """Closed, and not struck out yet."""
        self._leaving: set[str] = set()
        """Folders that go with the last file in them."""

    # ---- descriptors -------------------------------------------------------------------------------------

    def open(self, path: str, flags: int, mode: int = 0o777) -> int:
        with self._alone():
            descriptor = Descriptor(path, flags, mode)
            number = self._next
            self._next += 1
            self._open[number] = descriptor
            self._at.setdefault(_key(descriptor.path), []).append(descriptor)
            return number

    def close(self, fd: int) -> None:
        self._let_go.append(fd)
        self._strike_out()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        try:
            with self._table:
                yield
        finally:
            self._strike_out()

    def _strike_out(self) -> None:
        """Forget what was let go.  Whoever else has the table does it when giving it back."""
        while self._let_go and self._table.acquire(blocking=False):
            try:
                while self._let_go:
                    self._forget(self._let_go.popleft())
            finally:
                self._table.release()

    def _forget(self, number: int) -> None:
        descriptor = self._open.pop(number)
        with descriptor.lock:
            descriptor.rest()
        if self._left(descriptor) or not descriptor.doomed:
            return
        with suppress(OSError):  # then it stays until the log is opened again
            os.unlink(descriptor.path)
            folder = os.path.dirname(descriptor.path)
            while _key(folder) in self._leaving:
                os.rmdir(folder)
                self._leaving.remove(_key(folder))
                folder = os.path.dirname(folder)

    def _left(self, descriptor: Descriptor) -> bool:
        """Take it from its path; whether others hold the file."""
        key = _key(descriptor.path)
        holders = self._at[key]
        holders.remove(descriptor)
        if not holders:
            del self._at[key]
        return bool(holders)

    # ---- reading and writing -----------------------------------------------------------------------------

    def pread(self, fd: int, size: int, position: int) -> bytes:
        descriptor = self._open[fd]
        with descriptor.lock:
            return os.read(descriptor.at(position), size)

    def preadv(self, fd: int, buffers: Sequence[memoryview], position: int) -> int:
        (buffer,) = buffers
        data = self.pread(fd, len(buffer), position)
        buffer[: len(data)] = data
        return len(data)

    def pwrite(self, fd: int, data: bytes | bytearray | memoryview, position: int) -> int:
        descriptor = self._open[fd]
        with descriptor.lock:
            return os.write(descriptor.at(position), data)

    def fsync(self, fd: int) -> None:
        descriptor = self._open[fd]
        with descriptor.lock:
            os.fsync(descriptor.fd())

    def ftruncate(self, fd: int, size: int) -> None:
        descriptor = self._open[fd]
        with descriptor.lock:
            os.ftruncate(descriptor.fd(), size)

    def fstat(self, fd: int) -> os.stat_result:
        descriptor = self._open[fd]
        with descriptor.lock:
            return os.fstat(descriptor.fd())

    def copy(self, source: str, target: str) -> None:
        """Through descriptors of ours, so that the folder can be renamed meanwhile."""
        reading = self.open(source, os.O_RDONLY)
        try:
            writing = self.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            try:
                position = 0
                while data := self.pread(reading, COPY_BYTES, position):
                    position += self.pwrite(writing, data, position)
                self.fsync(writing)
            finally:
                self.close(writing)
        finally:
            self.close(reading)

    def reserve(self, fd: int, position: int, size: int) -> bool:
        return False

    # ---- renaming and removing ---------------------------------------------------------------------------

    def rename(self, old: str, new: str) -> None:
        with self._alone():
            self._put_aside(new)
            self._move(self._held_in(old), old, new)

    def unlink(self, path: str) -> None:
        with self._alone():
            if not self._put_aside(path):
                self._patiently(lambda: os.unlink(path))

    def rmtree(self, path: str) -> None:
        """Not patient: what stays has a name that nobody wants."""
        for folder, _, files in os.walk(path, topdown=False):
            with self._alone():
                for name in files:
                    file = os.path.join(folder, name)
                    with suppress(OSError):
                        if not self._put_aside(file):
                            os.unlink(file)
                try:
                    os.rmdir(folder)
                except OSError:
                    self._leaving.add(_key(folder))

    def _held_in(self, path: str) -> list[Descriptor]:
        """Those of a file, or of all files below a folder."""
        key = _key(path)
        below = os.path.join(key, "")
        return self._at.get(key, [])[:] or [
            each for place in list(self._at) if place.startswith(below) for each in self._at.get(place, ())
        ]

    def _put_aside(self, path: str) -> bool:
        """Free the name of a file; it lives on for those who hold it.  False if nobody does."""
        held = self._at.get(_key(path), [])[:]
        if held and not held[0].doomed:
            self._next += 1
            self._move(held, path, f"{path}.{self._next}{ASIDE}")
            for each in held:
                each.doomed = True
        return bool(held)

    def _move(self, held: list[Descriptor], old: str, new: str) -> None:
        """Close, rename, and say so to those who hold it, or something in it."""
        old, new = os.path.abspath(old), os.path.abspath(new)
        with ExitStack() as locks:
            for each in held:
                locks.enter_context(each.lock)
                each.rest()
            self._patiently(lambda: os.replace(old, new))
            for each in held:
                self._left(each)
                each.path = new + each.path[len(old) :]
                self._at.setdefault(_key(each.path), []).append(each)

    def _patiently(self, action: Callable[[], None]) -> None:
        for seconds in PAUSES_SECONDS:
            try:
                return action()
            except PermissionError:
                self._pause(seconds)
        return action()

    def sync_directory(self, path: str) -> None:
        """Nothing: a directory cannot be opened, and when its changes reach the disk is the system's affair."""

    # ---- locks -------------------------------------------------------------------------------------------

    def lock(self, fd: int) -> None:
        """The first byte, which need not be there."""
        import msvcrt

        descriptor = self._open[fd]
        with descriptor.lock:
            msvcrt.locking(descriptor.at(0), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]

    def unlock(self, fd: int, path: str) -> None:
        descriptor = self._open[fd]
        with descriptor.lock:
            descriptor.rest()
        with suppress(FileNotFoundError, PermissionError):  # another broker may have come in between
            os.unlink(path)


def _key(path: str) -> str:
    """What a path is known by: on Windows, large and small letters are the same."""
    return os.path.normcase(os.path.abspath(path))
