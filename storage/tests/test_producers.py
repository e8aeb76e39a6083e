"""Idempotence and transactions as one partition sees them."""

from pathlib import Path

import pytest

from trilogue.storage.producers import Origin
from trilogue.storage.replay import RECALL_MS
from trilogue.storage.tests.making import NOW, append, batch, end, idempotent, opened
from trilogue.wire.errors import BrokerError, ErrorCode


def refused(code: ErrorCode) -> "pytest.RaisesContext[BrokerError]":  # type: ignore[name-defined]
    return pytest.raises(BrokerError, check=lambda error: error.code is code)


def test_any_of_the_last_five_batches_is_a_duplicate(tmp_path: Path):
    log = opened(tmp_path / "t-0")
    for number in range(7):
        idempotent(log, number * 2, b"a", b"b")
    for number in range(2, 7):
        result = idempotent(log, number * 2, b"a", b"b")
        assert (result.base_offset, result.last_offset, result.duplicate) == (number * 2, number * 2 + 1, True)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        idempotent(log, 2, b"a", b"b")  # the sixth last is forgotten
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        idempotent(log, 12, b"a")  # the same first, another last
    assert log.end_offset == 14


def test_epochs_fence(tmp_path: Path):
    log = opened(tmp_path / "t-0")
    idempotent(log, 0, b"a", epoch=3)
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        idempotent(log, 1, b"a", epoch=2)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        idempotent(log, 1, b"a", epoch=4)
    assert idempotent(log, 0, b"a", epoch=4).base_offset == 1


def test_sequences_wrap(tmp_path: Path):
    log = opened(tmp_path / "t-0")
    idempotent(log, 2**31 - 2, b"a", b"b", b"c")  # unknown producers may begin anywhere
    assert log.producers()[0].last_sequence == 0
    idempotent(log, 1, b"d")
    assert idempotent(log, 2**31 - 2, b"a", b"b", b"c").duplicate


def test_transaction_holds_back_the_stable_offset_until_its_marker_is_replicated(tmp_path: Path):
    log = opened(tmp_path / "t-0")
    append(log, b"before")
    idempotent(log, 0, b"a", transactional=True)
    idempotent(log, 0, b"b", producer=8, transactional=True)
    append(log, b"after")
    assert log.last_stable_offset(4) == 1
    end(log, True)
    assert log.last_stable_offset(5) == 2
    end(log, False, producer=8)
    assert log.last_stable_offset(5) == 2  # the marker at 5 is above the high watermark
    assert log.last_stable_offset(6) == 6
    assert log.aborted_between(0, 6) == [(8, 2, 5, 6)]
    assert log.aborted_between(0, 2) == []
    assert log.aborted_between(6, 9) == []


def test_aborted_transactions_are_sorted_by_their_first_offset(tmp_path: Path):
    log = opened(tmp_path / "t-0", segment_bytes=300)
    for producer in (1, 2, 3):
        idempotent(log, 0, b"x" * 50, producer=producer, transactional=True)
    for producer in (3, 1, 2):
        end(log, False, producer=producer)
    assert len(log.segments) > 1
    assert [(entry.producer_id, entry.first_offset) for entry in log.aborted_between(0, 9)] == [(1, 0), (2, 1), (3, 2)]
    assert [entry.last_stable_offset for entry in log.aborted_between(0, 9)] == [1, 6, 0]


def test_writing_outside_of_an_open_transaction_is_refused(tmp_path: Path):
    log = opened(tmp_path / "t-0")
    idempotent(log, 0, b"a", transactional=True)
    with refused(ErrorCode.INVALID_TXN_STATE):
        idempotent(log, 1, b"b")
    with refused(ErrorCode.INVALID_TXN_STATE):
        idempotent(log, 0, b"b", producer=9, transactional=True, verified=False)
    idempotent(log, 1, b"c", transactional=True, verified=False)  # it is open: nothing to verify
    end(log, True)
    with refused(ErrorCode.INVALID_TXN_STATE):
        idempotent(log, 2, b"d", transactional=True, verified=False)


def test_markers_of_the_past_are_refused(tmp_path: Path):
    log = opened(tmp_path / "t-0")
    idempotent(log, 0, b"a", epoch=2, transactional=True)
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        end(log, True, epoch=1)
    end(log, True, epoch=2, coordinator_epoch=5)
    with refused(ErrorCode.TRANSACTION_COORDINATOR_FENCED):
        end(log, True, epoch=2, coordinator_epoch=4)


def test_markers_of_version_2_raise_the_epoch(tmp_path: Path):
    log = opened(tmp_path / "t-0")
    idempotent(log, 0, b"a", epoch=2, transactional=True, transaction_version=2)
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        end(log, True, epoch=2, version=2)
    end(log, True, epoch=3, version=2)
    end(log, True, epoch=3, version=2)  # again: harmless
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        idempotent(log, 1, b"b", epoch=3, transactional=True, transaction_version=2)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        idempotent(log, 1, b"b", producer=11, transactional=True, transaction_version=2)
    idempotent(log, 0, b"b", epoch=3, transactional=True, transaction_version=2)


def test_coordinators_write_without_sequences(tmp_path: Path):
    log = opened(tmp_path / "t-0")
    sent = batch(b"offset", producer_id=5, producer_epoch=0, transactional=True)
    log.append_as_leader(sent, leader_epoch=0, now_ms=NOW, origin=Origin.COORDINATOR)
    assert log.last_stable_offset(1) == 0
    old = batch(b"offset", producer_id=5, producer_epoch=-1, transactional=True)
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        log.append_as_leader(old, leader_epoch=0, now_ms=NOW, origin=Origin.COORDINATOR)


def test_silent_producers_expire_unless_a_transaction_is_open(tmp_path: Path):
    log = opened(tmp_path / "t-0", producer_id_expiration_ms=1000)
    idempotent(log, 0, b"a", producer=1)
    idempotent(log, 0, b"a", producer=2, transactional=True)
    assert log.expire_producers(NOW + 999) == 0
    assert log.expire_producers(NOW + 1000) == 1
    assert [known.id for known in log.producers()] == [2]
    assert idempotent(log, 55, b"a", producer=1).base_offset == 2


@pytest.mark.parametrize("clean", [True, False])
def test_producers_survive_reopening(tmp_path: Path, clean: bool):
    log = opened(tmp_path / "t-0", segment_bytes=300)
    for number in range(6):
        idempotent(log, number, b"x" * 40, producer=1)
        idempotent(log, number, b"x" * 40, producer=2, transactional=True)
    log.close(clean=clean)
    again = opened(tmp_path / "t-0", clean=clean, segment_bytes=300)
    assert again.last_stable_offset(12) == 1
    assert idempotent(again, 5, b"x", producer=1).duplicate
    assert idempotent(again, 6, b"x", producer=1).base_offset == 12
    end(again, False, producer=2)
    assert again.aborted_between(0, 99) == [(2, 1, 13, 14)]


def test_truncation_winds_producers_back(tmp_path: Path):
    log = opened(tmp_path / "t-0", segment_bytes=300)
    for number in range(8):
        idempotent(log, number, b"x" * 40, transactional=number > 3)
    log.truncate_to(5, NOW)
    assert log.last_stable_offset(5) == 4
    log.truncate_to(3, NOW)
    assert log.last_stable_offset(3) == 3
    assert log.producers()[0].last_sequence == 2
    assert idempotent(log, 3, b"again").base_offset == 3


def test_a_guard_stands_until_its_transaction_is_open_or_over(tmp_path: Path):
    log = opened(tmp_path / "t-0")
    first = log.guard(7, 0, 0, NOW, 1)
    assert log.guard(7, 0, 1, NOW, 1) is first  # asked about once more
    assert not log.stands(7, None)
    idempotent(log, 0, b"of another", producer=8, transactional=True)
    assert log.stands(7, first)
    idempotent(log, 0, b"a", transactional=True)
    assert not log.stands(7, first)
    second = log.guard(7, 0, 1, NOW, 1)
    end(log, True)
    assert not log.stands(7, second)


def test_a_guard_falls_by_a_marker_that_was_replicated_and_by_a_truncation(tmp_path: Path):
    leader, follower = opened(tmp_path / "t-0"), opened(tmp_path / "t-1")
    end(leader, True)
    guard = follower.guard(7, 0, 0, NOW, 1)
    follower.append_as_follower(memoryview(bytearray(next(leader.batches(0)).view)), now_ms=NOW)
    assert not follower.stands(7, guard)
    guard = follower.guard(7, 0, 0, NOW, 1)
    follower.truncate_to(0, NOW)
    assert not follower.stands(7, guard)


def test_in_version_2_the_marker_of_the_transaction_before_leaves_the_guard_alone(tmp_path: Path):
    log = opened(tmp_path / "t-0")
    idempotent(log, 0, b"a", transactional=True, transaction_version=2)
    guard = log.guard(7, 1, 0, NOW, 2)
    end(log, True, epoch=1, version=2)
    assert log.stands(7, guard)
    end(log, False, epoch=2, version=2)
    assert not log.stands(7, guard)


def test_a_guard_keeps_the_place_of_a_batch_that_was_refused_first(tmp_path: Path):
    log = opened(tmp_path / "t-0")
    log.guard(7, 0, 3, NOW, 1)
    log.guard(7, 0, 2, NOW, 1)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        idempotent(log, 3, b"b", transactional=True)
    assert idempotent(log, 2, b"a", transactional=True).base_offset == 0
    assert idempotent(log, 3, b"b", transactional=True).base_offset == 1


def test_guards_expire_as_producers_do(tmp_path: Path):
    log = opened(tmp_path / "t-0", producer_id_expiration_ms=1000)
    guard = log.guard(7, 0, 0, NOW, 1)
    log.expire_producers(NOW + 999)
    assert log.stands(7, guard)
    log.expire_producers(NOW + 1000)
    assert not log.stands(7, guard)


def test_any_of_the_last_five_is_a_duplicate_for_whoever_was_started_again(tmp_path: Path):
    log = opened(tmp_path / "t-0")
    for number in range(7):
        idempotent(log, number, b"a")
    idempotent(log, 0, b"another's", producer=8)
    log.close(clean=True, now_ms=NOW)

    log = opened(tmp_path / "t-0", clean=True)
    for number in range(2, 7):
        assert idempotent(log, number, b"a").duplicate, number
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        idempotent(log, 1, b"a")
    assert idempotent(log, 0, b"another's", producer=8).duplicate
    assert idempotent(log, 7, b"a").base_offset == 8


def test_so_it_is_after_a_truncation_and_across_segments(tmp_path: Path):
    log = opened(tmp_path / "t-0", segment_bytes=200)
    for number in range(7):
        idempotent(log, number, b"a" * 40)
    assert len(log.segments) > 4

    log.truncate_to(5, NOW)
    assert [idempotent(log, number, b"a" * 40).duplicate for number in range(5)] == [True] * 5
    assert not idempotent(log, 5, b"a" * 40).duplicate


def test_who_was_silent_for_long_has_his_last_batch_known_only(tmp_path: Path):
    log = opened(tmp_path / "t-0")
    for number in range(3):
        idempotent(log, number, b"a")
    log.close(clean=True, now_ms=NOW)

    log = opened(tmp_path / "t-0", clean=True, now_ms=NOW + RECALL_MS)
    assert idempotent(log, 2, b"a").duplicate
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        idempotent(log, 1, b"a")


def test_of_a_long_log_the_end_is_read(tmp_path: Path):
    log = opened(tmp_path / "t-0")
    idempotent(log, 0, b"first", producer=8)
    for number in range(40):
        idempotent(log, number, b"a" * 50_000)
    log.close(clean=True, now_ms=NOW)

    log = opened(tmp_path / "t-0", clean=True)
    assert [idempotent(log, number, b"a" * 50_000).duplicate for number in range(35, 40)] == [True] * 5
    assert [each.batches[0].first_offset for each in log.producers()] == [0, 36]
