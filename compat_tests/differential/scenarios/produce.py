"""Produce: what is taken, what is refused, and with which code."""

import struct
import zlib
from typing import Any

from compat_tests.differential.asking import NOBODYS_ID, TIME_MS, Asking, Topic, batch, scenario
from trilogue.wire.apis.produce import ProduceRequest
from trilogue.wire.compression import Codec
from trilogue.wire.records import Record, build, checksum

Data = ProduceRequest.Topic.Partition


def request(topic: Topic, *records: Any, partition: int = 0, **more: Any) -> ProduceRequest:
    data = [Data(index=partition, records=each) for each in records]
    asked = ProduceRequest.Topic(name=topic.name, topic_id=topic.id, partition_data=data)
    return ProduceRequest(**({"acks": -1, "timeout_ms": 5000, "topic_data": [asked]} | more))


def message_set(magic: int, value: bytes) -> bytes:
    """One message of the old formats."""
    body = struct.pack(">bb", magic, 0) + (struct.pack(">q", TIME_MS) if magic else b"")
    body += struct.pack(">i", -1) + struct.pack(">i", len(value)) + value
    return struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body


def resealed(raw: bytes, **fields: int) -> bytes:
    """A batch with other numbers in its header, and a right checksum."""
    places = {"attributes": (21, ">h"), "last_offset_delta": (23, ">i"), "count": (57, ">i"), "base_offset": (0, ">q")}
    changed = bytearray(raw)
    for name, number in fields.items():
        at, form = places[name]
        struct.pack_into(form, changed, at, number)
    struct.pack_into(">I", changed, 17, checksum(memoryview(changed)[21:]))
    return bytes(changed)


@scenario(ProduceRequest)
def appending(ask: Asking) -> None:
    topic = ask.topic("plain", 2)
    for acks in (-1, 1):
        ask(f"acks {acks}", request(topic, batch("one", "two"), acks=acks))
    ask("headers, null key and null value", request(topic, batch(None, "x", keys=(None, b"k"))))
    for codec in Codec:
        ask(f"compression {codec.name}", request(topic, batch("a" * 100, "b" * 100, codec=codec)))
    ask("no topics", ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[]))
    ask("no partitions", request(topic))
    ask("two partitions", two_partitions(topic))
    ask("the same partition twice", request(topic, batch("first"), batch("second")))
    ask("partition 2 of 2", request(topic, batch("x"), partition=2))
    ask("partition -1", request(topic, batch("x"), partition=-1))
    unknown = Topic(ask.name("unknown"), NOBODYS_ID)
    ask("an unknown topic", request(unknown, batch("x")))
    ask("a known and an unknown topic", both(topic, unknown))
    ask("a name that cannot be", request(Topic("a/b", bytes(16)), batch("x")))
    ask("no name", request(Topic("", bytes(16)), batch("x")))
    for acks in (2, -2, 32767):
        ask(f"acks {acks}", request(topic, batch("x"), acks=acks))
    ask("no patience", request(topic, batch("x"), timeout_ms=0))
    ask("bytes behind the request", request(topic, batch("x")), trailing=b"more")
    ask("what came of it", request(topic, batch("the end")))


def two_partitions(topic: Topic) -> ProduceRequest:
    data = [Data(index=0, records=batch("zero")), Data(index=1, records=batch("one"))]
    asked = ProduceRequest.Topic(name=topic.name, topic_id=topic.id, partition_data=data)
    return ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[asked])


def both(*topics: Topic) -> ProduceRequest:
    asked = [
        ProduceRequest.Topic(name=each.name, topic_id=each.id, partition_data=[Data(index=0, records=batch("x"))])
        for each in topics
    ]
    return ProduceRequest(acks=-1, timeout_ms=5000, topic_data=asked)


@scenario(ProduceRequest)
def silence(ask: Asking) -> None:
    """acks 0 has no answer; an error closes the connection."""
    topic = ask.topic("silent")
    ask.unanswered("fine", request(topic, batch("x"), acks=0))
    ask("the next answer", request(topic, batch("x")))
    ask.unanswered("an unknown topic", request(Topic(ask.name("unknown"), NOBODYS_ID), batch("x"), acks=0))
    ask.unanswered("an unknown partition", request(topic, batch("x"), partition=7, acks=0))
    broken = bytearray(batch("x"))
    broken[-1] ^= 1
    ask.unanswered("a wrong checksum", request(topic, bytes(broken), acks=0))
    ask.unanswered("no topics", ProduceRequest(acks=0, timeout_ms=1000, topic_data=[]))
    ask("what came of it", request(topic, batch("x")))


@scenario(ProduceRequest)
def wrong_records(ask: Asking) -> None:
    topic = ask.topic("wrong")
    good = batch("good", "better")
    for place in (8, 12, 16, 20, 21, 30, 40, 60, len(good) - 1):
        damaged = bytearray(good)
        damaged[place] ^= 0x41
        ask(f"a flipped byte at {place}", request(topic, bytes(damaged)))
    for case, raw in (
        # Null records are not asked for: Kafka stumbles over them and never answers.
        ("empty records", b""),
        ("one byte", b"\0"),
        ("a header alone", good[:61]),
        ("half a batch", good[: len(good) // 2]),
        ("all but the last byte", good[:-1]),
        ("one byte too many", good + b"\0"),
        ("twelve zeros behind", good + bytes(12)),
        ("two batches", good + good),
        ("a batch and a half", good + good[:70]),
        ("a thousand zeros", bytes(1000)),
        ("magic 0", message_set(0, b"old")),
        ("magic 1", message_set(1, b"old")),
        ("a base offset", resealed(good, base_offset=7)),
        ("a control batch", resealed(good, attributes=0x20)),
        ("a control batch of a transaction", resealed(good, attributes=0x30)),
        ("a transactional batch of nobody", resealed(good, attributes=0x10)),
        ("compression 5", resealed(good, attributes=5)),
        ("compression 7", resealed(good, attributes=7)),
        ("log append time claimed", resealed(good, attributes=8)),
        ("a delete horizon", resealed(good, attributes=0x40)),
        ("one record less than declared", resealed(good, count=3, last_offset_delta=2)),
        ("one record more than declared", resealed(good, count=1, last_offset_delta=0)),
        ("no records declared", resealed(good, count=0, last_offset_delta=-1)),
        ("fewer offsets than records", resealed(good, last_offset_delta=0)),
        ("more offsets than records", resealed(good, last_offset_delta=5)),
        ("a negative count", resealed(good, count=-1)),
        ("too large", batch(b"x" * 1_100_000)),
        ("too large, but compressed", batch(b"x" * 1_100_000, codec=Codec.GZIP)),
        ("a timestamp two hours ahead", batch("x", at_ms=4_000_000_000_000)),
        ("no timestamp", bytes(build([Record(0, -1, b"k", b"v")]))),
    ):
        ask(case, request(topic, raw))
    ask("what came of it", request(topic, batch("the end")))
    other = ask.topic("other")
    ask("gzip that is not", request(other, resealed(good, attributes=1)))
    ask("zstd that is not", request(other, resealed(good, attributes=4)))


@scenario(ProduceRequest)
def settings(ask: Asking) -> None:
    """What a topic may ask of its records."""
    compacted = ask.topic("compacted", cleanup_policy="compact")
    ask("keys, compacted", request(compacted, batch("a", "b")))
    ask("no key, compacted", request(compacted, batch("a", "b", "c", keys=(b"k", None, None))))
    ask("no key, compacted and compressed", request(compacted, batch("a", keys=(None,), codec=Codec.ZSTD)))
    stamped = ask.topic("stamped", message_timestamp_type="LogAppendTime")
    ask("log append time", request(stamped, batch("a", "b")))
    ask("log append time, compressed", request(stamped, batch("a", "b", codec=Codec.GZIP)))
    strict = ask.topic("strict", message_timestamp_before_max_ms="1000", message_timestamp_after_max_ms="1000")
    ask("too old", request(strict, batch("a", "b")))
    ask("too new", request(strict, batch("a", "b", at_ms=4_000_000_000_000)))
    small = ask.topic("small", max_message_bytes="100")
    ask("at the limit", request(small, batch("x" * 25)))
    ask("just above the limit", request(small, batch("x" * 40)))
    squeezed = ask.topic("squeezed", compression_type="gzip")
    ask("compressed by the broker", request(squeezed, batch("a" * 300)))
    plain = ask.topic("uncompressed", compression_type="uncompressed")
    ask("uncompressed by the broker", request(plain, batch("a" * 300, codec=Codec.ZSTD)))
    two_needed = ask.topic("two", min_insync_replicas="2")
    ask("too few replicas, all wanted", request(two_needed, batch("x")))
    ask("too few replicas, one wanted", request(two_needed, batch("x"), acks=1))


@scenario(ProduceRequest)
def sequences(ask: Asking) -> None:
    """Idempotent producers: duplicates, gaps, epochs."""
    topic = ask.topic("sequenced", 2)

    def of(producer: int, epoch: int, sequence: int, *values: str, **more: Any) -> bytes:
        return batch(*values, producer_id=producer, producer_epoch=epoch, base_sequence=sequence, **more)

    for case, raw in (
        ("the first", of(4711, 0, 0, "a", "b")),
        ("the next", of(4711, 0, 2, "c")),
        ("a repetition of the last", of(4711, 0, 2, "c")),
        ("a repetition of the first", of(4711, 0, 0, "a", "b")),
        ("half of a repetition", of(4711, 0, 0, "a")),
        ("a gap", of(4711, 0, 5, "d")),
        ("an old sequence", of(4711, 0, 1, "d")),
        ("the next after all that", of(4711, 0, 3, "d")),
        ("a new epoch that does not begin at 0", of(4711, 1, 4, "e")),
        ("a new epoch", of(4711, 1, 0, "e")),
        ("the old epoch", of(4711, 0, 4, "f")),
        ("a repetition of the old epoch", of(4711, 0, 3, "d")),
        ("a stranger that does not begin at 0", of(4712, 0, 17, "a")),
        ("a stranger of a later epoch", of(4713, 5, 0, "a")),
        ("no sequence", of(4714, 0, -1, "a")),
        ("no epoch", of(4715, -1, 0, "a")),
        ("the last sequence there is", of(4716, 0, 2**31 - 2, "a", "b")),
        ("and around the corner", of(4716, 0, 0, "c")),
        ("around the corner within a batch", of(4717, 0, 2**31 - 1, "a", "b")),
        ("after that", of(4717, 0, 1, "c")),
        ("a transaction that nobody began", of(4718, 0, 0, "a", transactional=True)),
    ):
        ask(case, request(topic, raw))
    for number in range(6):
        ask(f"batch {number} of six", request(topic, of(4720, 0, number, "x"), partition=1))
    ask("a repetition of the second of six", request(topic, of(4720, 0, 1, "x"), partition=1))
    ask("a repetition of the first of six", request(topic, of(4720, 0, 0, "x"), partition=1))
