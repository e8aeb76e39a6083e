"""What the files and folders of a log are called.  Kafka's names: its tools look for them."""

import re

LOG, INDEX, TIMEINDEX, TXNINDEX, SNAPSHOT = ".log", ".index", ".timeindex", ".txnindex", ".snapshot"
SEGMENT_FILES = (LOG, INDEX, TIMEINDEX, TXNINDEX)

DELETED, CLEANED, SWAP = ".deleted", ".cleaned", ".swap"
"""Suffixes of files on their way out (awaiting deletion), in the making (compaction), on their way in."""

EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"

DELETE_FOLDER = "-delete"
FOLDER_NAME_LIMIT = 255
"""Of a file system; a deleted partition's folder gives up the end of its topic's name rather than exceed
it."""

_FOLDER = re.compile(r"(?P<topic>[a-zA-Z0-9._-]{1,249})-(?P<partition>0|[1-9][0-9]{0,9})")
_NUMBERED = re.compile(r"[0-9]{20}")


def numbered(offset: int, suffix: str) -> str:
    """`00000000000000000042.log`: twenty digits, so that names sort as their offsets do."""
    return f"{offset:020d}{suffix}"


def offset_of(name: str) -> int | None:
    """The offset in the name of a segment's file or a snapshot, or None if it is neither."""
    digits, dot, _ = name.partition(".")
    return int(digits) if dot and _NUMBERED.fullmatch(digits) else None


def folder(topic: str, partition: int) -> str:
    """The folder of a partition."""
    return f"{topic}-{partition}"


def parse_folder(name: str) -> tuple[str, int] | None:
    """Topic and partition, or None for a folder of another kind (`-delete`, `-future`, `-stray`,
    metadata)."""
    match = _FOLDER.fullmatch(name)
    return (match["topic"], int(match["partition"])) if match else None


def deleted_folder(topic: str, partition: int, unique: str) -> str:
    """The folder that a partition's files wait in for their deletion.  `unique` is 32 hex digits."""
    tail = f"-{partition}.{unique}{DELETE_FOLDER}"
    return topic[: FOLDER_NAME_LIMIT - len(tail)] + tail
