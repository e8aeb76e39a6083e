"""Appending, reading, rolling, looking up, shortening."""

import os
from pathlib import Path

import pytest

from trilogue.storage.files import OpenFiles
from trilogue.storage.log import Log
from trilogue.storage.lookup import Found
from trilogue.storage.tests.making import NOW, append, batch, idempotent, opened, records, values
from trilogue.storage.validation import RejectedRecords
from trilogue.wire.compression import Codec
from trilogue.wire.errors import BrokerError, ErrorCode
from trilogue.wire.records import Record, batches, build, read_header


def refused(code: ErrorCode) -> "pytest.RaisesContext[BrokerError]":  # type: ignore[name-defined]
    return pytest.raises(BrokerError, check=lambda error: error.code is code)


def test_nothing_is_on_the_disk_before_the_first_append(tmp_path: Path):
    log = opened(tmp_path / "t-0")
    log.begin_epoch(3)
    assert log.read(0, 100, up_to=0) is None
    log.close(clean=True)
    assert not (tmp_path / "t-0").exists()


def test_first_append_makes_the_files(tmp_path: Path):
    log = Log.open(tmp_path / "t-0", opened(tmp_path / "x-0").config, NOW, topic_id=(5).to_bytes(16, "big"))
    append(log, b"x", epoch=3)
    assert sorted(os.listdir(log.path)) == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]
    assert (tmp_path / "t-0/partition.metadata").read_bytes() == b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAABQ"
    assert (tmp_path / "t-0/leader-epoch-checkpoint").read_bytes() == b"0\n1\n3 0\n"
    log.close(clean=True)
    assert opened(tmp_path / "t-0", clean=True).topic_id == (5).to_bytes(16, "big")


def test_batches_are_stored_as_sent_but_for_offset_and_epoch(tmp_path: Path):
    log = opened(tmp_path / "t-0")
    append(log, b"first", b"second")
    sent = batch(b"third")
    original = bytes(sent)
    assert log.append_as_leader(sent, leader_epoch=9, now_ms=NOW) == (2, 2, -1, 0, False)
    stored = log.read(2, 1000, up_to=3)
    assert stored is not None
    found = stored.read()
    assert (found[0:8], found[12:16]) == (b"\0" * 7 + b"\2", b"\0\0\0\11")
    assert (found[8:12], found[16:]) == (original[8:12], original[16:])


def test_read_only_bytes_are_taken_too(tmp_path: Path):
    log = opened(tmp_path / "t-0")
    log.append_as_leader(memoryview(bytes(batch(b"x"))), leader_epoch=0, now_ms=NOW)
    assert values(log) == [b"x"]


def test_read_begins_at_the_batch_and_ends_at_the_bound(tmp_path: Path):
    log = opened(tmp_path / "t-0", index_interval_bytes=50)
    sizes = [len(batch(b"%d" % number, b"x")) for number in range(5)]
    for number in range(5):
        append(log, b"%d" % number, b"x")
    for offset in range(10):
        found = log.read(offset, 10_000, up_to=8)
        if offset >= 8:
            assert found is None
        else:
            assert found is not None
            assert (found.base_offset, found.size) == (offset // 2 * 2, sum(sizes[offset // 2 : 4]))
    assert log.read(0, 1, up_to=10, min_one=False) is None
    first = log.read(0, 1, up_to=10)
    assert first is not None
    assert len(first) == sizes[0]
    inside = log.read(0, 10_000, up_to=3)
    assert inside is not None
    assert inside.size == sizes[0]  # the batch that holds the bound is not given out
    for wrong in (-1, 11):
        with refused(ErrorCode.OFFSET_OUT_OF_RANGE):
            log.read(wrong, 10, up_to=10)


def test_slice_outlives_its_segment(tmp_path: Path):
    log = opened(tmp_path / "t-0", segment_bytes=100, retention_bytes=0, file_delete_delay_ms=5)
    append(log, b"old")
    append(log, b"new")
    held = log.read(0, 1000, up_to=2)
    assert held is not None
    assert log.expire(NOW, 2) == 2
    assert log.sweep(NOW + 4) == NOW + 5
    assert log.sweep(NOW + 5) is None
    assert not list((tmp_path / "t-0").glob("*.deleted"))
    assert [bytes(record.value or b"") for found in batches(held.read()) for record in found.records()] == [b"old"]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="descriptors are counted in Linux's /proc")
def test_idle_files_are_put_to_sleep_and_wake_up(tmp_path: Path):
    pool = OpenFiles(cap=4)
    before = len(os.listdir("/proc/self/fd"))
    logs = [Log.open(tmp_path / f"t-{number}", opened(tmp_path / "x-0").config, NOW, pool=pool) for number in range(10)]
    for turn in range(3):
        for log in logs:
            append(log, b"%d" % turn)
    assert len(pool) <= 4
    assert len(os.listdir("/proc/self/fd")) <= before + 4
    assert all(values(log) == [b"0", b"1", b"2"] for log in logs)


def test_rolls_by_size_time_and_full_index(tmp_path: Path):
    size = len(batch(b"x"))
    by_size = opened(tmp_path / "s-0", segment_bytes=2 * size)
    for _ in range(5):
        append(by_size, b"x")
    assert [segment.base_offset for segment in by_size.segments] == [0, 2, 4]
    by_time = opened(tmp_path / "t-0", segment_ms=1000, message_timestamp_after_max_ms=10**6)
    for late in (0, 1000, 1001, 1500):
        append(by_time, b"x", timestamp=NOW + late)
    assert [segment.base_offset for segment in by_time.segments] == [0, 2]
    by_index = opened(tmp_path / "i-0", segment_index_bytes=48, index_interval_bytes=1)
    for late in range(20):
        append(by_index, b"x", timestamp=NOW + late)
    assert len(by_index.segments) > 3
    assert all(segment.index.size <= 48 and segment.timeindex.size <= 48 for segment in by_index.segments)


@pytest.mark.parametrize(("compact", "rolled"), [(True, 2), (False, 1)])
def test_what_is_compacted_rolls_in_time_for_its_compaction(tmp_path: Path, compact: bool, rolled: int):
    settings = {"segment_ms": 10_000, "max_compaction_lag_ms": 1000, "message_timestamp_after_max_ms": 10**6}
    log = opened(tmp_path / "t-0", compact=compact, **settings)
    append(log, b"1", timestamp=NOW)
    append(log, b"2", timestamp=NOW + 1000)
    assert len(log.segments) == 1

    append(log, b"3", timestamp=NOW + 1001)

    assert len(log.segments) == rolled


def test_batch_that_fits_no_segment_is_refused(tmp_path: Path):
    log = opened(tmp_path / "t-0", segment_bytes=100)
    with refused(ErrorCode.RECORD_LIST_TOO_LARGE):
        append(log, b"x" * 100)
    assert log.end_offset == 0


def test_offsets_too_far_apart_for_an_index_begin_a_segment(tmp_path: Path):
    log = opened(tmp_path / "t-0")
    append(log, b"x")
    far = 2**31 + 5
    sent = build([Record(far, NOW, b"k", b"far")], base_offset=far, leader_epoch=0)
    log.append_as_follower(memoryview(sent), now_ms=NOW)
    assert [segment.base_offset for segment in log.segments] == [0, far]
    assert records(log) == [(0, b"k", b"x"), (far, b"k", b"far")]


def test_log_append_time_is_the_brokers(tmp_path: Path):
    log = opened(tmp_path / "t-0", log_append_time=True)
    assert append(log, b"x", b"y", timestamp=5, now_ms=NOW).log_append_time_ms == NOW
    found = next(log.batches(0))
    assert found.crc_ok()
    assert [record.timestamp for record in found.records()] == [NOW, NOW]
    assert log.offset_for_timestamp(NOW) == (NOW, 0, 0)


def test_topic_that_names_a_codec_compresses_anew(tmp_path: Path):
    log = opened(tmp_path / "t-0", compression=Codec.ZSTD)
    append(log, b"x" * 1000, b"y" * 1000, codec=Codec.GZIP)
    append(log, b"z", codec=Codec.ZSTD)
    assert [found.header.codec for found in log.batches(0)] == [Codec.ZSTD, Codec.ZSTD]
    assert values(log) == [b"x" * 1000, b"y" * 1000, b"z"]
    assert all(found.crc_ok() for found in log.batches(0))
    wide = opened(tmp_path / "w-0", compression=Codec.NONE, max_message_bytes=500)
    with refused(ErrorCode.MESSAGE_TOO_LARGE):
        append(wide, b"x" * 1000, codec=Codec.GZIP)


def test_keyless_records_are_named_in_the_refusal(tmp_path: Path):
    log = opened(tmp_path / "t-0", compact=True)
    sent = build([Record(number, NOW, None if number in (1, 3) else b"k", b"v") for number in range(5)])
    with pytest.raises(RejectedRecords) as refusal:
        log.append_as_leader(memoryview(sent), leader_epoch=0, now_ms=NOW)
    assert refusal.value.code is ErrorCode.INVALID_RECORD
    assert [number for number, _ in refusal.value.record_errors] == [1, 3]
    assert log.end_offset == 0


def test_old_records_are_refused_where_the_topic_says_so(tmp_path: Path):
    log = opened(tmp_path / "t-0", message_timestamp_before_max_ms=1000)
    append(log, b"just", timestamp=NOW - 1000)
    with refused(ErrorCode.INVALID_TIMESTAMP):
        append(log, b"too", timestamp=NOW - 1001)
    assert append(log, *[b"many"] * 9, timestamp=NOW).base_offset == 1


def test_every_record_is_checked_where_it_is_asked_for(tmp_path: Path):
    lying = bytearray(bytes(batch(*[b"x"] * 30)))
    lying[61] ^= 0x02  # the first record's length
    header = read_header(lying)
    assert header.count == 30
    resigned = _signed(lying)
    assert opened(tmp_path / "a-0").append_as_leader(memoryview(resigned[:]), leader_epoch=0, now_ms=NOW)
    with refused(ErrorCode.INVALID_RECORD):
        opened(tmp_path / "b-0", check_every_record=True).append_as_leader(
            memoryview(resigned), leader_epoch=0, now_ms=NOW
        )


def _signed(sent: bytearray) -> bytearray:
    from trilogue.wire.records import checksum

    sent[17:21] = checksum(memoryview(sent)[21:]).to_bytes(4, "big")
    return sent


# ---- as a follower ---------------------------------------------------------------------------------------


def test_follower_takes_what_the_leader_has(tmp_path: Path):
    leader, follower = opened(tmp_path / "l-0"), opened(tmp_path / "f-0", segment_bytes=300)
    for number in range(6):
        append(leader, b"%d" % number, epoch=number // 2)
        idempotent(leader, number, b"i")
    sent = leader.read(0, 10**6, up_to=leader.end_offset)
    assert sent is not None
    cut = sent.read()[:-3]
    result = follower.append_as_follower(memoryview(cut), now_ms=NOW)
    assert result is not None
    assert (result.base_offset, result.last_offset) == (0, leader.end_offset - 2)
    rest = leader.read(follower.end_offset, 10**6, up_to=leader.end_offset)
    assert rest is not None
    follower.append_as_follower(memoryview(rest.read()), now_ms=NOW)
    assert records(follower) == records(leader)
    assert follower.epoch_end_offset(1) == leader.epoch_end_offset(1)
    assert [known.last_sequence for known in follower.producers()] == [5]
    with refused(ErrorCode.OFFSET_OUT_OF_RANGE):
        follower.append_as_follower(memoryview(rest.read()), now_ms=NOW)


def test_follower_saves_the_epochs_of_all_that_it_takes_at_once(tmp_path: Path, monkeypatch):
    leader, follower = opened(tmp_path / "l-0"), opened(tmp_path / "f-0")
    for epoch in range(20):
        append(leader, b"%d" % epoch, epoch=epoch)
    sent = leader.read(0, 10**6, up_to=20)
    assert sent is not None
    saved = []
    monkeypatch.setattr("trilogue.storage.epochs.replace_file", lambda path, content: saved.append(content))
    follower.append_as_follower(memoryview(sent.read()), now_ms=NOW)

    assert len(saved) == 1
    assert saved[0].count(b"\n") == 2 + 20
    assert [follower.epoch_at(offset) for offset in range(20)] == list(range(20))
    assert follower.latest_epoch == 19


def test_epochs_of_what_could_not_be_written_are_forgotten(tmp_path: Path):
    leader, follower = opened(tmp_path / "l-0"), opened(tmp_path / "f-0", segment_bytes=1000)
    for epoch, size in enumerate((1, 2000, 1)):
        append(leader, bytes(size), epoch=epoch)
    sent = leader.read(0, 10**6, up_to=3)
    assert sent is not None
    with refused(ErrorCode.RECORD_LIST_TOO_LARGE):
        follower.append_as_follower(memoryview(sent.read()), now_ms=NOW)
    assert follower.latest_epoch == 0
    other = opened(tmp_path / "o-0")
    append(other, bytes(1), epoch=0)
    append(other, b"instead", epoch=4)
    rest = other.read(1, 10**6, up_to=2)
    assert rest is not None
    follower.append_as_follower(memoryview(rest.read()), now_ms=NOW)

    follower.close(clean=False)
    again = opened(tmp_path / "f-0")
    assert [again.epoch_at(offset) for offset in range(2)] == [0, 4]
    assert again.end_offset == 2


def test_follower_stops_before_a_later_epoch_and_refuses_damage(tmp_path: Path):
    leader, follower = opened(tmp_path / "l-0"), opened(tmp_path / "f-0")
    append(leader, b"old", epoch=1)
    append(leader, b"new", epoch=2)
    sent = leader.read(0, 10**6, up_to=2)
    assert sent is not None
    follower.append_as_follower(memoryview(sent.read()), now_ms=NOW, leader_epoch=1)
    assert values(follower) == [b"old"]
    assert follower.append_as_follower(memoryview(sent.read()[-20:]), now_ms=NOW) is None
    damaged = bytearray(sent.read())
    damaged[-3] ^= 1
    with refused(ErrorCode.CORRUPT_MESSAGE):
        opened(tmp_path / "d-0").append_as_follower(memoryview(damaged), now_ms=NOW)


# ---- looking up ------------------------------------------------------------------------------------------


def test_special_offsets(tmp_path: Path):
    log = opened(tmp_path / "t-0", segment_bytes=300)
    assert [log.list_offset(special, 0) for special in (-1, -2, -3, -4, -5, -6)] == [
        (-1, 0, -1),
        (-1, 0, -1),
        (-1, -1, -1),
        (-1, 0, -1),
        (-1, -1, -1),
        (-1, -1, -1),
    ]
    for late in (50, 10, 90, 20, 30):
        append(log, b"a", b"b", timestamp=NOW + late, codec=Codec.GZIP, epoch=late // 50)
        append(log, b"c", timestamp=NOW + late, epoch=late // 50)
    assert log.list_offset(-3, 99) == Found(NOW + 91, 7, 1)
    assert log.list_offset(NOW + 11, 99) == Found(NOW + 50, 0, 1)
    assert log.list_offset(NOW + 51, 99) == Found(NOW + 51, 1, 1)
    assert log.list_offset(NOW + 52, 99) == Found(NOW + 90, 6, 1)
    assert log.list_offset(NOW + 92, 99) == Found(-1, -1, -1)
    assert log.list_offset(NOW + 52, 6) == Found(-1, -1, -1)
    log.raise_start(7, 15)
    assert log.list_offset(0, 99) == Found(NOW + 91, 7, 1)
    assert log.list_offset(-2, 99).offset == 7


# ---- shortening ------------------------------------------------------------------------------------------


def test_truncation_inside_a_batch_takes_the_whole_batch(tmp_path: Path):
    log = opened(tmp_path / "t-0")
    append(log, b"a", b"b", epoch=0)
    append(log, b"c", b"d", epoch=1)
    assert log.truncate_to(4, NOW) is False
    assert log.truncate_to(3, NOW) is True
    assert (log.end_offset, log.latest_epoch) == (2, 0)
    assert append(log, b"e", epoch=2).base_offset == 2
    assert values(log) == [b"a", b"b", b"e"]


def test_truncated_fully_it_starts_elsewhere(tmp_path: Path):
    log = opened(tmp_path / "t-0", segment_bytes=200)
    for _ in range(5):
        idempotent(log, 0, b"x" * 80, producer=log.end_offset)
    log.truncate_fully_and_start_at(100, NOW)
    assert (log.start_offset, log.end_offset, log.producers(), log.latest_epoch) == (100, 100, [], None)
    assert append(log, b"x").base_offset == 100
    log.close(clean=False)
    assert sorted(path.name for path in (tmp_path / "t-0").glob("*.log")) == ["00000000000000000100.log"]
    assert opened(tmp_path / "t-0").start_offset == 100


@pytest.mark.parametrize(("age", "gone"), [(1000, 0), (1001, 1), (2001, 2)])
def test_retention_by_time(tmp_path: Path, age: int, gone: int):
    log = opened(tmp_path / "t-0", segment_bytes=200, retention_ms=1000)
    for number in range(3):
        append(log, b"x" * 100, timestamp=NOW + number * 1000, now_ms=NOW + 10_000)
    assert log.expire(NOW + age, 3) == gone
    assert log.start_offset == gone


def test_retention_keeps_what_followers_lack_and_rolls_what_is_all_too_old(tmp_path: Path):
    log = opened(tmp_path / "t-0", segment_bytes=200, retention_ms=1000)
    for _ in range(3):
        append(log, b"x" * 100)
    assert log.expire(NOW + 10**9, 1) == 1
    assert log.expire(NOW + 10**9, 3) == 2
    assert (log.start_offset, log.end_offset, len(log.segments)) == (3, 3, 1)
    assert log.expire(NOW + 10**9, 3) == 0
    assert append(log, b"goes on").base_offset == 3


def test_retention_by_size_and_below_the_start(tmp_path: Path):
    size = len(batch(b"x" * 100))
    log = opened(tmp_path / "t-0", segment_bytes=200, retention_bytes=2 * size)
    for _ in range(4):
        append(log, b"x" * 100)
    assert log.expire(NOW, 4) == 2
    compacted = opened(tmp_path / "c-0", segment_bytes=200, compact=True, delete=False, retention_bytes=0)
    for _ in range(4):
        append(compacted, b"x" * 100)
    assert compacted.expire(NOW, 4) == 0
    compacted.raise_start(2, 4)
    assert compacted.expire(NOW, 4) == 2
    with refused(ErrorCode.OFFSET_OUT_OF_RANGE):
        compacted.raise_start(5, 4)


def test_records_without_time_expire_by_the_file(tmp_path: Path):
    log = opened(tmp_path / "t-0", retention_ms=1000)
    append(log, b"x", timestamp=-1)
    assert log.expire(NOW + 1000, 1) == 0
    assert log.expire(NOW + 1001, 1) == 1


def test_deleted_log_is_moved_away(tmp_path: Path):
    log = opened(tmp_path / "some.topic-3")
    append(log, b"x")
    held = log.read(0, 100, up_to=1)
    target = log.delete("ab" * 16)
    assert target == str(tmp_path / f"some.topic-3.{'ab' * 16}-delete")
    assert held is not None
    assert len(held.read()) == held.size
    with pytest.raises(OSError, match="deleted"):
        append(log, b"y")
