"""Message sets, the record formats before batches: magic 0 (no timestamps) and magic 1.

Nothing here is stored: what old producers send (Produce 0-2) is converted up to one batch on its way in, and
what old consumers ask for (Fetch 0-3) is converted down on its way out.

A message set is messages behind their offsets and sizes, each with a CRC-32 of its own.  A compressed set is
one message whose value is a message set.  That wrapper carries the offset of the last message inside; the
messages inside count from zero (magic 1), or carry their offsets in the log (magic 0).
"""

from collections.abc import Iterable, Iterator
from struct import Struct
from struct import error as StructError
from typing import NamedTuple
from zlib import crc32

from trilogue.wire.compression import INFLATED_CAP, Bytes, Codec, compress, decompress
from trilogue.wire.errors import BrokerError, ErrorCode, MalformedMessage
from trilogue.wire.records import CODEC_MASK, LOG_APPEND_TIME, LOG_OVERHEAD, NO_TIMESTAMP, Record, batches
from trilogue.wire.records import build as build_batch

_ENTRY = Struct(">qiI")
"""Offset, size, checksum; the size counts the checksum and what it covers."""
_CRC_SIZE = 4
_SHORTEST = 14
"""Checksum, magic, attributes and the lengths of a key and a value that are not there."""
_TIMESTAMP, _LENGTH = Struct(">q"), Struct(">i")


class _Message(NamedTuple):
    offset: int
    magic: int
    codec: Codec
    log_append_time: bool
    timestamp: int
    key: memoryview | None
    value: memoryview | None


def records(buf: Bytes, *, cap: int = INFLATED_CAP, partial_ok: bool = False) -> Iterator[Record]:
    """All records of a message set, at their offsets in the log, checksums compared.

    `cap` bounds what each compressed message inflates to.
    With `partial_ok` what is left of a message that was cut off at the end is passed over in silence.
    """
    for message in _messages(memoryview(buf), partial_ok):
        for inner in _unwrapped(message, cap):
            yield Record(inner.offset, inner.timestamp, inner.key, inner.value)


def up_convert(buf: Bytes, *, cap: int = INFLATED_CAP) -> bytearray:
    """One batch of everything in a message set that a producer sent.

    Offsets are counted anew: a producer's mean nothing.  The batch is compressed as the set was; what is
    compressed must be a single message, as for Kafka.  If any message claims log-append time, so does the
    batch, and whoever minds that in a batch will mind it here.
    """
    codec, stamp = Codec.NONE, None
    converted: list[Record] = []
    for message in _messages(memoryview(buf)):
        if codec or (message.codec and converted):
            raise MalformedMessage("a compressed message that is not alone in its set")
        codec = message.codec
        if message.log_append_time:
            stamp = message.timestamp
        for inner in _unwrapped(message, cap):
            converted.append(Record(len(converted), inner.timestamp, inner.key, inner.value))
    if not converted:
        raise MalformedMessage("a message set without messages")
    return build_batch(converted, codec=codec, log_append_time_ms=stamp)


def down_convert(buf: Bytes, magic: int, first_offset: int = 0, *, cap: int = INFLATED_CAP) -> bytearray:
    """Batches as message sets of an older magic, for a consumer that fetches from `first_offset`.

    Headers are dropped, timestamps too for magic 0, and control batches whole: old consumers know none of
    them.  What is compressed stays so, except that zstd came after these formats.  Uncompressed records
    before `first_offset` are left out; where they are compressed, consumers skip them by themselves.
    """
    out = bytearray()
    for batch in batches(buf):
        header = batch.header
        codec = header.codec
        if header.control:
            continue
        if codec is Codec.ZSTD:
            raise BrokerError(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
                f"records at {header.base_offset} are compressed with zstd, which magic {magic} has no code for",
            )
        kept = [record for record in batch.records(cap) if codec or record.offset >= first_offset]
        stamp = header.max_timestamp if header.log_append_time else None
        out += build(kept, magic, codec=codec, log_append_time_ms=stamp)
    return out


def build(
    records: Iterable[Record],
    magic: int,
    *,
    codec: Codec = Codec.NONE,
    log_append_time_ms: int | None = None,
) -> bytes:
    """A message set; compressed, it is a single message with the others inside."""
    parts: list[bytes] = []
    stamped = 0 if log_append_time_ms is None or magic == 0 else LOG_APPEND_TIME
    base, last, newest = None, 0, NO_TIMESTAMP
    for record in records:
        last = record.offset
        if base is None:
            base = last if codec and magic else 0
        timestamp = record.timestamp if log_append_time_ms is None else log_append_time_ms
        newest = max(newest, timestamp)
        parts.append(_message(last - base, magic, stamped, timestamp, record.key, record.value))
    if codec and parts:
        packed = compress(codec, b"".join(parts), old_lz4=magic == 0)
        return _message(last, magic, stamped | codec, newest, None, packed)
    return b"".join(parts)


def _message(offset: int, magic: int, attributes: int, timestamp: int, key: Bytes | None, value: Bytes | None) -> bytes:
    message = b"".join(
        (
            bytes((magic, attributes)),
            _TIMESTAMP.pack(timestamp) if magic else b"",
            _LENGTH.pack(-1 if key is None else len(key)),
            key or b"",
            _LENGTH.pack(-1 if value is None else len(value)),
            value or b"",
        )
    )
    return _ENTRY.pack(offset, _CRC_SIZE + len(message), crc32(message)) + message


def _messages(view: memoryview, partial_ok: bool = False) -> Iterator[_Message]:
    at, end = 0, len(view)
    while at < end:
        if end - at < _ENTRY.size:
            if partial_ok:
                return
            raise MalformedMessage(f"a message begins with {_ENTRY.size} bytes, {end - at} left")
        offset, size, checksum = _ENTRY.unpack_from(view, at)
        start, at = at + _ENTRY.size, at + LOG_OVERHEAD + size
        if size < _SHORTEST:
            raise MalformedMessage(f"a message of {size} bytes, which cannot be less than {_SHORTEST}")
        if at > end:
            if partial_ok:
                return
            raise MalformedMessage(f"a message of {size} bytes, {end - start + _CRC_SIZE} left")
        message = view[start:at]
        if message[0] not in (0, 1):
            raise MalformedMessage(f"a message of magic {message[0]}, not 0 or 1")
        if crc32(message) != checksum:
            raise MalformedMessage(f"the message at offset {offset} does not match its checksum")
        yield _read(offset, message)


def _read(offset: int, message: memoryview) -> _Message:
    """`message` is what the checksum covers: magic, attributes, timestamp, key and value."""
    magic, attributes = message[0], message[1]
    codec = attributes & CODEC_MASK
    if codec >= Codec.ZSTD:
        raise MalformedMessage(f"compression {codec} in a message of magic {magic}, which has none such")
    at = 2
    timestamp = NO_TIMESTAMP
    if magic:
        (timestamp,) = _unpack(_TIMESTAMP, message, at)
        at += _TIMESTAMP.size
    key, at = _part(message, at)
    value, at = _part(message, at)
    if at != len(message):
        raise MalformedMessage(f"{len(message) - at} bytes left after a message's value")
    stamped = magic > 0 and attributes & LOG_APPEND_TIME != 0
    return _Message(offset, magic, Codec(codec), stamped, timestamp, key, value)


def _part(message: memoryview, at: int) -> tuple[memoryview | None, int]:
    (length,) = _unpack(_LENGTH, message, at)
    at += _LENGTH.size
    if length < 0:
        return None, at
    if length > len(message) - at:
        raise MalformedMessage(f"a key or value of {length} bytes, {len(message) - at} left")
    return message[at : at + length], at + length


def _unpack(form: Struct, message: memoryview, at: int) -> tuple[int, ...]:
    try:
        return form.unpack_from(message, at)
    except StructError:
        raise MalformedMessage(f"{form.size} bytes expected in a message, {len(message) - at} left") from None


def _unwrapped(wrapper: _Message, cap: int) -> list[_Message]:
    """The messages inside a compressed one, with their offsets in the log; a plain one is its own content."""
    if not wrapper.codec:
        return [wrapper]
    if wrapper.value is None:
        raise MalformedMessage("a compressed message without a value")
    inflated = decompress(wrapper.codec, wrapper.value, cap, old_lz4=wrapper.magic == 0)
    inside = list(_messages(inflated))
    if not inside:
        raise MalformedMessage("a compressed message with nothing inside")
    base = _base_offset(wrapper.offset, inside[-1].offset) if wrapper.magic else 0
    unwrapped = []
    for message in inside:
        if message.magic != wrapper.magic:
            raise MalformedMessage(f"a message of magic {message.magic} inside one of magic {wrapper.magic}")
        if message.codec:
            raise MalformedMessage("a compressed message inside a compressed message")
        timestamp = wrapper.timestamp if wrapper.log_append_time else message.timestamp
        unwrapped.append(message._replace(offset=base + message.offset, timestamp=timestamp))
    return unwrapped


def _base_offset(wrapper: int, last: int) -> int:
    """Where messages inside a wrapper begin that count from zero and end at `last`."""
    if wrapper == 0:
        return 0  # many old producers leave it so
    if wrapper < last:
        raise MalformedMessage(f"a wrapper at offset {wrapper} around messages up to {last}")
    return wrapper - last
