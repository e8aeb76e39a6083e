"""A few bytes that hold millions of records, or none at all: they are refused, or cost nobody but their sender."""

from collections.abc import Callable
from pathlib import Path
from struct import pack_into
from zlib import crc32

import pytest

from trilogue.broker.tests.stays_up.process import NOW_MS, Client, Process, eventually, process
from trilogue.broker.tests.stays_up.test_budget import longest_wait
from trilogue.wire import legacy
from trilogue.wire.apis.end_txn import EndTxnRequest, EndTxnResponse
from trilogue.wire.apis.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from trilogue.wire.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from trilogue.wire.apis.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from trilogue.wire.apis.produce import ProduceRequest, ProduceResponse
from trilogue.wire.compression import Codec, compress
from trilogue.wire.errors import ErrorCode
from trilogue.wire.records import HEADER_SIZE, LOG_OVERHEAD, Record, build, checksum
from trilogue.wire.varint import encode

MEMORY_MIB = 96
"""64 are aimed at; memory that was given back is not always seen to be."""
PATIENCE_SECONDS = 120
COMPRESSED = [codec for codec in Codec if codec]


def tiny(number: int, timestamp_delta: int = 0) -> bytes:
    """A record with an empty key and an empty value."""
    body = b"\0" + encode(timestamp_delta) + encode(number) + encode(0) + encode(0) + b"\0"
    return encode(len(body)) + body


def batch(
    inside: bytes, count: int, codec: Codec, *, base_ms: int = NOW_MS, max_ms: int = NOW_MS, attributes: int = 0
) -> bytes:
    """Signed, whatever is in it; `inside` is as it comes."""
    made = bytearray(HEADER_SIZE) + inside
    fields = (0, len(made) - LOG_OVERHEAD, -1, 2, 0, codec | attributes, count - 1, base_ms, max_ms, -1, -1, -1, count)
    pack_into(">qiibIhiqqqhii", made, 0, *fields)
    pack_into(">I", made, 17, checksum(memoryview(made)[21:]))
    return bytes(made)


def alike(count: int, codec: Codec) -> bytes:
    """So many records that a good deal of nothing is left of them; the last knows its place, as is looked at."""
    return batch(bytes(compress(codec, tiny(0) * (count - 1) + tiny(count - 1))), count, codec)


def counted(count: int, codec: Codec) -> bytes:
    return batch(bytes(compress(codec, b"".join(map(tiny, range(count))))), count, codec)


def old(count: int) -> bytes:
    """A message set with so many messages in one."""
    wrapped = compress(Codec.GZIP, legacy.build([Record(0, NOW_MS, None, b"")], 1) * count)
    bomb = bytearray(legacy.build([Record(0, NOW_MS, None, bytes(wrapped))], 1))
    bomb[17] = Codec.GZIP
    pack_into(">I", bomb, 12, crc32(memoryview(bomb)[16:]))
    return bytes(bomb)


def offset_at(client: Client, topic: str, timestamp: int, version: int = 7) -> tuple[int, int]:
    """The error code and the offset."""
    asked = ListOffsetsRequest.Topic.Partition(partition_index=0, current_leader_epoch=-1, timestamp=timestamp)
    topics = [ListOffsetsRequest.Topic(name=topic, partitions=[asked])]
    told = client.ask(ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=topics), version, ListOffsetsResponse)
    return told.topics[0].partitions[0].error_code, told.topics[0].partitions[0].offset


def harm(broker: Process, attack: Callable[[Client], object]) -> None:
    """Let somebody attack; nobody else may wait long for it, nor much memory go."""
    before = broker.rss_mib()
    most = [0.0]

    def patient(client: Client) -> None:
        client.sock.settimeout(PATIENCE_SECONDS)
        attack(client)
        most[0] = broker.rss_mib()

    assert (waited := longest_wait(broker, patient)).fair, waited
    assert most[0] - before < MEMORY_MIB


def test_more_records_than_a_batch_may_hold(tmp_path: Path) -> None:
    bombs = [alike(8_000_000, codec) for codec in (Codec.GZIP, Codec.ZSTD)]

    def attack(client: Client) -> None:
        for topic in ("compacted", "plain"):
            for bomb in bombs:
                assert client.produce_batch(topic, bomb) == ErrorCode.MESSAGE_TOO_LARGE

    with process(tmp_path) as broker:
        with broker.client() as client:
            assert client.create("compacted", cleanup_policy="compact") == client.create("plain") == 0
        harm(broker, attack)


def test_as_many_records_as_a_batch_may_hold(tmp_path: Path) -> None:
    bomb = counted(300_000, Codec.ZSTD)
    with process(tmp_path) as broker:
        with broker.client() as client:
            assert client.create("compacted", cleanup_policy="compact") == 0
        harm(broker, lambda client: client.produce_batch("compacted", bomb))
        with broker.client() as client:
            assert offset_at(client, "compacted", -1) == (0, 300_000)


def test_very_many_old_messages(tmp_path: Path) -> None:
    too_many, many = old(2_000_000), old(200_000)

    def attack(client: Client) -> None:
        assert client.produce_batch("topic", too_many, version=2) == ErrorCode.MESSAGE_TOO_LARGE
        assert client.produce_batch("topic", many, version=2) == ErrorCode.NONE

    with process(tmp_path) as broker:
        with broker.client() as client:
            assert client.create("topic") == 0
        harm(broker, attack)
        with broker.client() as client:
            assert offset_at(client, "topic", -1) == (0, 200_000)


def test_a_point_in_time_inside_of_very_many_records(tmp_path: Path) -> None:
    late = b"".join(tiny(number, timestamp_delta=number == 999_999) for number in range(1_000_000))
    bomb = batch(bytes(compress(Codec.ZSTD, late)), 1_000_000, Codec.ZSTD, max_ms=NOW_MS + 1)

    def attack(client: Client) -> None:
        assert offset_at(client, "topic", NOW_MS + 1) == (0, 999_999)
        assert offset_at(client, "topic", -3) == (0, 999_999)

    with process(tmp_path) as broker:
        with broker.client() as client:
            assert client.create("topic") == 0
            assert client.produce_batch("topic", bomb) == 0
        harm(broker, attack)


def test_an_old_consumer_of_very_many_records(tmp_path: Path) -> None:
    def attack(client: Client) -> None:
        told = client.fetch("topic", version=3).responses[0].partitions[0]
        assert told.error_code == 0
        first = [record.offset for record in legacy.records(bytes(told.records or b""), partial_ok=True)]
        assert first[0] == 0 < first[-1] < 499_999, "as much as is made for one answer"
        told = client.fetch("topic", first[-1] + 1, version=3).responses[0].partitions[0]
        assert next(iter(legacy.records(bytes(told.records or b"")))).offset == first[-1] + 1

    with process(tmp_path) as broker:
        with broker.client() as client:
            assert client.create("topic") == 0
            assert client.produce_batch("topic", counted(500_000, Codec.GZIP)) == 0
        harm(broker, attack)


def test_the_cleaner_over_very_many_records(tmp_path: Path) -> None:
    """All have the same key, so that one is left of them."""
    settings = {"cleanup_policy": "compact", "segment_bytes": "1048576", "min_cleanable_dirty_ratio": "0.01"}
    bomb = counted(1_000_000, Codec.ZSTD)

    def attack(client: Client) -> None:
        assert client.produce_batch("topic", bomb) == 0
        assert client.produce("topic", bytes(900_000), key=b"other") == 0
        assert client.produce("topic", bytes(900_000), key=b"another") == 0
        log = broker.data / "topic-0" / "00000000000000000000.log"
        eventually(lambda: log.stat().st_size < len(bomb) // 2, 60)

    with process(tmp_path, log_cleaner_backoff_ms="100") as broker:
        with broker.client() as client:
            assert client.create("topic", **settings) == 0
        harm(broker, attack)


def test_what_inflates_to_more_than_a_batch_may(tmp_path: Path) -> None:
    """Few records, each of them huge."""
    huge = bytes(build([Record(0, NOW_MS, b"k", bytes(80 << 20))], codec=Codec.ZSTD))

    def attack(client: Client) -> None:
        for topic in ("compacted", "plain"):
            assert client.produce_batch(topic, huge) == ErrorCode.MESSAGE_TOO_LARGE

    with process(tmp_path) as broker:
        with broker.client() as client:
            assert client.create("compacted", cleanup_policy="compact") == client.create("plain") == 0
        harm(broker, attack)


def test_a_batch_that_takes_long_is_written_once_and_only_while_its_transaction_is_open(tmp_path: Path) -> None:
    """What is decided about a producer is decided after the wait."""
    records = [Record(number, NOW_MS, b"k", b"v") for number in range(20_000)]

    def of(who: InitProducerIdResponse, sequence: int, transactional: bool) -> bytes:
        made = build(
            records,
            codec=Codec.ZSTD,
            producer_id=who.producer_id,
            producer_epoch=who.producer_epoch,
            base_sequence=sequence,
            transactional=transactional,
        )
        return bytes(made)

    def write(client: Client, made: bytes, transactional_id: str | None, version: int) -> tuple[int, int]:
        data = ProduceRequest.Topic.Partition(index=0, records=made)
        topics = [ProduceRequest.Topic(name="topic", partition_data=[data])]
        asked = ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=10_000, topic_data=topics)
        told = client.ask(asked, version, ProduceResponse).responses[0].partition_responses[0]
        return told.error_code, told.base_offset

    with process(tmp_path) as broker, broker.client() as client:
        assert client.create("topic") == 0
        nobody = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        idempotent = client.ask(nobody, 4, InitProducerIdResponse)
        assert idempotent.error_code == 0
        assert write(client, of(idempotent, 0, False), None, 9) == (0, 0)
        assert write(client, of(idempotent, 0, False), None, 9) == (0, 0), "it is the same"
        assert write(client, of(idempotent, 20_000, False), None, 9) == (0, 20_000)
        assert write(client, of(idempotent, 90_000, False), None, 9)[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

        client.ask(FindCoordinatorRequest(key="id", key_type=1), 2, FindCoordinatorResponse)
        begin = InitProducerIdRequest(transactional_id="id", transaction_timeout_ms=60_000)
        eventually(lambda: client.ask(begin, 4, InitProducerIdResponse).error_code == 0)
        who = client.ask(begin, 4, InitProducerIdResponse)
        assert write(client, of(who, 0, True), "id", 12) == (0, 40_000)
        ended = EndTxnRequest(
            transactional_id="id", producer_id=who.producer_id, producer_epoch=who.producer_epoch, committed=True
        )
        assert client.ask(ended, 3, EndTxnResponse).error_code == 0
        assert write(client, of(who, 20_000, True), "id", 11)[0] != 0, "nobody has added the partition again"


# -- what is not records ---------------------------------------------------------------------------


@pytest.mark.parametrize("codec", COMPRESSED, ids=lambda codec: codec.name)
def test_rubbish_under_a_right_checksum_is_refused_as_by_kafka(tmp_path: Path, codec: Codec) -> None:
    """Measured with Apache Kafka 4.3.1."""
    good = b"".join(map(tiny, range(10)))
    packed = bytes(compress(codec, good))
    cases = {
        "good": (batch(packed, 10, codec), ErrorCode.NONE),
        "nothing to inflate": (batch(bytes(50), 10, codec), ErrorCode.UNKNOWN_SERVER_ERROR),
        "cut off": (batch(packed[: len(packed) // 2], 10, codec), ErrorCode.UNKNOWN_SERVER_ERROR),
        "no records": (batch(bytes(compress(codec, b"junk, junk " * 20)), 10, codec), ErrorCode.INVALID_RECORD),
        "nothing inside": (batch(bytes(compress(codec, b"")), 10, codec), ErrorCode.INVALID_RECORD),
        "one too few": (batch(packed, 11, codec), ErrorCode.INVALID_RECORD),
        "one too many": (batch(packed, 9, codec), ErrorCode.INVALID_RECORD),
        "bytes behind": (batch(bytes(compress(codec, good + b"xyz")), 10, codec), ErrorCode.INVALID_RECORD),
        "they count from one": (
            batch(bytes(compress(codec, b"".join(map(tiny, range(1, 11))))), 10, codec),
            ErrorCode.UNKNOWN_SERVER_ERROR,
        ),
        "they do not count": (batch(bytes(compress(codec, tiny(0) * 10)), 10, codec), ErrorCode.UNKNOWN_SERVER_ERROR),
    }
    with process(tmp_path) as broker, broker.client() as client:
        assert client.create("topic") == client.create("stamped", message_timestamp_type="LogAppendTime") == 0
        told = {case: client.produce_batch("topic", made) for case, (made, _) in cases.items()}
        also = {case: client.produce_batch("stamped", made) for case, (made, _) in cases.items()}

    assert told == {case: code for case, (_, code) in cases.items()}
    assert also == told


def test_more_records_than_bytes_are_refused(tmp_path: Path) -> None:
    with process(tmp_path) as broker, broker.client() as client:
        assert client.create("topic") == 0
        lying = batch(tiny(0) * 9, 2**31 - 1, Codec.NONE)
        assert client.produce_batch("topic", lying) == ErrorCode.INVALID_RECORD
        assert client.produce_batch("topic", batch(b"".join(map(tiny, range(9))), 9, Codec.NONE)) == ErrorCode.NONE
        assert offset_at(client, "topic", -1) == (0, 9)


def test_whoever_reads_rubbish_that_was_not_seen_stays_up(tmp_path: Path) -> None:
    """Of a larger batch that is not compressed the records are not looked at."""
    rubbish = batch(b"\x93junk that is nothing at all" * 10, 10, Codec.NONE)
    with process(tmp_path) as broker, broker.client() as client:
        assert client.create("topic") == 0
        assert client.produce_batch("topic", rubbish) == 0
        assert offset_at(client, "topic", 0) == (ErrorCode.INVALID_RECORD, -1)
        assert client.fetch("topic", version=3).responses[0].partitions[0].error_code == ErrorCode.CORRUPT_MESSAGE
        client.api_versions()


# -- times beyond 64 bits --------------------------------------------------------------------------

LATEST = 2**63 - 1


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD], ids=lambda codec: codec.name)
def test_a_time_that_does_not_fit_is_refused_as_by_kafka(tmp_path: Path, codec: Codec) -> None:
    """Java adds and comes back from the other side: what it has become then is judged."""

    def of(delta: int, base_ms: int, max_ms: int) -> bytes:
        inside = b"".join(tiny(number, delta) for number in range(10))
        return batch(bytes(compress(codec, inside)), 10, codec, base_ms=base_ms, max_ms=max_ms)

    cases = {
        "the latest there is": (of(0, LATEST, LATEST), ErrorCode.INVALID_TIMESTAMP),
        "beyond it": (of(1, LATEST, LATEST), ErrorCode.INVALID_TIMESTAMP),
        "beyond it, and the header lies": (of(1, LATEST, NOW_MS), ErrorCode.INVALID_TIMESTAMP),
        "round to now": (of(NOW_MS - LATEST, LATEST, NOW_MS), ErrorCode.NONE),
        "now, and the header lies": (of(0, NOW_MS, LATEST), ErrorCode.NONE),
        "now, and the header lies downwards": (of(0, NOW_MS, -(2**63)), ErrorCode.NONE),
    }
    with process(tmp_path) as broker, broker.client() as client:
        for number, (case, (made, code)) in enumerate(cases.items()):
            topic = f"topic{number}"
            assert client.create(topic) == 0
            assert (case, client.produce_batch(topic, made)) == (case, code)
            for timestamp in (0, NOW_MS, -3):
                assert offset_at(client, topic, timestamp) == (0, -1 if code else 0)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP], ids=lambda codec: codec.name)
def test_times_beyond_64_bits_can_be_read(tmp_path: Path, codec: Codec) -> None:
    """Where any future is allowed they are stored, between others that are looked at."""
    deltas = [0, 1, -(2**63), 2**63 - 1, 0, 0]
    inside = b"".join(tiny(number, delta) for number, delta in enumerate(deltas))
    made = batch(bytes(compress(codec, inside)), 6, codec, base_ms=LATEST, max_ms=LATEST)
    with process(tmp_path) as broker, broker.client() as client:
        assert client.create("topic", message_timestamp_after_max_ms=str(LATEST)) == 0
        assert client.produce_batch("topic", made) == 0
        assert offset_at(client, "topic", LATEST) == (0, 0)
        assert offset_at(client, "topic", -3) == (0, 0)
        for version in (0, 3, 11):
            assert client.fetch("topic", version=version).responses[0].partitions[0].error_code == 0
        assert len(client.values("topic")) == 6
