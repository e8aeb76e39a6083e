"""Record batches, version 2: header, checksum, iterate, build.

A batch is a header of 61 bytes and records behind it, compressed as one or not at all.  The first 21 bytes
(base offset, length, leader epoch, magic, checksum) lie outside the checksum, so that a broker can give a
batch its place in the log without touching what the producer signed.

Reading copies nothing: a `Batch` is a view of the bytes it came from, and so are the keys and values of its
records unless they had to be inflated.  They live as long as that buffer keeps its content.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from struct import Struct
from struct import error as StructError
from typing import NamedTuple

from trilogue.wire.compression import INFLATED_CAP, Bytes, Codec, compress, decompress
from trilogue.wire.errors import MalformedMessage
from trilogue.wire.varint import LONG_BYTES, SHORT, encode, read, rest

Headers = Sequence[tuple[str, Bytes | None]]

MAGIC = 2
HEADER_SIZE = 61
LOG_OVERHEAD = 12
"""Base offset and length: what stands before the bytes that `batch_length` counts."""
CHECKED_FROM = 21
"""Where the part under the checksum begins: at the attributes."""

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_LEADER_EPOCH = -1

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40

HEADERS_MAX = 10_000
"""Of one record.  An honest one has dozens; a mebibyte of zeros says half a million, and each takes a hundred times as
much as an object."""

_FAR_FROM_THE_EDGE = 2**62
"""A time that is no further from zero does not leave 64 bits by a delta of two bytes."""

_HEADER = Struct(">qiibIhiqqqhii")
_BASE_OFFSET, _LEADER_EPOCH = Struct(">q"), Struct(">i")
_CRC, _CRC_AT = Struct(">I"), 17
_ATTRIBUTES = Struct(">h")
_MAX_TIMESTAMP, _MAX_TIMESTAMP_AT = Struct(">q"), 35
_NULL = encode(-1)
_LAST_CODEC = int(Codec.ZSTD)


def _first_checksum(data: memoryview) -> int:
    """Loads crc32c and steps aside: the package takes 40 ms to import, and not everybody needs it."""
    global checksum
    import crc32c

    checksum = crc32c.crc32c
    return checksum(data)


checksum: Callable[[memoryview], int] = _first_checksum


class Header(NamedTuple):
    """The fixed part of a batch, as it stands in the bytes."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody asks of a header

    @property
    def size(self) -> int:
        return self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Counts over the whole range of offsets, gaps included; after 2^31-1 comes 0."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        last = self.base_sequence + self.last_offset_delta
        return last if last < 2**31 else last - 2**31

    @property
    def codec(self) -> Codec:
        return Codec(self.attributes & CODEC_MASK)

    @property
    def log_append_time(self) -> bool:
        return self.attributes & LOG_APPEND_TIME != 0

    @property
    def transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL != 0

    @property
    def control(self) -> bool:
        return self.attributes & CONTROL != 0

    @property
    def has_delete_horizon(self) -> bool:
        """Then `base_timestamp` says from when on tombstones and markers in here may go (KIP-534)."""
        return self.attributes & DELETE_HORIZON != 0


class Record(NamedTuple):
    offset: int
    timestamp: int
    key: Bytes | None
    value: Bytes | None
    headers: Headers = ()
    """Their names are text by agreement only; bytes that are not survive as lone surrogates."""


def wrapped(number: int) -> int:
    """As Java adds: what goes beyond 64 bits comes back from the other side."""
    return (number + 0x8000_0000_0000_0000 & 0xFFFF_FFFF_FFFF_FFFF) - 0x8000_0000_0000_0000


class Batch:
    """A header and the bytes of its batch: exactly those, and not a copy of them."""

    __slots__ = ("header", "view")

    def __init__(self, header: Header, view: memoryview) -> None:
        self.header = header
        self.view = view

    def __repr__(self) -> str:
        return f"Batch({self.header})"

    def crc_ok(self) -> bool:
        return checksum(self.view[CHECKED_FROM:]) == self.header.crc

    def records(self, cap: int = INFLATED_CAP) -> Iterator[Record]:
        """One by one, inflating if need be, up to `cap` bytes.  The checksum is not looked at."""
        return walk(self.inflated(cap), self.header)

    def inflated(self, cap: int = INFLATED_CAP) -> memoryview:
        """The bytes of its records."""
        data = self.view[HEADER_SIZE:]
        return decompress(self.header.codec, data, cap) if self.header.attributes & CODEC_MASK else data


def walk(data: memoryview, header: Header) -> Iterator[Record]:
    """The records of a batch in their inflated bytes."""
    base = header.base_timestamp
    if -_FAR_FROM_THE_EDGE <= base <= _FAR_FROM_THE_EDGE:
        return _walk(data, header)
    records = _walk(data, header._replace(base_timestamp=0))
    if header.attributes & LOG_APPEND_TIME:
        return records
    return (record._replace(timestamp=wrapped(base + record.timestamp)) for record in records)


def _walk(data: memoryview, header: Header) -> Iterator[Record]:
    # The hot loop: varints of one byte and, where they are common, of two are read in line, the others by
    # `rest`.  A record's parts are sliced before it is known that they lie inside it: slicing past the end
    # does no harm, `at` only grows, and the record is given out only if it ends where it said it would.
    base_offset, base_timestamp, count = header.base_offset, header.base_timestamp, header.count
    stamp = header.max_timestamp if header.attributes & LOG_APPEND_TIME else None
    new, short, make = tuple.__new__, SHORT, Record
    headers: Headers
    at = 0
    try:
        for _ in range(count):
            if (size := data[at]) < 0x80:
                size = short[size]
                at += 1
            elif (more := data[at + 1]) < 0x80 and not size & 1:
                size = (size & 0x7F | more << 7) >> 1
                at += 2
            else:
                size, at = rest(data, at + 1, size)
            end = at + size
            at += 1  # attributes, of which there are none yet
            if (timestamp := data[at]) < 0x80:
                timestamp = short[timestamp]
                at += 1
            elif (more := data[at + 1]) < 0x80 and not timestamp & 1:
                timestamp = (timestamp & 0x7F | more << 7) >> 1
                at += 2
            else:
                timestamp, at = rest(data, at + 1, timestamp, LONG_BYTES)
                timestamp = wrapped(base_timestamp + timestamp) - base_timestamp
            if (offset := data[at]) < 0x80:
                offset = short[offset]
                at += 1
            elif (more := data[at + 1]) < 0x80 and not offset & 1:
                offset = (offset & 0x7F | more << 7) >> 1
                at += 2
            else:
                offset, at = rest(data, at + 1, offset)
            if (length := data[at]) < 0x80:
                length = short[length]
                at += 1
            else:
                length, at = rest(data, at + 1, length)
            key = value = None
            if length >= 0:
                start = at
                at += length
                key = data[start:at]
            if (length := data[at]) < 0x80:
                length = short[length]
                at += 1
            elif (more := data[at + 1]) < 0x80 and not length & 1:
                length = (length & 0x7F | more << 7) >> 1
                at += 2
            else:
                length, at = rest(data, at + 1, length)
            if length >= 0:
                start = at
                at += length
                value = data[start:at]
            if data[at]:
                headers, at = _headers(data, at)
            else:
                headers = ()
                at += 1
            if at != end:
                raise MalformedMessage(f"a record of {size} bytes ends after {at - end + size}")
            if stamp is None:
                yield new(make, (base_offset + offset, base_timestamp + timestamp, key, value, headers))
            else:
                yield new(make, (base_offset + offset, stamp, key, value, headers))
    except IndexError:
        raise MalformedMessage(f"{count} records declared, and the bytes end before the last") from None
    if at != len(data):
        raise MalformedMessage(f"{len(data) - at} bytes left after the last of {count} records")


def _headers(data: memoryview, at: int) -> tuple[Headers, int]:
    count, at = read(data, at)
    if not 0 <= count <= min(len(data) - at, HEADERS_MAX):
        raise MalformedMessage(f"{count} headers declared, {len(data) - at} bytes left, {HEADERS_MAX} at most")
    headers: list[tuple[str, Bytes | None]] = []
    for _ in range(count):
        length, at = read(data, at)
        if length < 0:
            raise MalformedMessage("a header without a name")
        name = str(data[at : at + length], "utf-8", "surrogateescape")
        at += length
        length, at = read(data, at)
        if length < 0:
            headers.append((name, None))
        else:
            headers.append((name, data[at : at + length]))
            at += length
    if at > len(data):
        raise MalformedMessage(f"the last header ends {at - len(data)} bytes past the end")
    return headers, at


def read_header(buf: Bytes, at: int = 0) -> Header:
    """The header at `at`, if it makes sense by itself; whether the whole batch is there is not asked."""
    try:
        fields = _HEADER.unpack_from(buf, at)
    except StructError:
        raise MalformedMessage(f"a batch header takes {HEADER_SIZE} bytes, {len(buf) - at} left") from None
    _, length, _, magic, _, attributes, delta, _, _, _, _, _, count = fields
    if magic != MAGIC:
        raise MalformedMessage(f"a batch of magic {magic}, not {MAGIC}")
    if length < HEADER_SIZE - LOG_OVERHEAD:
        raise MalformedMessage(f"a batch of length {length}, too short for its own header")
    if attributes & CODEC_MASK > _LAST_CODEC:
        raise MalformedMessage(f"compression {attributes & CODEC_MASK}, which nobody has defined")
    if not 0 <= count <= delta + 1:
        raise MalformedMessage(f"{count} records declared for {delta + 1} offsets")
    return tuple.__new__(Header, fields)


def batches(buf: Bytes, *, partial_ok: bool = False) -> Iterator[Batch]:
    """Batch after batch to the end of `buf`.

    A fetch answer is cut at a size, not at a batch: with `partial_ok` what is left of the last one is
    passed over in silence.
    """
    view = memoryview(buf)
    at, end = 0, len(view)
    while at < end:
        if partial_ok and end - at < HEADER_SIZE:
            return
        header = read_header(view, at)
        size = header.size
        if size > end - at:
            if partial_ok:
                return
            raise MalformedMessage(f"a batch of {size} bytes, {end - at} left")
        yield Batch(header, view[at : at + size])
        at += size


def patch(view: memoryview, at: int, *, base_offset: int, leader_epoch: int) -> None:
    """Gives the batch at `at` its place in the log.  Both lie outside the checksum."""
    _BASE_OFFSET.pack_into(view, at, base_offset)
    _LEADER_EPOCH.pack_into(view, at + LOG_OVERHEAD, leader_epoch)


def set_log_append_time(view: memoryview, at: int, timestamp_ms: int) -> None:
    """Stamps the batch at `at`, and with it all its records, with the broker's time; signs it anew."""
    header = read_header(view, at)
    _ATTRIBUTES.pack_into(view, at + CHECKED_FROM, header.attributes | LOG_APPEND_TIME)
    _MAX_TIMESTAMP.pack_into(view, at + _MAX_TIMESTAMP_AT, timestamp_ms)
    _CRC.pack_into(view, at + _CRC_AT, checksum(view[at + CHECKED_FROM : at + header.size]))


def build(
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    last_offset: int | None = None,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    leader_epoch: int = NO_LEADER_EPOCH,
    transactional: bool = False,
    control: bool = False,
    log_append_time_ms: int | None = None,
    delete_horizon_ms: int | None = None,
) -> bytearray:
    """A batch of at least one record.

    Records keep their offsets, which rise from `base_offset` and may leave gaps; `last_offset` stretches
    the batch past the last of them.
    """
    payload = bytearray()  # not a list of parts, which takes five times as much where records are small
    count = 0
    base_timestamp, max_timestamp = delete_horizon_ms, NO_TIMESTAMP
    before = base_offset - 1
    for offset, timestamp, key, value, headers in records:
        if offset <= before:
            raise ValueError(f"offset {offset} does not come after {before}")
        before = offset
        if base_timestamp is None:
            base_timestamp = timestamp
        if timestamp > max_timestamp:
            max_timestamp = timestamp
        body = b"".join(
            (
                b"\0",
                encode(wrapped(timestamp - base_timestamp)),
                encode(offset - base_offset),
                _NULL if key is None else encode(len(key)),
                key or b"",
                _NULL if value is None else encode(len(value)),
                value or b"",
                _encode_headers(headers) if headers else b"\0",
            )
        )
        payload += encode(len(body))
        payload += body
        count += 1
    if base_timestamp is None or not count:
        raise ValueError("a batch without records")
    attributes = (
        codec
        | (LOG_APPEND_TIME if log_append_time_ms is not None else 0)
        | (TRANSACTIONAL if transactional else 0)
        | (CONTROL if control else 0)
        | (DELETE_HORIZON if delete_horizon_ms is not None else 0)
    )
    return sealed(
        Header(
            base_offset=base_offset,
            batch_length=0,
            partition_leader_epoch=leader_epoch,
            magic=MAGIC,
            crc=0,
            attributes=attributes,
            last_offset_delta=(before if last_offset is None else last_offset) - base_offset,
            base_timestamp=base_timestamp,
            max_timestamp=max_timestamp if log_append_time_ms is None else log_append_time_ms,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            count=count,
        ),
        compress(codec, payload, level=level),
    )


def _encode_headers(headers: Headers) -> bytes:
    parts: list[Bytes] = [encode(len(headers))]
    for name, value in headers:
        encoded = name.encode("utf-8", "surrogateescape")
        parts += (encode(len(encoded)), encoded)
        parts += (_NULL,) if value is None else (encode(len(value)), value)
    return b"".join(parts)


def sealed(header: Header, payload: Bytes) -> bytearray:
    """The batch of this header and payload, its length and checksum filled in."""
    batch = bytearray(HEADER_SIZE)
    _HEADER.pack_into(batch, 0, *header._replace(batch_length=HEADER_SIZE - LOG_OVERHEAD + len(payload)))
    batch += payload
    _CRC.pack_into(batch, _CRC_AT, checksum(memoryview(batch)[CHECKED_FROM:]))
    return batch


def rebuild(header: Header, records: Iterable[Record], *, delete_horizon_ms: int | None = None) -> bytearray:
    """What compaction leaves of a batch: some of its records under the header they had.

    The range of offsets and the producer's sequence numbers stay, so that nothing moves and duplicates are
    still recognised; timestamps are those of the records that stay.  A delete horizon, once set, stays too.
    """
    if delete_horizon_ms is None and header.has_delete_horizon:
        delete_horizon_ms = header.base_timestamp
    return build(
        records,
        base_offset=header.base_offset,
        last_offset=header.last_offset,
        codec=header.codec,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        leader_epoch=header.partition_leader_epoch,
        transactional=header.transactional,
        control=header.control,
        log_append_time_ms=header.max_timestamp if header.log_append_time else None,
        delete_horizon_ms=delete_horizon_ms,
    )


def emptied(header: Header) -> bytearray:
    """What compaction leaves of a batch that lost all records and is still its producer's last.

    Only the header: it remembers the producer's sequence number and where the log goes on.
    """
    kept = header.attributes & (LOG_APPEND_TIME | TRANSACTIONAL | CONTROL)
    return sealed(header._replace(attributes=kept, base_timestamp=NO_TIMESTAMP, count=0), b"")


class ControlType(IntEnum):
    ABORT = 0
    COMMIT = 1


class EndTransaction(NamedTuple):
    """What the marker at the end of a transaction says."""

    type: ControlType
    coordinator_epoch: int


_CONTROL_KEY, _END_TRANSACTION = Struct(">hh"), Struct(">hi")


def end_transaction_marker(
    commit: bool,
    coordinator_epoch: int,
    producer_id: int,
    producer_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> bytearray:
    """The batch that ends a transaction in one partition: one record, written by the broker itself."""
    kind = ControlType.COMMIT if commit else ControlType.ABORT
    key, value = _CONTROL_KEY.pack(0, kind), _END_TRANSACTION.pack(0, coordinator_epoch)
    return build(
        [Record(base_offset, timestamp, key, value)],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        leader_epoch=leader_epoch,
        transactional=True,
        control=True,
    )


def end_transaction(batch: Batch) -> EndTransaction | None:
    """What a control batch says about its producer's transaction; None if it is another kind of control.

    Versions newer than ours are read as ours: whoever raises them promises to add at the end only.
    """
    if not batch.header.control:
        return None
    for record in batch.records():
        if record.key is None or len(record.key) < _CONTROL_KEY.size:
            raise MalformedMessage("a control record without a type")
        version, kind = _CONTROL_KEY.unpack_from(record.key)
        if version < 0:
            raise MalformedMessage(f"a control record of version {version}")
        if kind not in (ControlType.ABORT, ControlType.COMMIT):
            return None
        if record.value is None or len(record.value) < _END_TRANSACTION.size:
            raise MalformedMessage("the end of a transaction without a coordinator's epoch")
        version, coordinator_epoch = _END_TRANSACTION.unpack_from(record.value)
        if version < 0:
            raise MalformedMessage(f"the end of a transaction in version {version}")
        return EndTransaction(ControlType(kind), coordinator_epoch)
    return None  # compaction has emptied it
