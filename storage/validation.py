"""What a leader checks before it appends, and what it changes.  Pure; Kafka's LogValidator is the model.

Kafka looks at every record of every batch: the declared count, the keys where the topic is compacted, the
timestamps.  In Python that costs half a microsecond and more a record, where the whole append of 16 KiB takes
10 us; so we do it only where something depends on it:

* the topic is compacted (keys), has `message.timestamp.before.max.ms`, or a batch must be compressed anew;
* the header alone is suspicious: its times are out of range or out of order, or it claims LogAppendTime;
* `check_every_record` is set.

What is compressed is inflated, the lengths of its records are added up (0.1 us each), and the first and the last are
read.  A batch of a few uncompressed records has their lengths added up, a larger one is asked whether so many fit.
What remains unseen: a producer that signs, with a right checksum, a large uncompressed batch whose records are not what
its header says, or one compressed record among others that is wrong inside but not in its length.  Consumers will
stumble over that batch; KNOWN_GAPS.md says so.  Nobody here does: whoever reads records expects such.

A few bytes may hold millions of records, so there are two limits; beyond them MESSAGE_TOO_LARGE is answered,
upon which Java's producer sends the batch again in parts.  Below them it may still take long: `TakesLong` says
so to those who cannot wait, before anything is changed.

Everything is decided from the bytes, and nothing is written on refusal.
"""

from struct import Struct

from trilogue.storage.config import FOREVER, LogConfig
from trilogue.storage.producers import Origin
from trilogue.wire import records
from trilogue.wire.compression import INFLATED_CAP, Codec, TooLarge, compress, decompress
from trilogue.wire.errors import BrokerError, ErrorCode, MalformedMessage
from trilogue.wire.records import (
    CHECKED_FROM,
    CODEC_MASK,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAGIC,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    Batch,
    Header,
    build,
    sealed,
    set_log_append_time,
    walk,
)
from trilogue.wire.skim import SHORTEST_RECORD, add_up, skim

HEADER = Struct(">qiibIhiqqqhii")
"""A `Header`'s fields in their bytes.  `read_header` would judge them, and refuse with another code than
Kafka does."""

FEW_RECORDS = 4
"""Up to here adding up the lengths of the records costs about a microsecond."""

INFLATED_LIMIT, INFLATED_RATIO = 32 << 20, 4
"""What a batch may inflate to: so many bytes, or so many times `max.message.bytes` if that is more.  librdkafka and
most others fill their batches by what they are before compression, to a megabyte; Java's producer by what it
expects them to become, 16 KiB unless told otherwise."""

RECORDS_LIMIT = 1_000_000
"""So many records may be in a compressed batch.  They take a second to look at, and 7 MB at least."""

QUICK_RECORDS, QUICK_BYTES = 4000, 2 << 20
"""So many records whose lengths are added up, in so many bytes, take no longer than a piece of the loop should.  The
second is how large a `room` should be."""
QUICK_LOOK_BYTES = 64 << 10
"""Likewise so many bytes of records that are looked at one by one; a header of a record may have two."""
QUICK_PACKED_BYTES = {Codec.GZIP: 16 << 10, Codec.SNAPPY: 16 << 10, Codec.LZ4: 64 << 10, Codec.ZSTD: 64 << 10}
"""And so many compressed ones.  They may come in parts that hold nothing: 20 bytes and 15 us each of gzip, 5 bytes
and a microsecond each of snappy."""

ERRORS_MAX = 1000
"""So many refused records are named; the rest are refused with them."""

SHORTEST_BATCH = 14
"""Below this Kafka takes the length of a batch for damage and does not look at its magic."""


class RejectedRecords(BrokerError):
    """Some records of a batch break a rule, and the whole batch is refused for it."""

    def __init__(self, code: ErrorCode, errors: list[tuple[int, str]]) -> None:
        super().__init__(code, f"{len(errors)} records were refused; the first: {errors[0][1]}")
        self.record_errors = errors
        """(index of the record in its batch, why)"""


class TakesLong(Exception):
    """It cannot be done at once.  Nothing has been changed."""


class NotInflatable(BrokerError):
    """What is said to be compressed is not.  An unknown error to Kafka."""


class NotOneBatch(BrokerError):
    """What came is not one whole batch.  Kafka finds that out before it looks for the log."""


def plain_attributes(config: LogConfig) -> frozenset[int]:
    """The attributes of batches that a topic takes as they are, without a look at their records."""
    if (
        config.compact
        or config.log_append_time
        or config.check_every_record
        or config.message_timestamp_before_max_ms != FOREVER
    ):
        return frozenset()
    codecs = list(Codec) if config.compression is None else [config.compression]
    return frozenset(codec | transactional for codec in codecs for transactional in (0, TRANSACTIONAL))


def lengths_add_up(batch: memoryview, count: int) -> bool:
    """Whether `count` records, by their own lengths, fill an uncompressed batch exactly."""
    at, end = HEADER_SIZE, len(batch)
    for _ in range(count):
        shift = size = 0
        while True:
            if at >= end or shift > 28:
                return False
            byte = batch[at]
            at += 1
            size |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
        if size & 1:
            return False
        at += size >> 1
    return at == end


def sole_batch(buf: memoryview) -> memoryview:
    """The one batch in `buf`; a tail that is not a batch is ignored, as Kafka does."""
    if len(buf) >= LOG_OVERHEAD:
        size = int.from_bytes(buf[8:LOG_OVERHEAD], "big", signed=True) + LOG_OVERHEAD
        if size < SHORTEST_BATCH + LOG_OVERHEAD:
            raise NotOneBatch(ErrorCode.CORRUPT_MESSAGE, f"a batch of {size} bytes")
        if len(buf) > LOG_OVERHEAD + 4 and size <= len(buf):
            if buf[16] != MAGIC:
                code = ErrorCode.INVALID_RECORD if buf[16] < MAGIC else ErrorCode.CORRUPT_MESSAGE
                raise NotOneBatch(code, f"a batch of magic {buf[16]}, not {MAGIC}")
            if len(buf) - size >= LOG_OVERHEAD:
                behind = int.from_bytes(buf[size + 8 : size + LOG_OVERHEAD], "big", signed=True) + LOG_OVERHEAD
                if behind < SHORTEST_BATCH + LOG_OVERHEAD:
                    raise NotOneBatch(ErrorCode.CORRUPT_MESSAGE, f"a second batch, of {behind} bytes")
                if behind <= len(buf) - size:
                    raise NotOneBatch(ErrorCode.INVALID_RECORD, "more than one batch")
            return buf[:size]
    raise NotOneBatch(ErrorCode.INVALID_RECORD, "no whole batch")


def inflated_limit(config: LogConfig) -> int:
    return min(max(INFLATED_LIMIT, INFLATED_RATIO * config.max_message_bytes), INFLATED_CAP)


def holds_records(batch: memoryview, config: LogConfig, room: bytearray | None) -> bool:
    """Whether a compressed batch inflates to the records that its header speaks of, as far as that is quickly seen."""
    header = Header._make(HEADER.unpack_from(batch))
    if room is not None and header.count > QUICK_RECORDS:
        raise TakesLong
    try:
        return add_up(_inflated(header, batch, config, room), header)
    except NotInflatable:
        return False


def validated(
    buf: memoryview, config: LogConfig, now_ms: int, origin: Origin, room: bytearray | None = None
) -> memoryview:
    """The batch as it goes into the log, but for its offset and epoch; `buf` itself as a rule, changed in
    place.

    `room` is given by those who cannot wait: what is inflated goes there, and TakesLong is raised if that or anything
    else takes long.
    """
    batch = sole_batch(buf)
    header = Header._make(records_header(batch))
    _check_header(header, batch, config, origin)
    codec = header.attributes & CODEC_MASK
    target = codec if config.compression is None or header.control else config.compression
    if target == codec and not _records_matter(header, batch, config, now_ms, origin, room):
        if config.log_append_time:
            set_log_append_time(batch, 0, now_ms)
        return batch
    data = _inflated(header, batch, config, room)
    if room is not None and len(data) > QUICK_LOOK_BYTES:
        raise TakesLong
    largest, in_order = _check_records(header, data, config, now_ms)
    if target != codec:
        if in_order:
            return _compressed_anew(header, data, Codec(target), config, now_ms, largest)
        return _built_anew(header, data, Codec(target), config, now_ms)
    if config.log_append_time:
        set_log_append_time(batch, 0, now_ms)
    elif header.max_timestamp != largest or header.log_append_time:
        _set_create_time(batch, header, largest)
    return batch


def records_header(batch: memoryview) -> tuple[int, ...]:
    """The fields of the header, unjudged."""
    if len(batch) < HEADER_SIZE:
        raise BrokerError(ErrorCode.CORRUPT_MESSAGE, f"a batch of {len(batch)} bytes is too short for its header")
    return HEADER.unpack_from(batch)


def _check_header(header: Header, batch: memoryview, config: LogConfig, origin: Origin) -> None:
    if origin is Origin.CLIENT and header.base_offset != 0:
        raise BrokerError(ErrorCode.INVALID_RECORD, f"a base offset of {header.base_offset}, not 0")
    if header.size > config.max_message_bytes:
        raise BrokerError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"a batch of {header.size} bytes, where at most {config.max_message_bytes} are allowed",
        )
    if not Batch(header, batch).crc_ok():
        raise BrokerError(ErrorCode.CORRUPT_MESSAGE, f"the checksum is not {header.crc:#010x}")
    if header.attributes & CODEC_MASK > Codec.ZSTD:
        raise BrokerError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"compression {header.attributes & CODEC_MASK} is not defined"
        )
    if origin is Origin.CLIENT:
        if header.last_offset_delta < 0 or header.count != header.last_offset_delta + 1:
            raise BrokerError(
                ErrorCode.INVALID_RECORD,
                f"{header.count} records declared for {header.last_offset_delta + 1} offsets",
            )
        if header.control:
            raise BrokerError(ErrorCode.INVALID_RECORD, "clients do not write control batches")
        if header.producer_id >= 0 and header.base_sequence < 0:
            raise BrokerError(
                ErrorCode.INVALID_RECORD,
                f"sequence {header.base_sequence} from producer {header.producer_id}",
            )
    elif not 0 < header.count == header.last_offset_delta + 1:
        raise BrokerError(
            ErrorCode.INVALID_RECORD,
            f"{header.count} records declared for {header.last_offset_delta + 1} offsets",
        )


def _records_matter(
    header: Header, batch: memoryview, config: LogConfig, now_ms: int, origin: Origin, room: bytearray | None
) -> bool:
    if header.control or origin is not Origin.CLIENT:
        return False
    return (
        config.compact
        or config.check_every_record
        or header.log_append_time
        or (
            not config.log_append_time
            and (
                config.message_timestamp_before_max_ms != FOREVER
                or header.max_timestamp - now_ms > config.message_timestamp_after_max_ms
                or header.base_timestamp > header.max_timestamp
            )
        )
        or (
            not holds_records(batch, config, room)
            if header.attributes & CODEC_MASK
            else header.count <= FEW_RECORDS or header.count * SHORTEST_RECORD > len(batch) - HEADER_SIZE
        )
    )


def _check_records(header: Header, data: memoryview, config: LogConfig, now_ms: int) -> tuple[int, bool]:
    """The largest timestamp, and whether the records count up from zero."""
    errors: list[tuple[int, str]] = []
    code = ErrorCode.INVALID_RECORD
    largest = NO_TIMESTAMP
    stays_compressed = header.attributes & CODEC_MASK and config.compression in (None, header.codec)
    in_order = True
    try:
        for number, (offset, timestamp, keyed) in enumerate(skim(data, header)):
            if offset != header.base_offset + number:
                in_order = False
                if stays_compressed:
                    raise BrokerError(
                        ErrorCode.UNKNOWN_SERVER_ERROR, f"record {number} of a compressed batch says it is another"
                    )
                if config.compact:  # Kafka takes it, and then cannot compact the log any more
                    raise BrokerError(ErrorCode.INVALID_RECORD, f"record {number} says that it is another")
            if config.compact and not keyed and not header.control:
                problem: str | None = "a record without a key, in a compacted topic"
            elif problem := _wrong_time(header, timestamp, config, now_ms):
                code = ErrorCode.INVALID_TIMESTAMP
            if problem and len(errors) < ERRORS_MAX:
                errors.append((number, problem))
            largest = max(largest, timestamp)
    except MalformedMessage as problem:
        raise BrokerError(ErrorCode.INVALID_RECORD, str(problem)) from None
    if errors:
        raise RejectedRecords(code, errors)
    return largest, in_order


def _inflated(header: Header, batch: memoryview, config: LogConfig, room: bytearray | None) -> memoryview:
    """The bytes of all records."""
    if not header.attributes & CODEC_MASK:
        return batch[HEADER_SIZE:]
    if header.count > RECORDS_LIMIT:
        raise BrokerError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"{header.count} records in one batch, where at most {RECORDS_LIMIT} are allowed",
        )
    if room is not None and len(batch) > QUICK_PACKED_BYTES[header.codec]:
        raise TakesLong
    limit = inflated_limit(config) if room is None else len(room)
    try:
        return decompress(header.codec, batch[HEADER_SIZE:], limit, room=room)
    except TooLarge as problem:
        if room is not None:
            raise TakesLong from None
        raise BrokerError(ErrorCode.MESSAGE_TOO_LARGE, str(problem)) from None
    except MalformedMessage as problem:
        raise NotInflatable(ErrorCode.UNKNOWN_SERVER_ERROR, str(problem)) from None


def _wrong_time(header: Header, timestamp: int, config: LogConfig, now_ms: int) -> str | None:
    if header.control:
        return None
    if not config.log_append_time and timestamp != NO_TIMESTAMP:
        if now_ms - timestamp > config.message_timestamp_before_max_ms:
            return f"timestamp {timestamp} is {now_ms - timestamp} ms old"
        if timestamp - now_ms > config.message_timestamp_after_max_ms:
            return f"timestamp {timestamp} is {timestamp - now_ms} ms ahead"
    elif header.log_append_time:
        return "a producer does not set LogAppendTime"
    return None


def _compressed_anew(
    header: Header, data: memoryview, codec: Codec, config: LogConfig, now_ms: int, largest: int
) -> memoryview:
    """The same records under the topic's own compression."""
    header = header._replace(
        attributes=header.attributes & TRANSACTIONAL | codec | (LOG_APPEND_TIME if config.log_append_time else 0),
        max_timestamp=now_ms if config.log_append_time else largest,
    )
    return _if_it_fits(sealed(header, compress(codec, data)), config)


def _built_anew(header: Header, data: memoryview, codec: Codec, config: LogConfig, now_ms: int) -> memoryview:
    """Likewise, and they count from zero."""
    built = build(
        (record._replace(offset=number) for number, record in enumerate(walk(data, header))),
        codec=codec,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.transactional,
        log_append_time_ms=now_ms if config.log_append_time else None,
    )
    return _if_it_fits(built, config)


def _if_it_fits(built: bytearray, config: LogConfig) -> memoryview:
    if len(built) > config.max_message_bytes:
        raise BrokerError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"{len(built)} bytes after compression, where at most {config.max_message_bytes} are allowed",
        )
    return memoryview(built)


def _set_create_time(batch: memoryview, header: Header, largest: int) -> None:
    """Correct what the header says about the timestamps of its records, and sign the batch again."""
    header = header._replace(attributes=header.attributes & ~LOG_APPEND_TIME, max_timestamp=largest)
    HEADER.pack_into(batch, 0, *header)
    crc = records.checksum(batch[CHECKED_FROM:])
    HEADER.pack_into(batch, 0, *header._replace(crc=crc))
