"""Apache Kafka 4.3.1 reads what we write, we read what it writes, and both refuse the same for the same
reason."""

import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from struct import pack, pack_into

import pytest
from apache import CLUSTER_ID, JARS, Kafka

from trilogue.storage import cleaner, snapshot
from trilogue.storage.config import LogConfig
from trilogue.storage.directory import DataDirectory
from trilogue.storage.log import Log
from trilogue.storage.producers import Origin
from trilogue.storage.replay import producers_at
from trilogue.storage.tests.making import append, batch, end, idempotent, keyed, opened, records
from trilogue.storage.tests.real_kafka import SETTINGS, Answer, drive, list_offset, produce
from trilogue.storage.validation import RejectedRecords
from trilogue.wire.compression import Codec
from trilogue.wire.errors import BrokerError
from trilogue.wire.records import CHECKED_FROM, HEADER_SIZE, Record, build, checksum

pytestmark = [pytest.mark.java, pytest.mark.slow]

TOPICS = {
    "plain": {"segment.bytes": "1048576", "index.interval.bytes": "1024"},
    "gzip": {"compression.type": "gzip"},
    "snappy": {"compression.type": "snappy"},
    "lz4": {"compression.type": "lz4"},
    "zstd": {"compression.type": "zstd"},
    "stamped": {"message.timestamp.type": "LogAppendTime"},
    "transactional": {"segment.bytes": "1048576"},
    "compacted": {
        "cleanup.policy": "compact",
        "segment.ms": "200",
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": "100000",
    },
    "bad": {"max.message.bytes": "100000"},
    "bad-compacted": {"cleanup.policy": "compact"},
    "bad-stamped": {"message.timestamp.type": "LogAppendTime"},
}
Java = Callable[..., list[str]]
Seen = list[tuple[int, int, bytes | None, bytes | None]]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory, java: Java) -> Iterator[Kafka]:
    java(JARS, "kafka.Kafka")  # skips where there is none
    broker = Kafka(tmp_path_factory.mktemp("kafka"), SETTINGS)
    broker.start()
    try:
        drive(broker, "create", repr(TOPICS))
        yield broker
    finally:
        broker.stop()


@pytest.fixture(scope="module")
def said(kafka: Kafka) -> dict[str, Answer]:
    """What Kafka answers to every strange batch."""
    return {name: produce(kafka.address, topic, make()) for name, (topic, make) in STRANGE.items()}


ASKED = [-1, -2, -3, -4, -5, -6, 0, 1_700_000_000_000, 1_700_000_000_150, 1_700_000_002_499, 1_800_000_000_000]
LISTED: dict[tuple[str, int], tuple[int, int, int]] = {}
"""What Kafka answers to ListOffsets; filled by `stopped`."""


@pytest.fixture(scope="module")
def stopped(kafka: Kafka, said: dict[str, Answer]) -> dict[str, Seen]:
    """Fills Kafka's topics, reads them back through a consumer, and stops Kafka."""
    sent = drive(kafka, "fill", str(kafka.data))
    seen = drive(kafka, "consume", "plain", "stamped", "transactional", "compacted")
    for topic in ("plain", "gzip", "zstd", "stamped", "transactional"):
        for timestamp in ASKED:
            LISTED[topic, timestamp] = list_offset(kafka.address, topic, timestamp)
    shutil.copytree(kafka.data, kafka.folder / "living")
    kafka.stop()
    assert isinstance(seen, dict)
    assert isinstance(sent, dict)
    return seen | sent


def ours(path: Path, *, clean: bool) -> tuple[Log, Seen]:
    log = Log.open(path, LogConfig(index_interval_bytes=1024, compact=True), time.time_ns() // 1_000_000, clean=clean)
    return log, [
        (
            record.offset,
            record.timestamp,
            record.key and bytes(record.key),
            None if record.value is None else bytes(record.value),
        )
        for found in log.batches(log.start_offset)
        if not found.header.control
        for record in found.records()
    ]


@pytest.mark.parametrize("state", ["stopped", "living"])
def test_we_read_what_kafka_wrote(kafka: Kafka, stopped: dict[str, Seen], tmp_path: Path, state: str):
    """After a clean end, and from files copied while it ran, as a crash would leave them."""
    for topic, seen in stopped.items():
        source = kafka.data if state == "stopped" else kafka.folder / "living"
        shutil.copytree(source / f"{topic}-0", tmp_path / f"{topic}-0")
        log, found = ours(tmp_path / f"{topic}-0", clean=state == "stopped")
        assert len(found) > 0
        assert found == seen, topic
        log.close(clean=True)


def test_look_ups_find_what_kafka_finds(kafka: Kafka, stopped: dict[str, Seen], tmp_path: Path):
    heard = {}
    for topic in {topic for topic, _ in LISTED}:
        shutil.copytree(kafka.folder / "living" / f"{topic}-0", tmp_path / f"{topic}-0")
        log, _ = ours(tmp_path / f"{topic}-0", clean=False)
        for timestamp in ASKED:
            heard[topic, timestamp] = tuple(log.list_offset(timestamp, log.end_offset))
    assert heard == LISTED


def test_our_side_files_are_kafkas_byte_for_byte(kafka: Kafka, stopped: dict[str, Seen], tmp_path: Path):
    """Made anew from its .log files, by the path that recovery takes."""
    for topic in stopped:
        theirs = kafka.data / f"{topic}-0"
        copy = tmp_path / f"{topic}-0"
        copy.mkdir()
        for path in theirs.iterdir():
            if path.suffix == ".log" or path.name in ("leader-epoch-checkpoint", "partition.metadata"):
                shutil.copy(path, copy)
        settings = LogConfig(index_interval_bytes=1024 if topic == "plain" else 4096, compact=True)
        log = Log.open(copy, settings, time.time_ns() // 1_000_000)
        log.close(clean=True)
        compared = 0
        for path in theirs.iterdir():
            # A compacted segment is written in chunks by Kafka's cleaner, which counts its intervals by those.
            if topic == "compacted" and path.suffix in (".index", ".timeindex"):
                continue
            if path.suffix == ".snapshot":
                at = int(path.stem)
                producers, _ = producers_at(str(copy), log.segments, [], at, settings, time.time_ns() // 1_000_000)
                if topic != "compacted":
                    assert snapshot.render(producers) == path.read_bytes(), path
                assert snapshot.render(snapshot.parse(path.read_bytes())) == path.read_bytes()
            else:
                assert (copy / path.name).read_bytes() == path.read_bytes(), path
            compared += 1
        assert compared >= 5 or topic == "compacted"


def test_kafka_goes_on_where_we_stop(kafka: Kafka, stopped: dict[str, Seen]):
    """We open its data directory, append, close; Kafka starts on it, finds all of it, and nothing to
    repair."""
    node = DataDirectory(kafka.data, cluster_id=CLUSTER_ID, node_id=1, new_id=(1).to_bytes(16, "big"))
    assert node.was_clean
    now_ms = time.time_ns() // 1_000_000
    logs = {
        (topic, partition): node.open_log(
            topic, partition, LogConfig(segment_bytes=1 << 20, index_interval_bytes=1024), now_ms
        )
        for topic, partition in node.partitions()
        if topic != "__cluster_metadata"
    }
    plain = logs["plain", 0]
    for number in range(1200):
        sent = build([Record(part, now_ms, b"ours", b"%d" % number * 100) for part in range(5)])
        plain.append_as_leader(memoryview(sent), leader_epoch=plain.latest_epoch or 0, now_ms=now_ms)
    watermarks = {key: log.end_offset for key, log in logs.items()}
    node.save_high_watermarks(watermarks)
    expected = [record[0] for record in records(plain)]
    node.close(logs, clean=True, now_ms=now_ms, broker_epoch=node.clean_broker_epoch or -1)
    before = (kafka.folder / "kafka.log").stat().st_size
    try:
        kafka.start()
        seen = drive(kafka, "consume", "plain", "transactional")
        assert isinstance(seen, dict)
        assert [message[0] for message in seen["plain"]] == expected
        assert seen["transactional"] == stopped["transactional"]
    finally:
        kafka.stop()
    log = (kafka.folder / "kafka.log").read_text()[before:]
    assert not re.search("(?i)corrupt|recover|unclean", log), log[-3000:]


# ---- what is refused, and why ----------------------------------------------------------------------------


def signed(sent: memoryview | bytearray) -> bytes:
    view = memoryview(sent)
    pack_into(">I", view, 17, checksum(view[CHECKED_FROM:]))
    return bytes(view)


def changed(at: int, form: str, *fields: int, sign: bool = True, **more: object) -> Callable[[], bytes]:
    """A sound batch of three records with one field changed."""

    def make() -> bytes:
        sent = fresh(b"one", b"two", b"three", **more)
        pack_into(">" + form, sent, at, *fields)
        return signed(sent) if sign else bytes(sent)

    return make


def fresh(*values: bytes | None, **more: object) -> memoryview:
    return batch(*values, timestamp=time.time_ns() // 1_000_000, **more)


def many(count: int, **more: object) -> Callable[[], bytes]:
    return lambda: bytes(fresh(*[b"v"] * count, **more))


def payload(content: bytes, codec: int = 0) -> Callable[[], bytes]:
    """Three records declared, and this in their place."""

    def make() -> bytes:
        sent = bytearray(bytes(fresh(b"one", b"two", b"three"))[:HEADER_SIZE]) + content
        pack_into(">i", sent, 8, len(sent) - 12)
        pack_into(">h", sent, 21, codec)
        return signed(sent)

    return make


def with_deltas(codec: Codec, *deltas: int) -> Callable[[], bytes]:
    def make() -> bytes:
        now_ms = time.time_ns() // 1_000_000
        sent = build([Record(delta, now_ms, b"k", b"v") for delta in deltas], codec=codec)
        pack_into(">i", sent, 23, len(deltas) - 1)
        return signed(sent)

    return make


PRODUCER = {"producer_id": 4000, "producer_epoch": 1}
STRANGE: dict[str, tuple[str, Callable[[], bytes]]] = {
    "sound": ("bad", many(3)),
    "many sound": ("bad", many(30)),
    "sound, gzip": ("bad", many(3, codec=Codec.GZIP)),
    "base offset not 0": ("bad", changed(0, "q", 5)),
    "wrong checksum": ("bad", changed(17, "I", 1, sign=False)),
    "magic 1": ("bad", changed(16, "b", 1, sign=False)),
    "magic 3": ("bad", changed(16, "b", 3, sign=False)),
    "nothing": ("bad", lambda: b""),
    "cut short": ("bad", lambda: bytes(fresh(b"one", b"two"))[:-5]),
    "a tail of 3 bytes": ("bad", lambda: bytes(fresh(b"one")) + b"abc"),
    "a tail of zeros": ("bad", lambda: bytes(fresh(b"one")) + bytes(20)),
    "a cut second batch": ("bad", lambda: bytes(fresh(b"one")) + bytes(fresh(b"two"))[:-4]),
    "two batches": ("bad", lambda: bytes(fresh(b"one")) + bytes(fresh(b"two"))),
    "length 5": ("bad", changed(8, "i", 5)),
    "length 20": ("bad", changed(8, "i", 20)),
    "length 48": ("bad", changed(8, "i", 48)),
    "length -1": ("bad", changed(8, "i", -1)),
    "count 0": ("bad", changed(57, "i", 0)),
    "count -1": ("bad", changed(57, "i", -1)),
    "count 2 of 3": ("bad", changed(57, "i", 2)),
    "two offsets for three records": ("bad", changed(23, "i", 1)),
    "2 of 3, consistently": ("bad", lambda: signed(_declared(2))),
    "4 of 3, consistently": ("bad", lambda: signed(_declared(4))),
    "no offsets": ("bad", changed(23, "i", -1)),
    "control": ("bad", changed(21, "h", 0x20)),
    "producer without sequence": ("bad", many(3, producer_id=4001, producer_epoch=0)),
    "too large": ("bad", lambda: bytes(fresh(b"x" * 100_000))),
    "far future": ("bad", lambda: bytes(batch(b"x", b"y", timestamp=time.time_ns() // 1_000_000 + 7_200_000))),
    "far future, many": ("bad", lambda: bytes(batch(*[b"x"] * 9, timestamp=time.time_ns() // 1_000_000 + 7_200_000))),
    "far past": ("bad", lambda: bytes(batch(b"x", timestamp=5))),
    "no timestamp": ("bad", lambda: bytes(batch(b"x", timestamp=-1))),
    "claims LogAppendTime": ("bad", changed(21, "h", 0x08)),
    "delete horizon": ("bad", changed(21, "h", 0x40)),
    "compression 5": ("bad", changed(21, "h", 5)),
    "not gzip": ("bad", payload(b"this is not compressed", Codec.GZIP)),
    "record longer than batch": ("bad", payload(b"\x7e\0\0\0\1\1\0")),
    "record of negative length": ("bad", payload(b"\x01\0\0\0\1\1\0")),
    "deltas 0 0 0": ("bad", lambda: signed(_same_deltas(Codec.NONE))),
    "deltas 0 5 9": ("bad", with_deltas(Codec.NONE, 0, 5, 9)),
    "idempotent": ("bad", many(3, **PRODUCER, base_sequence=0)),
    "idempotent again": ("bad", many(3, **PRODUCER, base_sequence=0)),
    "idempotent next": ("bad", many(2, **PRODUCER, base_sequence=3)),
    "idempotent first again": ("bad", many(3, **PRODUCER, base_sequence=0)),
    "overlapping sequence": ("bad", many(3, **PRODUCER, base_sequence=2)),
    "gap": ("bad", many(3, **PRODUCER, base_sequence=9)),
    "old epoch": ("bad", many(3, producer_id=4000, producer_epoch=0, base_sequence=5)),
    "new epoch, not from 0": ("bad", many(3, producer_id=4000, producer_epoch=2, base_sequence=5)),
    "new epoch": ("bad", many(3, producer_id=4000, producer_epoch=2, base_sequence=0)),
    "unknown producer in the middle": ("bad", many(3, producer_id=4002, producer_epoch=0, base_sequence=77)),
    "last sequence": ("bad", many(3, producer_id=4003, producer_epoch=0, base_sequence=2**31 - 3)),
    "wraps to 0": ("bad", many(3, producer_id=4003, producer_epoch=0, base_sequence=0)),
    "keyless": ("bad-compacted", lambda: bytes(fresh(b"a", b"b", key=None))),
    "one keyless": ("bad-compacted", lambda: bytes(keyed_some())),
    "keyed": ("bad-compacted", many(2)),
    "keyless, gzip": ("bad-compacted", lambda: bytes(fresh(b"a", b"b", key=None, codec=Codec.GZIP))),
    "compacted, not gzip": ("bad-compacted", payload(b"this is not compressed", Codec.GZIP)),
    "compacted, deltas 0 5 9, gzip": ("bad-compacted", with_deltas(Codec.GZIP, 0, 5, 9)),
    "compacted, 2 of 3": ("bad-compacted", lambda: signed(_declared(2))),
    "stamped far past": ("bad-stamped", lambda: bytes(batch(b"x", timestamp=5))),
    "stamped far future": ("bad-stamped", lambda: bytes(batch(b"x", timestamp=2**50))),
    "stamped claims it": ("bad-stamped", changed(21, "h", 0x08)),
}


def keyed_some() -> memoryview:
    now_ms = time.time_ns() // 1_000_000
    return memoryview(build([Record(number, now_ms, b"k" if number % 2 else None, b"v") for number in range(5)]))


def _declared(count: int) -> memoryview:
    sent = fresh(b"one", b"two", b"three")
    pack_into(">i", sent, 57, count)
    pack_into(">i", sent, 23, count - 1)
    return sent


def _same_deltas(codec: Codec) -> bytearray:
    sent = bytearray(bytes(fresh(b"v", b"v", b"v")))
    size = (len(sent) - HEADER_SIZE) // 3
    for number in range(3):
        sent[HEADER_SIZE + number * size + 3] = 0
    return sent


def test_strange_batches_hear_what_kafka_says(said: dict[str, Answer], tmp_path: Path):
    logs = {
        "bad": opened(tmp_path / "bad-0", max_message_bytes=100_000),
        "bad-compacted": opened(tmp_path / "bad-compacted-0", compact=True, delete=False),
        "bad-stamped": opened(tmp_path / "bad-stamped-0", log_append_time=True),
    }
    differences = []
    for name, (topic, make) in STRANGE.items():
        log = logs[topic]
        before = log.size, log.end_offset
        try:
            result = log.append_as_leader(
                memoryview(bytearray(make())), leader_epoch=0, now_ms=time.time_ns() // 1_000_000
            )
            heard = Answer(0, result.base_offset, [])
        except BrokerError as refusal:
            bad = [number for number, _ in refusal.record_errors] if isinstance(refusal, RejectedRecords) else []
            heard = Answer(refusal.code, -1, bad)
            assert (log.size, log.end_offset) == before
        if heard != said[name]:
            differences.append(f"{name}: we say {heard}, Kafka {said[name]}")
    assert differences == []


# ---- Kafka's tools on our files --------------------------------------------------------------------------


def dump(java: Java, *args: str) -> str:
    run = subprocess.run(
        java("kafka-4.3.1", "org.apache.kafka.tools.DumpLogSegments", *args),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr + run.stdout
    for trouble in ("isvalid: false", "Mismatch", "mismatch", "out of order", "Exception", "corrupt", "not found"):
        assert trouble not in run.stdout + run.stderr, run.stdout + run.stderr
    return run.stdout


def files(path: Path, *suffixes: str) -> str:
    found = sorted(str(entry) for entry in path.iterdir() if entry.suffix in suffixes)
    assert found
    return ",".join(found)


def test_dump_tool_reads_everything_we_write(java: Java, tmp_path: Path):
    path = tmp_path / "ours-0"
    log = opened(path, segment_bytes=20_000, index_interval_bytes=500)
    for number in range(60):
        append(log, *[b"%d" % number * 20] * (number % 7 + 1), codec=Codec(number % 5), epoch=number // 20)
        idempotent(log, number * 2, b"a", b"b", producer=1)
        idempotent(log, number, b"t", producer=2, transactional=True)
        if number % 3 == 2:
            end(log, number % 2 == 0, producer=2)
    log.close(clean=True)
    count = log.end_offset
    logs = dump(java, "--deep-iteration", "--print-data-log", "--files", files(path, ".log"))
    assert len(re.findall(r"^\| offset: \d+", logs, re.MULTILINE)) == count
    assert "endTxnMarker: ABORT" in logs
    dump(java, "--verify-index-only", "--files", files(path, ".index"))
    dump(java, "--index-sanity-check", "--files", files(path, ".index", ".timeindex"))
    assert "offset: " in dump(java, "--files", files(path, ".index", ".timeindex"))
    side = dump(java, "--files", files(path, ".txnindex", ".snapshot"))
    assert "producerId: 2" in side
    assert "lastStableOffset" in side


def test_dump_tool_reads_compacted_segments(java: Java, tmp_path: Path):
    path = tmp_path / "ours-0"
    log = opened(
        path, segment_bytes=3000, index_interval_bytes=200, compact=True, delete=False, min_cleanable_dirty_ratio=0.0
    )
    now_ms = time.time_ns() // 1_000_000
    for number in range(120):
        pairs = [(b"%d" % (number % 11), b"v%d" % number), (b"t", None if number % 2 else b"x")]
        log.append_as_leader(keyed(pairs, now_ms), leader_epoch=0, now_ms=now_ms)
        idempotent(log, number, b"t", producer=2, transactional=True)
        end(log, number % 3 == 0, producer=2)
    plan = cleaner.plan(log, now_ms, log.end_offset)
    assert plan is not None
    assert cleaner.adopt(log, plan.run(), now_ms)
    log.sweep(now_ms + 1_000_000)
    log.close(clean=True)
    dump(java, "--deep-iteration", "--print-data-log", "--files", files(path, ".log"))
    dump(java, "--index-sanity-check", "--files", files(path, ".index", ".timeindex"))
    dump(java, "--files", files(path, ".index", ".timeindex"))


def text(value: str) -> bytes:
    return pack(">h", len(value)) + value.encode()


def test_dump_tool_decodes_offsets_and_transactions(java: Java, tmp_path: Path):
    offsets = opened(tmp_path / "__consumer_offsets-0", compact=True)
    key = pack(">h", 1) + text("group") + text("orders") + pack(">i", 3)
    value = pack(">hqi", 3, 42, 0) + text("note") + pack(">q", 1_700_000_000_000)
    sent = memoryview(build([Record(0, 1_700_000_000_000, key, value)]))
    offsets.append_as_leader(sent, leader_epoch=0, now_ms=1_700_000_000_000, origin=Origin.COORDINATOR)
    offsets.close(clean=True)
    told = dump(java, "--offsets-decoder", "--files", files(tmp_path / "__consumer_offsets-0", ".log"))
    assert '"group":"group"' in told.replace(" ", "")
    assert '"offset":42' in told.replace(" ", "")
    transactions = opened(tmp_path / "__transaction_state-0", compact=True)
    key = pack(">h", 0) + text("pay")
    value = pack(">hqhibiqq", 0, 9, 2, 60_000, 0, -1, 1_700_000_000_000, -1)
    sent = memoryview(build([Record(0, 1_700_000_000_000, key, value)]))
    transactions.append_as_leader(sent, leader_epoch=0, now_ms=1_700_000_000_000, origin=Origin.COORDINATOR)
    transactions.close(clean=True)
    told = dump(java, "--transaction-log-decoder", "--files", files(tmp_path / "__transaction_state-0", ".log"))
    assert '"transactionalId":"pay"' in told.replace(" ", "")
