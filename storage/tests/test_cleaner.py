"""Compaction: the last value of every key stays where it was, and everything else may go."""

import contextlib
import os
from pathlib import Path

import pytest

from trilogue.storage import cleaner, names, system
from trilogue.storage.cleaner import Cleaned, Interrupted
from trilogue.storage.config import FOREVER
from trilogue.storage.log import Log
from trilogue.storage.tests.making import NOW, end, idempotent, keyed, opened, records
from trilogue.wire.records import HEADER_SIZE, checksum

SETTINGS = {
    "compact": True,
    "delete": False,
    "segment_bytes": 300,
    "index_interval_bytes": 100,
    "min_cleanable_dirty_ratio": 0.0,
    "delete_retention_ms": 1000,
}


def put(log: Log, key: bytes, value: bytes | None, now_ms: int = NOW) -> int:
    return log.append_as_leader(keyed([(key, value)], now_ms), leader_epoch=0, now_ms=now_ms).base_offset


def clean(log: Log, now_ms: int = NOW, **more: int) -> Cleaned | None:
    plan = cleaner.plan(log, now_ms, log.end_offset)
    if plan is None:
        return None
    cleaned = plan.run(**more)
    assert cleaner.adopt(log, cleaned, now_ms)
    log.sweep(now_ms + 10**6)
    return cleaned


def filled(path: Path, count: int = 40, **more: object) -> Log:
    log = opened(path, **SETTINGS | more)  # type: ignore[arg-type]
    for number in range(count):
        put(log, b"k%d" % (number % 4), b"v%d" % number)
    return log


def test_last_values_stay_at_their_offsets(tmp_path: Path):
    log = filled(tmp_path / "t-0")
    active = log.segments[-1].base_offset
    before = log.size, log.end_offset
    clean(log)
    kept = records(log)
    assert kept[-(40 - active) :] == [(n, b"k%d" % (n % 4), b"v%d" % n) for n in range(active, 40)]
    assert [offset for offset, _, _ in kept[: -(40 - active)]] == list(range(active - 4, active))
    assert log.end_offset == before[1]
    assert log.size < before[0]
    for offset in range(40):
        found = log.read(offset, 1, up_to=40)
        assert found is not None
    for clean_end in (True, False):
        log.close(clean=clean_end)
        log = opened(tmp_path / "t-0", clean=clean_end, **SETTINGS)  # type: ignore[arg-type]
        assert records(log) == kept


def test_tombstones_stay_for_a_while(tmp_path: Path):
    log = opened(tmp_path / "t-0", **SETTINGS)  # type: ignore[arg-type]
    put(log, b"k", b"v")
    put(log, b"k", None)
    put(log, b"other", b"v")
    log.roll(NOW)
    put(log, b"x", b"active")
    clean(log)
    assert records(log)[:2] == [(1, b"k", None), (2, b"other", b"v")]
    assert next(log.batches(0)).header.has_delete_horizon
    for now_ms, there in ((NOW + 999, True), (NOW + 1000, False)):
        log.roll(now_ms)
        put(log, b"x", b"%d" % now_ms, now_ms)
        clean(log, now_ms)
        assert ((1, b"k", None) in records(log)) is there


def test_tombstones_may_stay_for_ever(tmp_path: Path):
    """The time until which they stay has to fit into a header, whatever the setting."""
    log = filled(tmp_path / "t-0", delete_retention_ms=FOREVER)
    put(log, b"k0", None)
    for _ in range(20):
        put(log, b"k1", b"newer")
    clean(log)
    clean(log, NOW + 10**15)

    assert (40, b"k0", None) in records(log)


def test_nothing_to_do_is_nothing_done(tmp_path: Path):
    log = filled(tmp_path / "t-0")
    assert clean(log) is not None
    assert cleaner.plan(log, NOW, log.end_offset) is None
    assert cleaner.plan(filled(tmp_path / "u-0", compact=False), NOW, 40) is None
    assert cleaner.plan(filled(tmp_path / "v-0", count=2), NOW, 2) is None


def test_dirty_ratio_and_lags(tmp_path: Path):
    log = filled(tmp_path / "t-0", min_cleanable_dirty_ratio=0.9)
    assert clean(log) is not None  # everything is dirty
    for number in range(4):
        put(log, b"k%d" % number, b"new")
    log.roll(NOW)
    assert cleaner.plan(log, NOW, log.end_offset) is None
    log.config = opened(
        tmp_path / "x-0", **SETTINGS | {"min_cleanable_dirty_ratio": 0.9, "max_compaction_lag_ms": 50}
    ).config  # type: ignore[arg-type]
    assert cleaner.plan(log, NOW + 50, log.end_offset) is None
    assert cleaner.plan(log, NOW + 51, log.end_offset) is not None
    fresh = filled(tmp_path / "f-0", min_compaction_lag_ms=100)
    assert cleaner.plan(fresh, NOW + 99, 40) is None
    assert cleaner.plan(fresh, NOW + 101, 40) is not None


def test_nothing_above_the_high_watermark_or_undecided_is_touched(tmp_path: Path):
    log = filled(tmp_path / "t-0")
    second = log.segments[1].base_offset
    assert cleaner.plan(log, NOW, second - 1) is None
    plan = cleaner.plan(log, NOW, second)
    assert plan is not None
    assert plan.end == second
    undecided = opened(tmp_path / "u-0", **SETTINGS)  # type: ignore[arg-type]
    idempotent(undecided, 0, b"open", transactional=True)
    for number in range(40):
        put(undecided, b"k", b"%d" % number)
    assert cleaner.plan(undecided, NOW, undecided.end_offset) is None


def test_aborted_data_goes_at_once_and_markers_later(tmp_path: Path):
    log = opened(tmp_path / "t-0", **SETTINGS)  # type: ignore[arg-type]
    put(log, b"k", b"good")
    idempotent(log, 0, b"aborted", transactional=True)
    end(log, False)
    idempotent(log, 0, b"kept", producer=8, transactional=True)
    end(log, True, producer=8)
    put(log, b"other", b"v")
    log.roll(NOW)
    put(log, b"x", b"active")
    clean(log)
    values = [value for _, _, value in records(log)]
    assert b"aborted" not in values
    assert b"kept" in values  # same key as `good`, later, and committed
    assert b"good" not in values
    controls = [found.header.base_offset for found in log.batches(0) if found.header.control]
    assert 4 in controls
    assert log.last_stable_offset(log.end_offset) == log.end_offset
    log.close(clean=False)
    log = opened(tmp_path / "t-0", **SETTINGS)  # type: ignore[arg-type]
    assert idempotent(log, 0, b"again", transactional=True).duplicate  # the emptied batch knew


def test_small_map_goes_in_rounds(tmp_path: Path):
    log = filled(tmp_path / "t-0", count=60)
    rounds = 0
    while cleaned := clean(log, dedupe_bytes=400):
        assert cleaned.records_mapped <= 2
        rounds += 1
        assert rounds < 100
    assert rounds > 3
    latest = {key: value for _, key, value in records(log)}
    assert latest == {b"k%d" % n: b"v%d" % (56 + n) for n in range(4)}


def test_long_keys_are_kept_apart_by_their_digests(tmp_path: Path):
    log = opened(tmp_path / "t-0", **SETTINGS)  # type: ignore[arg-type]
    for number in range(20):
        put(log, b"a long common beginning %d" % (number % 2), b"%d" % number)
    log.roll(NOW)
    put(log, b"x", b"")
    clean(log)
    assert [value for _, _, value in records(log)] == [b"18", b"19", b""]


def test_interrupted_work_leaves_no_trace(tmp_path: Path):
    log = filled(tmp_path / "t-0")
    before = sorted(os.listdir(log.path)), records(log)
    plan = cleaner.plan(log, NOW, 40)
    assert plan is not None
    for after in (0, 1, 30, 50):
        calls = iter(range(after))
        with pytest.raises(Interrupted):
            plan.run(stop=lambda calls=calls: next(calls, None) is None)
        assert (sorted(os.listdir(log.path)), records(log)) == before


def test_work_on_a_log_that_changed_is_thrown_away(tmp_path: Path):
    log = filled(tmp_path / "t-0")
    plan = cleaner.plan(log, NOW, 40)
    assert plan is not None
    cleaned = plan.run()
    log.truncate_to(5, NOW)
    kept = records(log)
    assert cleaner.adopt(log, cleaned, NOW) is False
    assert records(log) == kept
    assert not list(Path(log.path).glob("*.cleaned"))


class Crash(Exception):
    pass


@pytest.mark.parametrize("step", range(40))
def test_crash_in_the_swap_leaves_old_or_new(tmp_path: Path, step: int, monkeypatch: pytest.MonkeyPatch):
    log = filled(tmp_path / "t-0")
    plan = cleaner.plan(log, NOW, 40)
    assert plan is not None
    cleaned = plan.run()
    latest = {key: value for _, key, value in records(log)}
    real, calls = system.rename, iter(range(step))

    def rename(source: str, target: str) -> None:
        if next(calls, None) is None:
            raise Crash
        real(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(system, "rename", rename)
        with contextlib.suppress(Crash):
            cleaner.adopt(log, cleaned, NOW)
    again = opened(tmp_path / "t-0", **SETTINGS)  # type: ignore[arg-type]
    assert {key: value for _, key, value in records(again)} == latest
    assert again.end_offset == 40
    offsets = [offset for offset, _, _ in records(again)]
    assert offsets == sorted(set(offsets))
    assert not [name for name in os.listdir(again.path) if name.endswith((names.SWAP, names.CLEANED, names.DELETED))]
    put(again, b"k", b"goes on")


def test_what_a_producer_signed_and_is_no_records_stays_and_the_rest_is_compacted(tmp_path: Path):
    """A topic that was not compacted has taken it; damage on the disk is another matter, and ends the round."""
    log = filled(tmp_path / "t-0", 8, compact=False)
    rubbish = bytearray(keyed([(b"key %d" % number, b"value") for number in range(10)], NOW))
    rubbish[HEADER_SIZE:] = b"\x93" * (len(rubbish) - HEADER_SIZE)
    rubbish[17:21] = checksum(memoryview(rubbish)[21:]).to_bytes(4, "big")
    log.append_as_leader(memoryview(rubbish), leader_epoch=0, now_ms=NOW)
    log.close(clean=True)
    log = opened(tmp_path / "t-0", clean=True, **SETTINGS)  # type: ignore[arg-type]
    for number in range(8):
        put(log, b"k%d" % (number % 4), b"new %d" % number)
    log.roll(NOW)
    put(log, b"x", b"active")

    clean(log)

    sizes = [(batch.header.base_offset, batch.header.count) for batch in log.batches(0)]
    assert sizes == [(8, 10), (22, 1), (23, 1), (24, 1), (25, 1), (26, 1)]
