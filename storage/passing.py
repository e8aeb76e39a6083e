"""What failed for lack of something, and works when there is more of it: it says nothing about the disk.

Everything else that the system refuses, EIO above all, is taken for a disk that nobody should write to any more."""

import errno

NO_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE})
"""This process, or the whole system, has no more of them.  Only what opens a file says so."""

NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT} if hasattr(errno, "EDQUOT") else {errno.ENOSPC})
"""The disk, or our share of it, is full."""

PASSING = NO_DESCRIPTORS | NO_SPACE | {errno.ENOMEM}
"""Memory comes back as the others do."""


def passes(error: OSError) -> bool:
    """Whether it may work later, with the files as they are.  Of a failed fsync nobody must ask this: after one it is
    not known what is on the disk, whatever the reason was."""
    return error.errno in PASSING


def lacks_descriptors(error: OSError) -> bool:
    """Whether a file could not be opened for lack of descriptors.  No fsync fails so."""
    return error.errno in NO_DESCRIPTORS


def lacks_space(error: OSError) -> bool:
    """Whether the disk is full."""
    return error.errno in NO_SPACE
