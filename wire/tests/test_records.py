"""Record batches: what we build we read back, Kafka and kafka-python agree, and bad bytes are refused."""

import subprocess
import sys
from collections.abc import Iterator
from random import Random
from struct import pack_into

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from trilogue.wire.compression import Codec
from trilogue.wire.errors import MalformedMessage
from trilogue.wire.records import (
    CHECKED_FROM,
    HEADER_SIZE,
    Batch,
    ControlType,
    EndTransaction,
    Header,
    Record,
    batches,
    build,
    checksum,
    emptied,
    end_transaction,
    end_transaction_marker,
    patch,
    read_header,
    rebuild,
    set_log_append_time,
)
from trilogue.wire.tests.records_oracle import (
    Java,
    ask,
    copied,
    kafka_python_builds,
    kafka_python_reads,
    random_records,
    said,
    some_records,
    word,
)

CODECS = st.sampled_from(Codec)
TWO = [
    Record(5, 1000, b"k", b"v", (("h", b"x"), ("i", None))),
    Record(7, 900, None, b"vv"),
]


def only(buf: bytes | bytearray) -> Batch:
    (batch,) = batches(buf)
    return batch


def signed(buf: bytearray) -> bytearray:
    """The batch with a checksum that is right again."""
    pack_into(">I", buf, 17, checksum(memoryview(buf)[CHECKED_FROM:]))
    return buf


# Building and reading back.


@given(some_records(base_offset=40), CODECS)
def test_a_batch_reads_back_as_it_was_built(records: list[Record], codec: Codec):
    batch = only(build(records, base_offset=40, codec=codec))

    assert batch.crc_ok()
    assert copied(batch.records()) == records


def test_the_header_says_what_it_was_told():
    built = build(
        TWO,
        base_offset=5,
        last_offset=9,
        producer_id=77,
        producer_epoch=3,
        base_sequence=11,
        leader_epoch=4,
        transactional=True,
        codec=Codec.GZIP,
    )
    header = only(built).header

    assert header == Header(
        base_offset=5,
        batch_length=len(built) - 12,
        partition_leader_epoch=4,
        magic=2,
        crc=header.crc,
        attributes=0x11,
        last_offset_delta=4,
        base_timestamp=1000,
        max_timestamp=1000,
        producer_id=77,
        producer_epoch=3,
        base_sequence=11,
        count=2,
    )
    assert (header.size, header.last_offset, header.next_offset, header.last_sequence) == (len(built), 9, 10, 15)
    assert (header.codec, header.transactional, header.control) == (Codec.GZIP, True, False)
    assert (header.log_append_time, header.has_delete_horizon) == (False, False)


@pytest.mark.parametrize("delta", [0, 63, 64, 8191, 8192, 2**20, 2**27, 2**30, 2**31 - 1])
def test_offsets_of_any_width_are_kept(delta: int):
    assert [r.offset for r in only(build([Record(delta, 0, None, b"")])).records()] == [delta]


@pytest.mark.parametrize("far", [1, 63, 64, 8191, 8192, 2**31, 2**48, 2**62])
def test_timestamps_of_any_distance_are_kept(far: int):
    records = [Record(0, far, None, b""), Record(1, 0, None, b""), Record(2, 2 * far - 1, None, b"")]

    assert [r.timestamp for r in only(build(records)).records()] == [far, 0, 2 * far - 1]


@pytest.mark.parametrize("size", [0, 1, 63, 64, 8191, 8192, 1 << 20, 1 << 21])
def test_keys_and_values_of_any_size_are_kept(size: int):
    record = Record(0, 0, bytes(size), b"x" * size)

    assert copied(only(build([record])).records()) == [record]


def test_a_header_name_that_is_not_text_survives():
    name = b"caf\xe9".decode("utf-8", "surrogateescape")

    (record,) = only(build([Record(0, 0, None, None, ((name, b"x"),))])).records()

    assert record.headers[0][0].encode("utf-8", "surrogateescape") == b"caf\xe9"


def test_uncompressed_values_are_views_of_the_bytes_they_came_in():
    received = build(TWO, base_offset=5)
    first, _ = only(received).records()

    assert isinstance(first.value, memoryview)
    assert first.value.obj is received


def test_offsets_must_rise_from_the_base():
    with pytest.raises(ValueError, match="offset 4 does not come after 4"):
        build([Record(4, 0, None, None)], base_offset=5)
    with pytest.raises(ValueError, match="offset 7 does not come after 7"):
        build([Record(7, 0, None, None)] * 2)


def test_a_batch_is_not_built_of_nothing():
    with pytest.raises(ValueError, match="without records"):
        build([])


# Places, times and sequences.


def test_placing_a_batch_leaves_its_checksum_right():
    buf = bytearray(b"before") + build(TWO, base_offset=5)
    patch(memoryview(buf), 6, base_offset=1005, leader_epoch=8)
    batch = only(buf[6:])

    assert batch.crc_ok()
    assert (batch.header.base_offset, batch.header.partition_leader_epoch) == (1005, 8)
    assert [record.offset for record in batch.records()] == [1005, 1007]


def test_stamping_a_batch_gives_all_its_records_the_brokers_time():
    buf = bytearray(b"before") + build(TWO, base_offset=5, codec=Codec.LZ4)
    set_log_append_time(memoryview(buf), 6, 5555)
    batch = only(buf[6:])

    assert batch.crc_ok()
    assert (batch.header.log_append_time, batch.header.max_timestamp, batch.header.base_timestamp) == (True, 5555, 1000)
    assert [record.timestamp for record in batch.records()] == [5555, 5555]
    assert batch.header.codec is Codec.LZ4


def test_a_delete_horizon_stands_in_for_the_base_timestamp():
    batch = only(build(TWO, base_offset=5, delete_horizon_ms=10**12))

    assert (batch.header.has_delete_horizon, batch.header.base_timestamp) == (True, 10**12)
    assert [record.timestamp for record in batch.records()] == [1000, 900]


@pytest.mark.parametrize(("base", "last"), [(0, 2), (2**31 - 3, 2**31 - 1), (2**31 - 2, 0), (2**31 - 1, 1), (-1, -1)])
def test_after_the_largest_sequence_comes_zero(base: int, last: int):
    assert only(build(TWO, base_offset=5, base_sequence=base)).header.last_sequence == last


# What compaction leaves.


def test_a_rebuilt_batch_keeps_its_range_and_its_producer():
    whole = only(build(TWO, base_offset=5, last_offset=9, producer_id=77, producer_epoch=3, base_sequence=11))
    _, second = whole.records()
    left = only(rebuild(whole.header, [second]))

    assert copied(left.records()) == TWO[1:]
    assert left.header == whole.header._replace(
        batch_length=left.header.batch_length,
        crc=left.header.crc,
        base_timestamp=900,
        max_timestamp=900,
        count=1,
    )


def test_a_rebuilt_batch_keeps_the_horizon_it_had():
    whole = only(build(TWO, base_offset=5, delete_horizon_ms=4000))

    assert only(rebuild(whole.header, TWO[1:])).header.base_timestamp == 4000
    assert only(rebuild(whole.header, TWO[1:], delete_horizon_ms=9000)).header.base_timestamp == 9000


def test_an_emptied_batch_is_a_header_that_remembers_offsets_and_sequences():
    whole = only(
        build(
            TWO, base_offset=5, codec=Codec.ZSTD, producer_id=77, producer_epoch=3, base_sequence=11, transactional=True
        )
    )
    left = only(emptied(whole.header))

    assert left.crc_ok()
    assert len(left.view) == HEADER_SIZE
    assert list(left.records()) == []
    assert (left.header.last_offset, left.header.last_sequence, left.header.codec) == (7, 13, Codec.NONE)


# Control batches.


@pytest.mark.parametrize(("commit", "kind"), [(True, ControlType.COMMIT), (False, ControlType.ABORT)])
def test_the_end_of_a_transaction_reads_back(commit: bool, kind: ControlType):
    batch = only(end_transaction_marker(commit, 3, producer_id=7, producer_epoch=1, timestamp=99, base_offset=10))

    assert end_transaction(batch) == EndTransaction(kind, coordinator_epoch=3)
    assert (batch.header.control, batch.header.transactional, batch.header.base_sequence) == (True, True, -1)
    assert (batch.header.base_offset, batch.header.count, batch.crc_ok()) == (10, 1, True)


def marker(key: str, value: str) -> Batch:
    record = Record(0, 0, bytes.fromhex(key), bytes.fromhex(value))
    return only(build([record], control=True, transactional=True))


def test_a_newer_marker_is_read_as_far_as_we_know_it():
    assert end_transaction(marker("0001 0001 ff", "0001 00000007 ff")) == EndTransaction(ControlType.COMMIT, 7)


def test_other_control_records_do_not_end_a_transaction():
    assert end_transaction(marker("0000 0002", "0000")) is None
    assert end_transaction(only(build(TWO))) is None
    assert end_transaction(only(emptied(marker("0000 0001", "0000 00000007").header))) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [("", ""), ("0000 00", ""), ("ffff 0001", ""), ("0000 0001", "0000 0000"), ("0000 0001", "ffff 00000000")],
)
def test_a_broken_marker_is_refused(key: str, value: str):
    with pytest.raises(MalformedMessage):
        end_transaction(marker(key, value))


# Bad bytes.


def changed(**fields: int) -> bytearray:
    buf = build(TWO, base_offset=5)
    pack_into(">qiibIhiqqqhii", buf, 0, *read_header(buf)._replace(**fields))
    return buf


@pytest.mark.parametrize(
    ("buf", "problem"),
    [
        (bytearray(60), "a batch header takes 61 bytes, 60 left"),
        (changed(magic=1), "a batch of magic 1, not 2"),
        (changed(batch_length=48), "a batch of length 48, too short for its own header"),
        (changed(batch_length=-1), "a batch of length -1, too short for its own header"),
        (changed(attributes=5), "compression 5, which nobody has defined"),
        (changed(count=-1), "-1 records declared for 3 offsets"),
        (changed(count=4), "4 records declared for 3 offsets"),
        (changed(count=0, last_offset_delta=-2), "0 records declared for -1 offsets"),
    ],
)
def test_a_header_that_makes_no_sense_is_refused_with_numbers(buf: bytearray, problem: str):
    with pytest.raises(MalformedMessage) as refused:
        read_header(buf)
    assert str(refused.value) == problem


def test_more_bytes_than_records_are_refused():
    with pytest.raises(MalformedMessage, match="10 bytes left after the last of 1 records"):
        list(only(changed(count=1)).records())


def test_more_records_than_bytes_are_refused():
    with pytest.raises(MalformedMessage, match="3 records declared, and the bytes end before the last"):
        list(only(changed(count=3)).records())


def record_bytes(hexed: str, count: int = 1) -> Batch:
    """A batch of the header of one record, and whatever bytes behind it."""
    payload = bytes.fromhex(hexed)
    buf = build([Record(0, 0, None, None)])[:HEADER_SIZE] + payload
    header = read_header(buf)._replace(batch_length=49 + len(payload), count=count)
    pack_into(">qiibIhiqqqhii", buf, 0, *header)
    return only(buf)


@pytest.mark.parametrize(
    ("hexed", "problem"),
    [
        ("0e 00 00 00 01 01 00", "a record of 7 bytes ends after 6"),
        ("0b 00 00 00 01 01 00", "a record of -6 bytes ends after 6"),
        ("0c 00 00 00 c8 01 00", "the bytes end before the last"),
        ("0c 00 00 00 01 c8 01", "the bytes end before the last"),
        ("ff ff ff ff ff 01 00", "a varint of more than 5 bytes"),
        ("1c 00 ff ff ff ff ff ff ff ff ff ff 01", "a varint of more than 10 bytes"),
        ("0c 00 00 00 01 01 01", "-1 headers declared, 0 bytes left"),
        ("0c 00 00 00 01 01 02", "1 headers declared, 0 bytes left"),
        ("10 00 00 00 01 01 02 01 01", "a header without a name"),
        ("14 00 00 00 01 01 02 00 04 78", "the last header ends 1 bytes past the end"),
    ],
)
def test_a_broken_record_is_refused_with_numbers(hexed: str, problem: str):
    with pytest.raises(MalformedMessage, match=problem):
        list(record_bytes(hexed).records())


def test_any_negative_length_means_null_as_it_does_for_kafka():
    assert copied(record_bytes("0c 00 00 00 03 7f 00").records()) == [Record(0, 0, None, None)]


def test_every_cut_of_two_batches_is_refused_or_passed_over():
    first = build(TWO, base_offset=5)
    both = first + build(TWO, base_offset=1)
    for cut in range(len(both)):
        whole = [first] if cut >= len(first) else []
        assert [batch.view for batch in batches(both[:cut], partial_ok=True)] == whole
        if cut not in (0, len(first)):
            with pytest.raises(MalformedMessage):
                list(batches(both[:cut]))


def test_every_changed_byte_under_the_checksum_is_noticed():
    buf = build(TWO, base_offset=5)
    for at in range(CHECKED_FROM, len(buf)):
        hurt = bytearray(buf)
        hurt[at] ^= 0x40
        assert not Batch(read_header(buf), memoryview(hurt)).crc_ok()


def hostile(random: Random, many: int) -> Iterator[bytearray]:
    """Batches with a few bytes changed, cut or put in, and a checksum that is right nevertheless."""
    tame = [build(random_records(random)[:12], codec=codec, last_offset=10**6) for codec in Codec for _ in range(8)]
    for _ in range(many):
        buf = bytearray(random.choice(tame))
        for _ in range(random.choice([1, 1, 2, 4])):
            at = random.randrange(CHECKED_FROM, len(buf))
            match random.randrange(4):
                case 0:
                    buf[at] = random.choice([0, 1, 0x7E, 0x7F, 0x80, 0xFF, random.randrange(256)])
                case 1:
                    buf[at] ^= 1 << random.randrange(8)
                case 2 if at > HEADER_SIZE:
                    del buf[at : at + random.randrange(1, 9)]
                case _:
                    buf[at:at] = random.randbytes(random.randrange(4)) if at > HEADER_SIZE else b""
        if random.random() < 0.5:
            pack_into(">i", buf, 57, random.choice([0, 1, 2, 13, 10**6]))  # the count
        pack_into(">i", buf, 8, len(buf) - 12)
        yield signed(buf)


def outcome(buf: bytearray) -> str:
    try:
        return said(buf)
    except MalformedMessage:
        return "refused"


def test_hostile_batches_are_read_or_refused():
    outcomes = [outcome(buf) == "refused" for buf in hostile(Random(1), 10_000)]

    assert 0.2 < sum(outcomes) / len(outcomes) < 0.95  # otherwise this would prove nothing


@pytest.mark.slow
def test_very_many_hostile_batches_are_read_or_refused():
    for buf in hostile(Random(2), 200_000):
        outcome(buf)


@given(st.binary(max_size=200))
@example(bytes(HEADER_SIZE))
def test_any_bytes_are_read_or_refused(junk: bytes):
    for start in (b"", build(TWO, base_offset=5)[:HEADER_SIZE]):
        try:
            for batch in batches(start + junk, partial_ok=True):
                list(batch.records(cap=1 << 20))
        except MalformedMessage:
            pass


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec])
def test_a_batch_that_inflates_past_the_cap_is_refused(codec: Codec):
    batch = only(build([Record(0, 0, None, bytes(1 << 20))], codec=codec))

    assert len(list(batch.records(cap=(1 << 20) + 100))) == 1
    with pytest.raises(MalformedMessage, match="with room for"):
        batch.records(cap=1 << 20)


# Others' opinions.


WITHOUT_MORE_PACKAGES = st.sampled_from([Codec.NONE, Codec.GZIP])
"""The codecs that kafka-python brings itself."""


@settings(max_examples=50)
@given(some_records(gaps=False), WITHOUT_MORE_PACKAGES)
def test_kafka_python_reads_what_we_build(records: list[Record], codec: Codec):
    assert kafka_python_reads(build(records, codec=codec)) == records


@settings(max_examples=50)
@given(some_records(gaps=False), WITHOUT_MORE_PACKAGES)
def test_we_read_what_kafka_python_builds(records: list[Record], codec: Codec):
    theirs = kafka_python_builds(records, 2, codec)

    assert only(theirs).crc_ok()
    assert copied(only(theirs).records()) == records
    if codec is Codec.NONE:
        assert build(records, leader_epoch=0) == theirs


def made_up(random: Random) -> tuple[str, bytearray]:
    """The command that makes Java write a batch, and the same batch of ours."""
    base_offset = random.choice([0, 5, 2**40])
    records = random_records(random, base_offset)
    codec = random.choice(list(Codec))
    stamp, horizon = random.choice([(None, None), (None, None), (5555, None), (None, 7777)])
    last_offset = random.choice([None, records[-1].offset + 3])
    producer_id, epoch, sequence, transactional = random.choice([(-1, -1, -1, False), (77, 3, 2**31 - 2, True)])
    leader_epoch = random.choice([-1, 4])
    words = [stamp, base_offset, last_offset, producer_id, epoch, sequence, int(transactional), leader_epoch, horizon]
    command = " ".join(
        ["write", "2", str(int(codec)), *("-" if each is None else str(each) for each in words), *map(word, records)]
    )
    return command, build(
        records,
        base_offset=base_offset,
        last_offset=last_offset,
        codec=codec,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        leader_epoch=leader_epoch,
        transactional=transactional,
        log_append_time_ms=stamp,
        delete_horizon_ms=horizon,
    )


@pytest.mark.java
def test_java_and_we_build_the_same_batches_and_read_each_others(java: Java):
    random = Random(3)
    commands, ours = zip(*(made_up(random) for _ in range(200)), strict=True)
    javas = [bytearray.fromhex(answer) for answer in ask(java, commands)]

    for our, their in zip(ours, javas, strict=True):
        assert said(our) == said(their)
        if only(our).header.codec is Codec.NONE:
            assert our == their
    assert ask(java, [f"read {our.hex()}" for our in ours]) == [said(our) for our in ours]


@pytest.mark.java
def test_compaction_leaves_what_kafkas_leaves(java: Java):
    random = Random(4)
    commands, ours = [], []
    while len(ours) < 100:
        _, whole = made_up(random)
        batch = only(whole)
        kept = [record for record in batch.records() if random.random() < 0.5]
        if len(kept) == batch.header.count:
            continue  # Kafka copies such a batch as it is
        tombstones = any(record.value is None for record in kept)  # only these ask for a horizon
        horizon = 8888 if tombstones and not batch.header.has_delete_horizon else None
        commands.append(
            f"keep {whole.hex()} {horizon or '-'} {' '.join(str(record.offset) for record in kept)}".strip()
        )
        ours.append(rebuild(batch.header, kept, delete_horizon_ms=horizon) if kept else emptied(batch.header))
    javas = [bytearray.fromhex(answer) for answer in ask(java, commands)]

    for our, their in zip(ours, javas, strict=True):
        assert said(our) == said(their)
        if only(our).header.codec is Codec.NONE:
            assert our == their


@pytest.mark.java
def test_markers_are_byte_for_byte_kafkas(java: Java):
    cases = [(True, 3, 7, 1, 99, 10, 2), (False, 0, 2**40, 32767, 1_700_000_000_000, 0, 0)]

    assert ask(java, [f"marker {' '.join(str(int(part)) for part in case)}" for case in cases]) == [
        end_transaction_marker(*case).hex() for case in cases
    ]


@pytest.mark.java
@pytest.mark.slow
def test_java_accepts_no_hostile_batch_otherwise_than_we_do(java: Java):
    bufs = list(hostile(Random(5), 10_000))
    answers = ask(java, [f"read {buf.hex()}" for buf in bufs])

    for buf, answer in zip(bufs, answers, strict=True):
        ours = outcome(buf)
        header = read_header(buf) if ours == "refused" and answer.startswith("batch") else None
        if header and (header.count == 0 or header.codec):
            continue  # Java does not look at what it does not need: all the records, or the end of what is compressed
        assert ours == ("refused" if answer.startswith("refused") else answer), (buf.hex(), answer)


def test_importing_records_loads_neither_crc32c_nor_cramjam():
    code = "import sys, trilogue.wire.records; print(sorted({'crc32c', 'cramjam', 'construct'} & set(sys.modules)))"

    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
