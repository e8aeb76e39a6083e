"""`msvcrt.locking` as far as storage uses it, built on `flock`: a second taker is refused, in this process too, and a
lock ends with its descriptor."""

import fcntl

LK_UNLCK, LK_LOCK, LK_NBLCK = 0, 1, 2


def locking(fd: int, mode: int, size: int) -> None:
    operation = {LK_UNLCK: fcntl.LOCK_UN, LK_LOCK: fcntl.LOCK_EX, LK_NBLCK: fcntl.LOCK_EX | fcntl.LOCK_NB}[mode]
    try:
        fcntl.flock(fd, operation)
    except BlockingIOError as error:
        raise PermissionError(error.errno, error.strerror) from None
