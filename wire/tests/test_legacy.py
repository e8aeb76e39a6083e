"""Message sets: read, converted up and down; Kafka and kafka-python agree, and bad bytes are refused."""

from collections.abc import Iterator
from random import Random
from struct import pack, pack_into
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trilogue.wire import legacy
from trilogue.wire.compression import Codec, compress
from trilogue.wire.errors import BrokerError, ErrorCode, MalformedMessage
from trilogue.wire.legacy import down_convert, up_convert
from trilogue.wire.records import Record, batches, build, end_transaction_marker
from trilogue.wire.tests.records_oracle import (
    Java,
    ask,
    copied,
    kafka_python_builds,
    kafka_python_reads,
    random_records,
    run,
    said,
    some_records,
    word,
)

MAGICS = st.sampled_from([0, 1])
OLD_CODECS = [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4]
TWO = [Record(5, 1000, b"k", b"v"), Record(8, 900, None, b"vv")]


def aged(records: list[Record], magic: int) -> list[Record]:
    """What an old format keeps of records: no headers, and no timestamps in the oldest."""
    return [record._replace(headers=(), timestamp=record.timestamp if magic else -1) for record in records]


def read(buf: bytes | bytearray) -> list[Record]:
    return copied(legacy.records(buf))


def message(offset: int, magic: int, attributes: int, value: bytes | None, timestamp: int = 1000) -> bytes:
    """One message without a key, whatever is inside."""
    size = -1 if value is None else len(value)
    body = bytes([magic, attributes]) + (timestamp.to_bytes(8, "big") if magic else b"") + b"\xff" * 4
    return framed(body + size.to_bytes(4, "big", signed=True) + (value or b""), offset)


def framed(body: bytes, offset: int = 0) -> bytes:
    """Whatever it is, behind an offset, a size and a checksum that is right."""
    return pack(">qiI", offset, len(body) + 4, crc32(body)) + body


# Message sets.


@given(some_records(base_offset=40), MAGICS, st.sampled_from(OLD_CODECS))
def test_a_message_set_reads_back_as_it_was_built(records: list[Record], magic: int, codec: Codec):
    assert read(legacy.build(records, magic, codec=codec)) == aged(records, magic)


def test_a_compressed_set_is_one_message_at_the_offset_of_its_last():
    packed = legacy.build(TWO, 1, codec=Codec.GZIP)

    assert int.from_bytes(packed[:8], "big") == 8
    assert int.from_bytes(packed[8:12], "big") + 12 == len(packed)


def test_a_wrapper_at_zero_is_read_as_beginning_there_since_old_librdkafka_sends_it():
    packed = bytearray(legacy.build([Record(offset, 0, None, b"") for offset in range(3)], 1, codec=Codec.GZIP))
    packed[:8] = bytes(8)

    assert [record.offset for record in legacy.records(packed)] == [0, 1, 2]


def test_log_append_time_of_a_wrapper_is_the_time_of_all_inside():
    inside = legacy.build([Record(0, 1, None, b"a"), Record(1, 2, None, b"b")], 1)
    wrapper = message(1, 1, 0x08 | Codec.GZIP, bytes(compress(Codec.GZIP, inside)), timestamp=7777)

    assert [record.timestamp for record in legacy.records(wrapper)] == [7777, 7777]


def test_a_partial_message_at_the_end_is_passed_over_if_asked():
    buf = legacy.build(TWO, 1)
    for cut in range(len(buf) // 2 + 1, len(buf)):
        assert copied(legacy.records(buf[:cut], partial_ok=True)) == TWO[:1]
        with pytest.raises(MalformedMessage):
            read(buf[:cut])


# Up.


@given(some_records(gaps=False), MAGICS, st.sampled_from(OLD_CODECS))
def test_converted_up_a_set_is_one_batch(records: list[Record], magic: int, codec: Codec):
    (batch,) = batches(up_convert(legacy.build(records, magic, codec=codec)))

    assert batch.crc_ok()
    assert batch.header.codec is codec
    assert copied(batch.records()) == aged(records, magic)


def test_converted_up_offsets_are_counted_from_zero():
    (batch,) = batches(up_convert(legacy.build(TWO, 1) + legacy.build(TWO, 1)))

    assert [record.offset for record in batch.records()] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("first", "second"), [(Codec.LZ4, Codec.LZ4), (Codec.LZ4, Codec.NONE), (Codec.NONE, Codec.LZ4)]
)
def test_converted_up_a_compressed_message_is_alone(first: Codec, second: Codec):
    with pytest.raises(MalformedMessage, match="not alone in its set"):
        up_convert(legacy.build(TWO, 1, codec=first) + legacy.build(TWO, 1, codec=second))


def test_converted_up_log_append_time_stays_visible():
    (batch,) = batches(up_convert(legacy.build(TWO, 1, log_append_time_ms=7777)))

    assert (batch.header.log_append_time, batch.header.max_timestamp) == (True, 7777)


def test_converted_up_nothing_is_refused():
    with pytest.raises(MalformedMessage, match="a message set without messages"):
        up_convert(b"")


# Down.


@given(some_records(base_offset=40), MAGICS, st.sampled_from(OLD_CODECS))
def test_converted_down_a_batch_loses_what_old_formats_lack(records: list[Record], magic: int, codec: Codec):
    assert read(down_convert(build(records, base_offset=40, codec=codec), magic)) == aged(records, magic)


def test_converted_down_what_is_compressed_stays_so():
    packed = down_convert(build(TWO, codec=Codec.LZ4), 1)

    assert packed[17] & 7 == Codec.LZ4
    assert int.from_bytes(packed[8:12], "big") + 12 == len(packed)


def test_converted_down_control_batches_are_gone():
    marker = end_transaction_marker(True, 0, producer_id=1, producer_epoch=0, timestamp=0, base_offset=9)

    assert read(down_convert(build(TWO) + marker + build(TWO), 1)) == TWO + TWO
    assert down_convert(marker, 1) == b""


def test_converted_down_records_before_the_fetch_offset_are_gone_unless_compressed():
    assert read(down_convert(build(TWO), 1, first_offset=8)) == TWO[1:]
    assert read(down_convert(build(TWO), 1, first_offset=9)) == []
    assert read(down_convert(build(TWO, codec=Codec.GZIP), 1, first_offset=8)) == TWO


def test_zstd_cannot_be_converted_down():
    with pytest.raises(BrokerError) as refused:
        down_convert(build(TWO, codec=Codec.ZSTD), 1)
    assert refused.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_an_inflated_set_past_the_cap_is_refused():
    large = [Record(0, 0, None, bytes(1 << 20))]
    with pytest.raises(MalformedMessage, match="with room for 1048576"):
        up_convert(legacy.build(large, 1, codec=Codec.GZIP), cap=1 << 20)
    with pytest.raises(MalformedMessage, match="with room for 1048576"):
        down_convert(build(large, codec=Codec.GZIP), 1, cap=1 << 20)


# Bad bytes.


def gzipped(inside: bytes) -> bytes:
    return bytes(compress(Codec.GZIP, inside))


def hurt(at: int) -> bytearray:
    buf = bytearray(legacy.build(TWO, 1))
    buf[at] ^= 0x40
    return buf


@pytest.mark.parametrize(
    ("buf", "problem"),
    [
        (bytes(15), "a message begins with 16 bytes, 15 left"),
        (bytes(16), "a message of 0 bytes, which cannot be less than 14"),
        (bytes(11) + b"\x0d" + bytes(13), "a message of 13 bytes, which cannot be less than 14"),
        (bytes(11) + b"\x0e" + bytes(13), "a message of 14 bytes, 13 left"),
        (build(TWO), "a message of magic 2, not 0 or 1"),
        (hurt(20), "the message at offset 5 does not match its checksum"),
        (framed(b"\1\0" + bytes(8)), "4 bytes expected in a message, 0 left"),
        (framed(b"\0\0\0\0\0\5" + bytes(4)), "a key or value of 5 bytes, 4 left"),
        (framed(b"\0\0" + bytes(9)), "1 bytes left after a message's value"),
        (message(0, 0, 4, b""), "compression 4 in a message of magic 0"),
        (message(0, 1, 7, b""), "compression 7 in a message of magic 1"),
        (message(0, 1, 1, None), "a compressed message without a value"),
        (message(0, 1, 1, gzipped(b"")), "a compressed message with nothing inside"),
        (message(9, 1, 1, gzipped(legacy.build(TWO, 0))), "a message of magic 0 inside one of magic 1"),
        (message(9, 1, 1, gzipped(legacy.build(TWO, 1, codec=Codec.GZIP))), "inside a compressed message"),
        (message(7, 1, 1, gzipped(legacy.build(TWO, 1))), "a wrapper at offset 7 around messages up to 8"),
    ],
)
def test_a_broken_message_is_refused_with_numbers(buf: bytes, problem: str):
    with pytest.raises(MalformedMessage, match=problem):
        read(buf)


def hostile(random: Random, many: int) -> Iterator[bytearray]:
    """Message sets with a few bytes changed, and outer checksums that are right nevertheless."""
    tame = [
        legacy.build(random_records(random)[:5], magic, codec=codec)
        for magic in (0, 1)
        for codec in OLD_CODECS
        for _ in range(4)
    ]
    for _ in range(many):
        buf = bytearray(random.choice(tame))
        for _ in range(random.choice([1, 1, 2, 4])):
            at = random.randrange(min(len(buf), random.choice([40, 200, 10**6])))
            match random.randrange(3):
                case 0:
                    buf[at] = random.choice([0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)])
                case 1:
                    buf[at] ^= 1 << random.randrange(8)
                case _ if random.random() < 0.3:
                    del buf[at + 18 :]
                    if buf[17] & 7:
                        pack_into(">i", buf, 8, len(buf) - 12)  # a wrapper, with less inside
        size = int.from_bytes(buf[8:12], "big", signed=True)
        if len(buf) > 16 and 4 < size <= len(buf) - 12:
            pack_into(">I", buf, 12, crc32(memoryview(buf)[16 : 12 + size]))
        yield buf


def outcome(buf: bytearray) -> str:
    try:
        return " ".join(map(word, read(buf)))
    except MalformedMessage:
        return "refused"


def test_hostile_message_sets_are_read_or_refused():
    outcomes = [outcome(buf) == "refused" for buf in hostile(Random(1), 5000)]

    assert 0.2 < sum(outcomes) / len(outcomes) < 0.95  # otherwise this would prove nothing


@given(st.binary(max_size=100), MAGICS)
def test_any_bytes_are_read_or_refused(junk: bytes, magic: int):
    outcome(bytearray(junk))
    for attributes in range(16):
        outcome(bytearray(message(0, magic, attributes, junk)))


@pytest.mark.slow
def test_very_many_hostile_message_sets_are_read_or_refused():
    for buf in hostile(Random(2), 200_000):
        outcome(buf)


# Others' opinions.


@settings(max_examples=50)
@given(some_records(headers=False, gaps=False), MAGICS, st.sampled_from([Codec.NONE, Codec.GZIP]))
def test_kafka_python_reads_what_we_build(records: list[Record], magic: int, codec: Codec):
    theirs = kafka_python_reads(legacy.build(records, magic, codec=codec))

    assert [each._replace(timestamp=each.timestamp if magic else -1) for each in theirs] == aged(records, magic)


@settings(max_examples=50)
@given(some_records(headers=False, gaps=False), MAGICS, st.sampled_from([Codec.NONE, Codec.GZIP]))
def test_we_read_what_kafka_python_builds(records: list[Record], magic: int, codec: Codec):
    theirs = kafka_python_builds(records, magic, codec)

    assert read(theirs) == aged(records, magic)
    if codec is Codec.NONE:
        assert legacy.build(records, magic) == theirs


@pytest.mark.java
def test_java_and_we_build_the_same_sets_and_read_each_others(java: Java):
    random = Random(3)
    commands, ours, wanted = [], [], []
    for _ in range(100):
        records = random_records(random, random.choice([0, 5, 2**40]), headers=False)
        magic, codec, stamp = random.choice([0, 1]), random.choice(OLD_CODECS), random.choice([None, None, 7777])
        head = f"write {magic} {int(codec)} {stamp or '-'} {records[0].offset} - -1 -1 -1 0 -1 -"
        commands.append(" ".join([head, *map(word, records)]))
        ours.append(legacy.build(records, magic, codec=codec, log_append_time_ms=stamp))
        stamped = [record._replace(timestamp=stamp or record.timestamp) for record in records]
        wanted.append(" ".join(map(word, aged(stamped, magic))))
        if codec is Codec.LZ4:
            assert (b"\x04\x22\x4d\x18\x60\x40" + (b"\x82" if magic else b"\x1a")) in ours[-1]
    theirs = [bytearray.fromhex(answer) for answer in ask(java, commands)]

    for our, their, records in zip(ours, theirs, wanted, strict=True):
        assert outcome(bytearray(our)) == outcome(their) == records
        if our[17] & 7 == Codec.NONE:
            assert our == their
        if our[17] & 7 == Codec.LZ4:
            assert our[:8] == their[:8]
    for answer, records in zip(ask(java, [f"read {our.hex()}" for our in ours]), wanted, strict=True):
        assert " ".join(word for word in answer.split() if not word.startswith("set,")) == records


@pytest.mark.java
def test_java_reads_what_we_convert_up(java: Java):
    random = Random(4)
    ours = [
        up_convert(legacy.build(random_records(random, headers=False), magic, codec=codec))
        for magic in (0, 1)
        for codec in OLD_CODECS
    ]

    assert ask(java, [f"read {our.hex()}" for our in ours]) == [said(our) for our in ours]


@pytest.mark.java
def test_we_convert_down_as_kafka_3_9_did(java: Java):
    random = Random(5)
    commands, ours = [], []
    for _ in range(100):
        records = random_records(random, base_offset=1000)
        magic, codec = random.choice([0, 1]), random.choice(OLD_CODECS)
        first_offset = random.choice([0, records[len(records) // 2].offset])
        buf = build(records, base_offset=1000, codec=codec, log_append_time_ms=random.choice([None, None, 7777]))
        buf += end_transaction_marker(True, 0, 1, 0, 0, base_offset=10**6) + build(TWO)
        commands.append(f"{magic} {first_offset} {buf.hex()}")
        ours.append(down_convert(buf, magic, first_offset))
    commands.append(f"1 0 {build(TWO, codec=Codec.ZSTD).hex()}")
    *theirs, zstd = run(java, "clients-3.9.1", "RecordsDownConvert.java", commands)

    assert zstd.startswith("refused org.apache.kafka.common.errors.UnsupportedCompressionTypeException")
    for our, answer in zip(ours, theirs, strict=True):
        their = bytearray.fromhex(answer)
        assert outcome(our) == outcome(their)
        if not our or our[17] & 7 == Codec.NONE:
            assert our == their


@pytest.mark.java
@pytest.mark.slow
def test_java_accepts_no_hostile_message_set_otherwise_than_we_do(java: Java):
    bufs = list(hostile(Random(6), 10_000))
    for buf, answer in zip(bufs, ask(java, [f"read {buf.hex()}" for buf in bufs]), strict=True):
        ours = outcome(buf)
        if ours != "refused":
            assert ours == " ".join(word for word in answer.split() if not word.startswith("set,")), buf.hex()
