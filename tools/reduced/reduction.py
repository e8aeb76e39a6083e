"""Takes away what Windows lacks, and refuses what it refuses: stand-ins where the real thing cannot be had.

What is ours must do without.  Other people's code is spared where it rightly believes to be on Linux: it is imported
first, or gets the true modules (`spare`).  Nothing here knows trilogue."""

import ctypes
import errno
import fcntl
import importlib.abc
import importlib.machinery
import os
import select
import selectors  # before `select` loses what the best selectors are made of
import shutil
import socket
import stat
import subprocess  # noqa: F401  before there is an `msvcrt`, by which it would know Windows
import sys
import tempfile
import types

import standin_msvcrt

GONE_FROM_OS = [
    *("pread", "preadv", "pwrite", "pwritev", "readv", "writev", "sendfile", "copy_file_range", "splice"),
    *("posix_fallocate", "posix_fadvise", "statvfs", "fstatvfs", "eventfd", "memfd_create", "pipe2", "mkfifo", "fork"),
    *("O_CLOEXEC", "O_DIRECTORY", "O_NONBLOCK", "O_SYNC", "O_DSYNC", "set_blocking", "get_blocking"),
]
GONE_FROM_SELECT = ["epoll", "poll", *(name for name in dir(select) if name.startswith(("EPOLL", "POLL")))]
GONE_FROM_SOCKET = ["AF_UNIX", "MSG_DONTWAIT", "MSG_MORE", "MSG_NOSIGNAL", "TCP_CONGESTION", "SO_REUSEPORT"]
GONE_FROM_SOCKETS = ["sendmsg", "recvmsg", "recvmsg_into"]
GONE_MODULES = ["fcntl", "resource", "termios"]

MEMORY = "/dev/shm"
TRIOS_OWN = ("trio._core._run", "trio._core._io_epoll", "trio._socket")


def copy_of(module: types.ModuleType) -> types.ModuleType:
    made = types.ModuleType(module.__name__)
    vars(made).update(vars(module))
    return made


true_os, true_select = copy_of(os), copy_of(select)


def apply() -> None:
    spare()
    take_away()
    refuse()


def spare() -> None:
    """What the standard library and trio do on Linux, and would not do on Windows."""
    selectors.select = true_select  # type: ignore[attr-defined]
    tempfile._os = true_os  # type: ignore[attr-defined]  # it removes files while they are open
    for fast in ("_USE_CP_SENDFILE", "_USE_CP_COPY_FILE_RANGE", "_use_fd_functions"):  # the second from 3.14 on
        setattr(shutil, fast, False)
    if hasattr(shutil, "_rmtree_impl"):  # from 3.14 on it is chosen when shutil is imported
        shutil._rmtree_impl = shutil._rmtree_unsafe  # type: ignore[attr-defined]
    shutil.disk_usage = disk_usage  # type: ignore[assignment]
    sys.meta_path.insert(0, TrioHasItsEpoll())


def take_away() -> None:
    for module, names in ((os, GONE_FROM_OS), (select, GONE_FROM_SELECT), (socket, GONE_FROM_SOCKET)):
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
        if hasattr(module, "__all__"):
            module.__all__ = [name for name in module.__all__ if hasattr(module, name)]
    for name in GONE_FROM_SOCKETS:
        setattr(socket.socket, name, NotThere(getattr(socket.socket, name)))
    for name in GONE_MODULES:
        sys.modules[name] = None  # type: ignore[assignment]  # that is what makes an import fail
    sys.modules["msvcrt"] = standin_msvcrt
    socket.socketpair = socketpair
    ctypes.CDLL = Library  # type: ignore[misc]


def refuse() -> None:
    os.open, os.fsync = open_, fsync
    os.rename, os.replace = rename, replace
    os.unlink = os.remove = unlink
    os.rmdir = rmdir
    select.select = select_


class NotThere:
    """An attribute that neither a class nor its instances have; but for trio, while it is imported."""

    spared = False

    def __init__(self, true: object) -> None:
        self._true = true

    def __get__(self, instance: object, owner: type) -> object:
        if not NotThere.spared:
            raise AttributeError("it is not there")
        return self._true


class Library(ctypes.CDLL):
    """There is no library that is the process itself; so no timerfd, and no fallocate."""

    def __init__(self, name: str | None, *more: object, **named: object) -> None:
        if name is None:
            raise TypeError("bad argument type for built-in operation")
        super().__init__(name, *more, **named)  # type: ignore[arg-type]


class TrioHasItsEpoll(importlib.abc.MetaPathFinder):
    """On Windows trio has another way to wait, which is not to be had here; and it asks for the name of the system."""

    def find_spec(self, name, path, target=None):  # type: ignore[no-untyped-def]
        spec = importlib.machinery.PathFinder.find_spec(name, path, target) if name in TRIOS_OWN else None
        if spec is not None:
            run = spec.loader.exec_module

            def exec_module(module: types.ModuleType) -> None:
                before, NotThere.spared = NotThere.spared, True
                sys.modules["select"] = true_select
                try:
                    run(module)
                finally:
                    NotThere.spared = before
                    sys.modules["select"] = true_select if before else select

            spec.loader.exec_module = exec_module
        return spec


# ---- files -------------------------------------------------------------------------------------------------------


def refused(path: object, why: str) -> PermissionError:
    return PermissionError(errno.EACCES, why, os.fspath(path))  # type: ignore[call-overload]


def demand_closed(path: object) -> None:
    """Neither the file nor anything below the folder is open in this process."""
    place = os.path.realpath(os.path.dirname(os.path.abspath(path)))  # type: ignore[call-overload]
    wanted = os.path.join(place, os.path.basename(os.path.abspath(path)))  # type: ignore[call-overload]
    for number in true_os.listdir("/proc/self/fd"):
        try:
            found = true_os.readlink(f"/proc/self/fd/{number}")
        except FileNotFoundError:
            continue  # that which lists them, or one of another thread
        if found == wanted or found.startswith(wanted + "/"):
            raise refused(path, f"it is open, or something in it is: {found}")


def open_(path, flags, mode=0o777, *, dir_fd=None):  # type: ignore[no-untyped-def]
    fd = true_os.open(path, flags, mode, dir_fd=dir_fd)
    if stat.S_ISDIR(true_os.fstat(fd).st_mode):
        true_os.close(fd)
        raise refused(path, "a directory cannot be opened")
    return fd


def fsync(fd: int) -> None:
    """Whether it would be taken; nobody pulls the plug."""
    if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        raise OSError(errno.EBADF, "only what can be written can be synced")


def rename(old, new, **more):  # type: ignore[no-untyped-def]
    if os.path.lexists(new):
        raise FileExistsError(errno.EEXIST, "rename does not replace", os.fspath(old), None, os.fspath(new))
    replace(old, new, **more)


def replace(old, new, **more):  # type: ignore[no-untyped-def]
    demand_closed(old)
    demand_closed(new)
    if os.path.isdir(new):
        raise refused(new, "a directory cannot be replaced")
    true_os.replace(old, new, **more)


def unlink(path, **more):  # type: ignore[no-untyped-def]
    demand_closed(path)
    true_os.unlink(path, **more)


def rmdir(path, **more):  # type: ignore[no-untyped-def]
    demand_closed(path)
    true_os.rmdir(path, **more)


def disk_usage(path: str) -> tuple[int, int, int]:
    if str(path).startswith(MEMORY):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    found = true_os.statvfs(path)
    total, free = found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize
    return shutil._ntuple_diskusage(total, total - found.f_bfree * found.f_frsize, free)  # type: ignore[attr-defined]


# ---- sockets -----------------------------------------------------------------------------------------------------


def select_(readable, writable, odd, timeout=None):  # type: ignore[no-untyped-def]
    waited = [*readable, *writable, *odd]
    if not waited:
        raise OSError(errno.EINVAL, "there is nothing to wait for")
    for each in waited:
        number = each if isinstance(each, int) else each.fileno()
        if not stat.S_ISSOCK(true_os.fstat(number).st_mode):
            raise OSError(errno.ENOTSOCK, "select takes sockets only")
    return true_select.select(readable, writable, odd, timeout)


def socketpair(family=socket.AF_INET, kind=socket.SOCK_STREAM, protocol=0):  # type: ignore[no-untyped-def]
    """Two ends of a connection through the loopback address, as on Windows."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        one = socket.create_connection(server.getsockname())
        other, _ = server.accept()
    return one, other
