"""The small text files: offsets per partition, leader epochs, meta.properties, partition.metadata.

A checkpoint is a version (always 0), a count, and as many lines; it is replaced as a whole.  A damaged one is
worth nothing and is reported as such by `DamagedFile`: whoever asked knows how to do without."""

import re
from collections.abc import Iterable, Mapping

from trilogue.storage.files import read_file, replace_file
from trilogue.wire.ids import uuid_bytes, uuid_text

VERSION = 0

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
CLEANED_TO = "cleaner-offset-checkpoint"

META_PROPERTIES = "meta.properties"
META_VERSION = 1

Partition = tuple[str, int]


class DamagedFile(Exception):
    """A side file does not hold what it should."""


def render_lines(rows: Iterable[tuple[object, ...]]) -> bytes:
    """A checkpoint's text from its rows."""
    lines = [" ".join(map(str, row)) for row in rows]
    return "".join(f"{line}\n" for line in (VERSION, len(lines), *lines)).encode()


def parse_lines(content: bytes, width: int) -> list[list[str]]:
    """A checkpoint's rows, each of `width` words.  Nothing at all is an empty checkpoint: Kafka creates them
    so."""
    if not content:
        return []
    try:
        version, count, *lines = content.decode("ascii").splitlines()
        rows = [line.split() for line in lines]
        sound = int(version) == VERSION and int(count) == len(rows) and all(len(row) == width for row in rows)
    except ValueError as error:
        raise DamagedFile(str(error)) from None
    if not sound:
        raise DamagedFile(f"version {version}, {count} entries declared, {len(rows)} found")
    return rows


def write_offsets(path: str, offsets: Mapping[Partition, int]) -> None:
    """Replace a checkpoint of offsets."""
    replace_file(path, render_lines((topic, partition, offset) for (topic, partition), offset in offsets.items()))


def read_offsets(path: str) -> dict[Partition, int]:
    """A checkpoint of offsets; empty where there is none."""
    try:
        rows = [
            (topic, int(partition), int(offset)) for topic, partition, offset in parse_lines(read_file(path) or b"", 3)
        ]
    except ValueError as error:
        raise DamagedFile(str(error)) from None
    if any(offset < 0 for _, _, offset in rows):
        raise DamagedFile("a negative offset")
    return {(topic, partition): offset for topic, partition, offset in rows}


def parse_id(text: str) -> bytes:
    """An id as Kafka spells it; DamagedFile for what is none."""
    try:
        return uuid_bytes(text)
    except ValueError as error:
        raise DamagedFile(str(error)) from None


def write_partition_metadata(path: str, topic_id: bytes) -> None:
    """Say which topic a partition's folder belongs to; a topic made anew under the same name has another
    id."""
    replace_file(path, f"version: {VERSION}\ntopic_id: {uuid_text(topic_id)}".encode())


def read_partition_metadata(path: str) -> bytes | None:
    """The topic's id, or None where the file is missing."""
    content = read_file(path)
    if content is None:
        return None
    match = re.fullmatch(rb"version: (\d+)\r?\ntopic_id: (\S+)\s*", content)
    if not match or int(match[1]) != VERSION:
        raise DamagedFile("not a version 0 partition.metadata")
    return parse_id(match[2].decode("ascii", "replace"))


def write_properties(path: str, values: Mapping[str, str]) -> None:
    """Replace a Java properties file.  Our values need no escaping: digits, names and base64."""
    replace_file(path, "".join(f"{name}={value}\n" for name, value in values.items()).encode())


def read_properties(path: str) -> dict[str, str]:
    """A Java properties file without its finer points; empty where there is none."""
    values = {}
    for line in (read_file(path) or b"").decode("latin-1").splitlines():
        if (stripped := line.strip()) and not stripped.startswith(("#", "!")):
            name, _, value = stripped.partition("=")
            values[name.strip()] = value.strip()
    return values
