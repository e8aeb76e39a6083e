"""Records looked at without being made: whether bytes hold them, and what they say of themselves.

To make a record costs a microsecond and half a kilobyte, most of it for views of its key and value.  Whoever only asks
how many there are, when they were made and whether they have keys, asks here.
"""

from collections.abc import Iterator

from trilogue.wire.errors import MalformedMessage
from trilogue.wire.records import HEADERS_MAX, LOG_APPEND_TIME, NO_TIMESTAMP, Header, wrapped
from trilogue.wire.varint import LONG_BYTES, SHORT, read, rest

SHORTEST_RECORD = 7
"""Its length, attributes, two deltas, no key, no value, no headers: a byte each."""

Seen = tuple[int, int, bool]
"""Offset, timestamp, and whether there is a key."""


def add_up(data: memoryview, header: Header) -> bool:
    """Whether the records fill the bytes by their lengths, and the first and the last are what the header says."""
    count = header.count
    if count < 1 or count * SHORTEST_RECORD > len(data):
        return False
    at = last = 0
    try:
        for _ in range(count):
            last = at
            if (size := data[at]) < 0x80:
                at += (size >> 1) + 1
            elif (more := data[at + 1]) < 0x80:
                at += ((size & 0x7F | more << 7) >> 1) + 2
            else:
                size, at = rest(data, at + 1, size)
                if size < 0:
                    return False
                at += size
        return at == len(data) and _agrees(data, 0, 0, header) and _agrees(data, last, count - 1, header)
    except (IndexError, MalformedMessage):
        return False


def _agrees(data: memoryview, at: int, number: int, header: Header) -> bool:
    timestamp, offset, _, _ = _one(data, at)
    return offset == number and NO_TIMESTAMP <= header.base_timestamp + timestamp <= header.max_timestamp


def skim(data: memoryview, header: Header) -> Iterator[Seen]:
    """What each record says, in their order; MalformedMessage where there is none."""
    base_offset, base_timestamp, count = header.base_offset, header.base_timestamp, header.count
    stamp = header.max_timestamp if header.attributes & LOG_APPEND_TIME else None
    at = 0
    try:
        for _ in range(count):
            timestamp, offset, keyed, at = _one(data, at)
            timestamp += base_timestamp
            if not -0x8000_0000_0000_0000 <= timestamp <= 0x7FFF_FFFF_FFFF_FFFF:
                timestamp = wrapped(timestamp)
            yield base_offset + offset, timestamp if stamp is None else stamp, keyed
    except IndexError:
        raise MalformedMessage(f"{count} records declared, and the bytes end before the last") from None
    if at != len(data):
        raise MalformedMessage(f"{len(data) - at} bytes left after the last of {count} records")


def _one(data: memoryview, at: int) -> tuple[int, int, bool, int]:
    """The deltas of a record, whether it has a key, and where it ends; IndexError past the end."""
    if (size := data[at]) < 0x80:
        size = SHORT[size]
        at += 1
    else:
        size, at = rest(data, at + 1, size)
    end = at + size
    at += 1  # attributes
    if (timestamp := data[at]) < 0x80:
        timestamp = SHORT[timestamp]
        at += 1
    else:
        timestamp, at = rest(data, at + 1, timestamp, LONG_BYTES)
    if (offset := data[at]) < 0x80:
        offset = SHORT[offset]
        at += 1
    else:
        offset, at = rest(data, at + 1, offset)
    if (length := data[at]) < 0x80:
        length = SHORT[length]
        at += 1
    else:
        length, at = rest(data, at + 1, length)
    keyed = length >= 0
    if keyed:
        at += length
    if (length := data[at]) < 0x80:
        length = SHORT[length]
        at += 1
    else:
        length, at = rest(data, at + 1, length)
    if length >= 0:
        at += length
    at = _past_headers(data, at) if data[at] else at + 1
    if at != end:
        raise MalformedMessage(f"a record of {size} bytes ends after {at - end + size}")
    return timestamp, offset, keyed, at


def _past_headers(data: memoryview, at: int) -> int:
    count, at = read(data, at)
    if not 0 <= count <= min(len(data) - at, HEADERS_MAX):
        raise MalformedMessage(f"{count} headers declared, {len(data) - at} bytes left, {HEADERS_MAX} at most")
    for _ in range(count):
        length, at = read(data, at)
        if length < 0:
            raise MalformedMessage("a header without a name")
        length, at = read(data, at + length)
        if length > 0:
            at += length
    return at
