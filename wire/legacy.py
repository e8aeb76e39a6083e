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

from trilogue.wire.compression import INFLATED_CAP, Bytes, Codec, TooLarge, compress, decompress
from trilogue.wire.errors import BrokerError, ErrorCode, MalformedMessage
from trilogue.wire.records import CODEC_MASK, LOG_APPEND_TIME, LOG_OVERHEAD, NO_TIMESTAMP, Record, batches
from trilogue.wire.records import build as build_batch

_ENTRY = Struct(">qiI")
"""Offset, size, checksum; the size counts the checksum and what it covers."""
_CRC_SIZE = 4
_SHORTEST = 14
"""Checksum, magic, attributes and the lengths of a key and a value that are not there."""
_TIMESTAMP, _LENGTH = Struct(">q"), Struct(">i")

NO_LIMIT = 2**63 - 1
INSIDE_BYTES = 1 << 20
"""What one compressed message holds at most, but for its last: a batch may hold a million small records."""


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
        for inner in _inside(message, cap):
            yield Record(inner.offset, inner.timestamp, inner.key, inner.value)


def up_convert(buf: Bytes, *, cap: int = INFLATED_CAP, most: int = NO_LIMIT) -> bytearray:
    """One batch of everything in a message set that a producer sent; TooLarge above `most` messages.

    Offsets are counted anew: a producer's mean nothing.  The batch is compressed as the set was; what is
    compressed must be a single message, as for Kafka.  If any message claims log-append time, so does the
    batch, and whoever minds that in a batch will mind it here.
    """
    view = memoryview(buf)
    codec, stamp, count = Codec.NONE, None, 0
    for message in _messages(view):
        if codec or (message.codec and count):
            raise MalformedMessage("a compressed message that is not alone in its set")
        count += 1
        codec = message.codec
        if message.log_append_time:
            stamp = message.timestamp
    if not count:
        raise MalformedMessage("a message set without messages")
    # Read a second time, because there may be a million of them: as objects they take a hundred times their bytes.
    return build_batch(_counted(view, cap, most), codec=codec, log_append_time_ms=stamp)


def _counted(view: memoryview, cap: int, most: int) -> Iterator[Record]:
    number = 0
    for message in _messages(view):
        for inner in _inside(message, cap):
            if number == most:
                raise TooLarge(f"more than {most} messages")
            yield Record(number, inner.timestamp, inner.key, inner.value)
            number += 1


def down_convert(
    buf: Bytes,
    magic: int,
    first_offset: int = 0,
    *,
    cap: int = INFLATED_CAP,
    limit: int = NO_LIMIT,
    inside_limit: int = NO_LIMIT,
) -> bytearray:
    """Batches as message sets of an older magic, for a consumer that fetches from `first_offset`.

    Headers are dropped, timestamps too for magic 0, and control batches whole: old consumers know none of
    them.  What is compressed stays so, except that zstd came after these formats.  Records before `first_offset`
    are left out, where they are compressed some of them: consumers skip those by themselves.
    Ends with the message that reaches `limit` bytes, or `inside_limit` before compression: small records take five
    times as much in the old formats.  What is left of a batch that was cut off is passed over.
    """
    out = bytearray()
    inside = 0
    for batch in batches(buf, partial_ok=True):
        header = batch.header
        codec = header.codec
        if header.control:
            continue
        if codec is Codec.ZSTD:
            raise BrokerError(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
                f"records at {header.base_offset} are compressed with zstd, which magic {magic} has no code for",
            )
        stamp = header.max_timestamp if header.log_append_time else None
        for last, size, message in _built(batch.records(cap), magic, codec, stamp):
            if last >= first_offset:
                out += message
                inside += size
                if len(out) >= limit or inside >= inside_limit:
                    return out
    return out


def build(
    records: Iterable[Record],
    magic: int,
    *,
    codec: Codec = Codec.NONE,
    log_append_time_ms: int | None = None,
) -> bytes:
    """A message set; compressed, it is a single message with the others inside, or several if they are large."""
    return b"".join(message for _, _, message in _built(records, magic, codec, log_append_time_ms))


def _built(
    records: Iterable[Record], magic: int, codec: Codec, log_append_time_ms: int | None
) -> Iterator[tuple[int, int, bytes]]:
    """Message by message, each behind the last offset in it and its size before compression."""
    stamped = 0 if log_append_time_ms is None or magic == 0 else LOG_APPEND_TIME
    inside = bytearray()
    base, last, newest = 0, 0, NO_TIMESTAMP
    for offset, timestamp, key, value, _ in records:
        if log_append_time_ms is not None:
            timestamp = log_append_time_ms
        if not codec:
            message = _message(offset, magic, stamped, timestamp, key, value)
            yield offset, len(message), message
            continue
        if not inside:
            base, newest = offset if magic else 0, NO_TIMESTAMP
        inside += _message(offset - base, magic, stamped, timestamp, key, value)
        last, newest = offset, max(newest, timestamp)
        if len(inside) >= INSIDE_BYTES:
            yield last, len(inside), _wrapper(last, magic, stamped | codec, newest, inside)
            inside.clear()
    if inside:
        yield last, len(inside), _wrapper(last, magic, stamped | codec, newest, inside)


def _wrapper(offset: int, magic: int, attributes: int, timestamp: int, inside: bytearray) -> bytes:
    packed = compress(Codec(attributes & CODEC_MASK), inside, old_lz4=magic == 0)
    return _message(offset, magic, attributes, timestamp, None, packed)


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


def _inside(wrapper: _Message, cap: int) -> Iterator[_Message]:
    """The messages inside a compressed one, with their offsets in the log; a plain one is its own content."""
    if not wrapper.codec:
        yield wrapper
        return
    if wrapper.value is None:
        raise MalformedMessage("a compressed message without a value")
    inflated = decompress(wrapper.codec, wrapper.value, cap, old_lz4=wrapper.magic == 0)
    if not inflated:
        raise MalformedMessage("a compressed message with nothing inside")
    base = _base_offset(wrapper.offset, _last_offset(inflated)) if wrapper.magic else 0
    for message in _messages(inflated):
        if message.magic != wrapper.magic:
            raise MalformedMessage(f"a message of magic {message.magic} inside one of magic {wrapper.magic}")
        if message.codec:
            raise MalformedMessage("a compressed message inside a compressed message")
        timestamp = wrapper.timestamp if wrapper.log_append_time else message.timestamp
        yield message._replace(offset=base + message.offset, timestamp=timestamp)


def _last_offset(view: memoryview) -> int:
    """Of the last message, by hopping over all of them.  What makes no sense is for `_messages` to refuse."""
    at = offset = 0
    while len(view) - at >= _ENTRY.size:
        offset, size, _ = _ENTRY.unpack_from(view, at)
        if size < _SHORTEST:
            break
        at += LOG_OVERHEAD + size
    return offset


def _base_offset(wrapper: int, last: int) -> int:
    """Where messages inside a wrapper begin that count from zero and end at `last`."""
    if wrapper == 0:
        return 0  # many old producers leave it so
    if wrapper < last:
        raise MalformedMessage(f"a wrapper at offset {wrapper} around messages up to {last}")
    return wrapper - last
