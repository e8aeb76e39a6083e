"""Crashes: whatever is cut, flipped or scribbled over, the log opens and holds a prefix of what was
acknowledged."""

import logging
import os
import random
import shutil
from pathlib import Path

import pytest

from trilogue.storage.log import Log
from trilogue.storage.tests.making import append, end, idempotent, kept, opened, records, values

SETTINGS = {"segment_bytes": 400, "index_interval_bytes": 100}


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A log of several segments with producers, transactions and two epochs, left without a farewell."""
    log = opened(tmp_path / "t-0", **SETTINGS)
    for number in range(4):
        append(log, b"plain%d" % number, b"second")
    idempotent(log, 0, b"a", b"b", b"c")
    idempotent(log, 3, b"d")
    idempotent(log, 0, b"tx", producer=8, transactional=True)
    end(log, False, producer=8)
    idempotent(log, 1, b"open", producer=8, transactional=True)
    append(log, b"x" * 50, epoch=1)
    append(log, b"y" * 60, epoch=1)
    for segment in log.segments:
        segment.finish()
    log.close(clean=False)
    return tmp_path / "t-0"


def batches_of(log: Log) -> list[bytes]:
    return [kept(found) for found in log.batches(log.start_offset)]


def files_of(path: Path) -> list[bytes]:
    with_all = opened(path, **SETTINGS)
    found = batches_of(with_all)
    with_all.close(clean=False)
    return found


def test_undamaged_log_is_whole_and_says_that_it_was_checked(written: Path, caplog: pytest.LogCaptureFixture):
    log = opened(written, **SETTINGS)
    assert log.end_offset == 17
    assert [record.getMessage().count("checked") for record in caplog.records] == [1]
    assert log.aborted_between(0, 17) == [(8, 12, 13, 14)]
    assert log.last_stable_offset(17) == 14


def test_cut_at_every_byte_of_the_last_segment(written: Path, tmp_path: Path):
    everything = files_of(written)
    active = max(written.glob("*.log"))
    content = active.read_bytes()
    before = sum(len(found) for found in everything) - len(content)
    for size in range(len(content)):
        copy = tmp_path / "copy-0"
        shutil.copytree(written, copy)
        (copy / active.name).write_bytes(content[:size])
        log = opened(copy, **SETTINGS)
        found = batches_of(log)
        assert found == everything[: len(found)]
        assert before <= sum(map(len, found)) <= before + size
        assert before + size - sum(map(len, found)) < max(map(len, everything))
        append(log, b"goes on", epoch=2)
        assert values(log)[-1] == b"goes on"
        log.close(clean=False)
        shutil.rmtree(copy)


def flipped(content: bytes, bit: int) -> bytes:
    damaged = bytearray(content)
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


@pytest.mark.parametrize(
    "which",
    [
        pytest.param(-1, id="last", marks=pytest.mark.slow),
        pytest.param(-2, id="last but one", marks=pytest.mark.slow),
        pytest.param(4, id="in the middle", marks=pytest.mark.slow),
    ],
)
def test_every_flipped_bit_of_a_batch_is_found(
    written: Path, which: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    everything = files_of(written)
    target = everything[which]
    path = next(path for path in sorted(written.glob("*.log")) if target in path.read_bytes())
    content = path.read_bytes()
    at = content.index(target)
    before = everything[: everything.index(target)]
    later = {path: path.read_bytes() for path in written.iterdir() if path.is_file()}
    monkeypatch.setattr(logging.getLogger("trilogue.storage.segment"), "disabled", True)
    for bit in range(at * 8, (at + len(target)) * 8):
        for name, whole in later.items():
            name.write_bytes(whole)
        path.write_bytes(flipped(content, bit))
        caplog.clear()
        log = opened(written, **SETTINGS)
        assert batches_of(log) == before, f"bit {bit - at * 8}"
        assert "cut" in caplog.text
        log.close(clean=False)


def side_files(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.iterdir() if entry.suffix != ".log")


DAMAGE = {
    "gone": lambda content: None,
    "emptied": lambda content: b"",
    "cut": lambda content: content[: len(content) * 2 // 3],
    "cut by a byte": lambda content: content[:-1],
    "noise": lambda content: random.Random(1).randbytes(max(len(content), 24)),
    "longer": lambda content: content + b"\0" * 24,
}


@pytest.mark.parametrize("clean", [False, True], ids=["after a crash", "after a clean end"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_side_file_loses_nothing(written: Path, tmp_path: Path, damage: str, clean: bool):
    log = opened(written, **SETTINGS)
    expected, producers, aborted = records(log), whole_state(log), log.aborted_between(0, log.end_offset)
    epochs = log.epoch_end_offset(0), log.epoch_end_offset(1)
    log.close(clean=True)
    for name in side_files(written):
        copy = tmp_path / "copy-0"
        shutil.copytree(written, copy)
        damaged = DAMAGE[damage]((copy / name).read_bytes())
        if damaged is None:
            (copy / name).unlink()
        else:
            (copy / name).write_bytes(damaged)
        if clean and name.endswith(".txnindex") and damage in ("gone", "emptied"):
            shutil.rmtree(copy)
            continue  # nothing tells these from a segment in which nothing was aborted; Kafka's neither
        log = opened(copy, clean=clean, **SETTINGS)
        assert records(log) == expected, name
        assert whole_state(log) == producers, name
        assert log.aborted_between(0, log.end_offset) == aborted, name
        assert (log.epoch_end_offset(0), log.epoch_end_offset(1)) == epochs, name
        for offset in range(log.end_offset):
            assert log.read(offset, 1, up_to=log.end_offset).base_offset <= offset  # type: ignore[union-attr]
        assert log.offset_of_max_timestamp() is not None
        assert idempotent(log, 3, b"d").duplicate, name
        append(log, b"goes on", epoch=1)
        log.close(clean=True)
        again = opened(copy, clean=True, **SETTINGS)
        assert values(again)[-1] == b"goes on"
        again.close(clean=False)
        shutil.rmtree(copy)


def whole_state(log: Log) -> list[tuple[int, int, int, int, int]]:
    return sorted(
        (known.id, known.epoch, known.last_sequence, known.last_offset, known.transaction_start)
        for known in log.producers()
    )


@pytest.mark.slow
def test_noise_anywhere_in_the_log_leaves_a_prefix(written: Path, tmp_path: Path):
    everything = files_of(written)
    chance = random.Random(5)
    for _ in range(2000):
        copy = tmp_path / "copy-0"
        shutil.copytree(written, copy)
        path = chance.choice(sorted(copy.glob("*.log")))
        content = bytearray(path.read_bytes())
        at = chance.randrange(len(content))
        content[at : at + chance.randrange(1, 40)] = chance.randbytes(chance.randrange(0, 60))
        path.write_bytes(content)
        log = opened(copy, **SETTINGS)
        found = batches_of(log)
        assert found == everything[: len(found)]
        log.close(clean=False)
        shutil.rmtree(copy)


def test_recovery_begins_at_the_recovery_point(written: Path, caplog: pytest.LogCaptureFixture):
    first = min(written.glob("*.log"))
    content = first.read_bytes()
    first.write_bytes(flipped(content, 8 * 70))
    assert opened(written, recovery_point=9, **SETTINGS).end_offset == 17
    assert opened(written, recovery_point=0, **SETTINGS).end_offset == 0


def test_trailing_zeros_of_a_preallocated_file_are_cut(written: Path):
    active = max(written.glob("*.log"))
    size = active.stat().st_size
    active.write_bytes(active.read_bytes() + bytes(1000))
    assert opened(written, **SETTINGS).end_offset == 17
    assert active.stat().st_size == size


def test_batch_of_an_epoch_that_the_checkpoint_does_not_know_is_damage(tmp_path: Path):
    log = opened(tmp_path / "t-0")
    append(log, b"one", epoch=3)
    append(log, b"two", epoch=3)
    log.close(clean=False)
    path = next((tmp_path / "t-0").glob("*.log"))
    content = bytearray(path.read_bytes())
    size = len(content) // 2
    content[size + 15] = 4
    path.write_bytes(content)
    assert values(opened(tmp_path / "t-0")) == [b"one"]


def test_what_a_power_failure_has_taken_of_a_segment_ends_the_log_there(tmp_path: Path):
    """Segments reach the disk in any order: of the last but one whole batches may be missing, and the last be there."""
    log = opened(tmp_path / "t-0", segment_bytes=300)
    for _ in range(6):
        append(log, b"x" * 40)
    first = log.segments[0]
    assert (log.segments[1].base_offset, log.end_offset) == (2, 6)
    path, half = first.file.path, first.size // 2
    log.close(clean=False)
    os.truncate(path, half)

    again = opened(tmp_path / "t-0", segment_bytes=300)
    assert (again.end_offset, [each.header.base_offset for each in again.batches(0)]) == (1, [0])
    assert append(again, b"z").base_offset == 1


def test_a_compacted_log_may_have_lost_the_end_of_a_segment(tmp_path: Path):
    log = opened(tmp_path / "t-0", segment_bytes=300)
    for _ in range(6):
        append(log, b"x" * 40)
    path, half = log.segments[0].file.path, log.segments[0].size // 2
    log.close(clean=False)
    os.truncate(path, half)

    assert opened(tmp_path / "t-0", segment_bytes=300, compact=True).end_offset == 6
