"""What a leader checks before it appends, and what it changes.  Pure; Kafka's LogValidator is the model.

Kafka looks at every record of every batch: the declared count, the keys where the topic is compacted, the
timestamps.  In Python that costs 0.3 us and more a record, where the whole append of 16 KiB takes 10 us; so
we do it only where something depends on it or it costs little:

* the topic is compacted (keys), has `message.timestamp.before.max.ms`, or a batch must be compressed anew;
* the header alone is suspicious: its largest timestamp is out of range, or it claims LogAppendTime;
* `check_every_record` is set.

A batch of a few uncompressed records has the lengths of its records added up.  What remains unseen: a
producer that signs, with a right checksum, a large or compressed batch whose records are not what its header
says.  Consumers will stumble over that batch; KNOWN_GAPS.md says so.

Everything is decided from the bytes, and nothing is written on refusal.
"""

from struct import Struct

from trilogue.storage.config import FOREVER, LogConfig
from trilogue.storage.producers import Origin
from trilogue.wire import records
from trilogue.wire.compression import Codec
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
    Record,
    build,
    set_log_append_time,
)

HEADER = Struct(">qiibIhiqqqhii")
"""A `Header`'s fields in their bytes.  `read_header` would judge them, and refuse with another code than
Kafka does."""

FEW_RECORDS = 4
"""Up to here adding up the lengths of the records costs about a microsecond."""

INFLATED_LIMIT = 64 << 20
"""Where we must inflate, we stop here: max.message.bytes bounds the compressed size only."""

SHORTEST_BATCH = 14
"""Below this Kafka takes the length of a batch for damage and does not look at its magic."""


class RejectedRecords(BrokerError):
    """Some records of a batch break a rule, and the whole batch is refused for it."""

    def __init__(self, code: ErrorCode, errors: list[tuple[int, str]]) -> None:
        super().__init__(code, f"{len(errors)} records were refused; the first: {errors[0][1]}")
        self.record_errors = errors
        """(index of the record in its batch, why)"""


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


def validated(buf: memoryview, config: LogConfig, now_ms: int, origin: Origin) -> memoryview:
    """The batch as it goes into the log, but for its offset and epoch; `buf` itself as a rule, changed in
    place."""
    batch = sole_batch(buf)
    header = Header._make(records_header(batch))
    _check_header(header, batch, config, origin)
    codec = header.attributes & CODEC_MASK
    target = codec if config.compression is None or header.control else config.compression
    if target == codec and not _records_matter(header, config, now_ms, origin):
        if config.log_append_time:
            set_log_append_time(batch, 0, now_ms)
        return batch
    kept, largest = _check_records(header, batch, config, now_ms)
    if target != codec:
        return _built_anew(header, kept, Codec(target), config, now_ms)
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


def _records_matter(header: Header, config: LogConfig, now_ms: int, origin: Origin) -> bool:
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
            )
        )
        or header.count <= FEW_RECORDS
    )


def _check_records(header: Header, batch: memoryview, config: LogConfig, now_ms: int) -> tuple[list[Record], int]:
    """The records, and their largest timestamp."""
    kept: list[Record] = []
    errors: list[tuple[int, str]] = []
    code = ErrorCode.INVALID_RECORD
    largest = NO_TIMESTAMP
    stays_compressed = header.attributes & CODEC_MASK and config.compression in (None, header.codec)
    for number, record in enumerate(_inflated(header, batch)):
        if config.compact and record.key is None and not header.control:
            errors.append((number, "a record without a key, in a compacted topic"))
        elif problem := _wrong_time(header, record.timestamp, config, now_ms):
            errors.append((number, problem))
            code = ErrorCode.INVALID_TIMESTAMP
        if stays_compressed and record.offset != header.base_offset + number:
            raise BrokerError(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"record {number} of a compressed batch says it is another"
            )
        largest = max(largest, record.timestamp)
        kept.append(record)
    if errors:
        raise RejectedRecords(code, errors)
    return kept, largest


def _inflated(header: Header, batch: memoryview) -> list[Record]:
    """All records.  What cannot be inflated is an unknown error to Kafka, what can but makes no sense is an
    invalid record."""
    try:
        found = Batch(header, batch).records(INFLATED_LIMIT)
    except MalformedMessage as problem:
        raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, str(problem)) from None
    try:
        return list(found)
    except MalformedMessage as problem:
        raise BrokerError(ErrorCode.INVALID_RECORD, str(problem)) from None


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


def _built_anew(header: Header, kept: list[Record], codec: Codec, config: LogConfig, now_ms: int) -> memoryview:
    built = build(
        [record._replace(offset=number) for number, record in enumerate(kept)],
        codec=codec,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.transactional,
        log_append_time_ms=now_ms if config.log_append_time else None,
    )
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
