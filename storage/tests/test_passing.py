"""What fails for lack of space, descriptors or memory is as if it had not been tried: the same log does it later."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from trilogue.storage import cleaner, system
from trilogue.storage import log as log_module
from trilogue.storage.aborted import AbortedTransaction
from trilogue.storage.directory import DataDirectory
from trilogue.storage.log import Log
from trilogue.storage.passing import PASSING
from trilogue.storage.tests.making import NOW, append, batch, end, idempotent, opened, records, values
from trilogue.wire.errors import BrokerError, ErrorCode
from trilogue.wire.records import patch as place

REFUSED = {
    "open": errno.EMFILE,
    "pwrite": errno.ENOSPC,
    "ftruncate": errno.ENOMEM,
    "rename": errno.ENOSPC,
    "sync_directory": errno.ENFILE,
}
"""Calls, and what each of them is refused for."""


class Stingy:
    """Refuses one call, the `number`-th of those that can be refused; a write after half of it."""

    def __init__(self, number: int) -> None:
        self._left = number
        self.refused: str | None = None

    def around(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            self._left -= 1
            if self._left == 0:
                self.refused = name
                if name == "pwrite":
                    real(given[0], bytes(given[1])[: len(given[1]) // 2], given[2])
                raise OSError(REFUSED[name], os.strerror(REFUSED[name]))
            return real(*given)

        return call

    @contextmanager
    def at_work(self) -> Iterator["Stingy"]:
        with pytest.MonkeyPatch.context() as patch:
            for name in REFUSED:
                patch.setattr(system, name, self.around(name, getattr(system, name)))
            patch.setattr(log_module, "_pwrite", system.pwrite)
            yield self


def story(log: Log) -> Iterator[Callable[[], object]]:
    """Everything a leader does to a log.  Each step may be tried again."""
    for number in range(6):
        yield lambda number=number: append(log, b"plain %d" % number * 5)
    for turn in range(2):
        yield lambda turn=turn: idempotent(log, turn, b"aborted %d" % turn, transactional=True)
        yield lambda: end(log, commit=False)
    yield lambda: log.begin_epoch(3)
    for number in range(6):
        yield lambda number=number: append(log, b"later %d" % number * 5, epoch=3)
    yield lambda: log.raise_start(3, log.end_offset)
    yield lambda: log.expire(NOW, log.end_offset)
    yield lambda: log.sweep(NOW + 100_000)
    yield log.start_flush
    yield lambda: append(log, b"last", epoch=3)


def told(log: Log, refusing: bool) -> int:
    """Tell it, and each step again if that was refused; how often that was."""
    refusals = 0
    for step in story(log):
        try:
            step()
        except OSError:
            refusals += 1
            step()
    assert refusing or not refusals
    return refusals


SETTINGS = {"segment_bytes": 500, "index_interval_bytes": 1}


def seen(log: Log) -> tuple[object, ...]:
    return records(log), log.start_offset, log.end_offset, log.aborted_between(0, log.end_offset), log.latest_epoch


@pytest.mark.parametrize("number", range(1, 200, 3))
def test_a_refusal_anywhere_changes_nothing_but_when_it_is_done(tmp_path: Path, number: int):
    expected = opened(tmp_path / "expected-0", **SETTINGS)
    told(expected, refusing=False)
    for offset in range(3):
        folder = tmp_path / f"t-{number + offset}"
        log = opened(folder, **SETTINGS)
        with Stingy(number + offset).at_work():
            told(log, refusing=True)

        assert log.failed is None
        assert seen(log) == seen(expected)
        start = log.start_offset
        log.close(clean=offset == 0, now_ms=NOW)
        again = Log.open(folder, log.config, NOW, start_offset=start, clean=offset == 0)
        assert seen(again) == seen(expected)


def test_there_are_fewer_calls_than_were_refused(tmp_path: Path):
    with Stingy(200).at_work() as stingy:
        told(opened(tmp_path / "t-0", **SETTINGS), refusing=True)
    assert stingy.refused is None


def test_an_aborted_transaction_is_known_even_while_it_cannot_be_written_down(tmp_path: Path):
    log = opened(tmp_path / "t-0")
    idempotent(log, 0, b"aborted", transactional=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trilogue.storage.aborted.write_all", refusing(errno.ENOSPC))
        end(log, commit=False)
        assert log.aborted_between(0, 2) == [AbortedTransaction(7, 0, 1, 2)]
    append(log, b"more")
    log.close(clean=True, now_ms=NOW)
    assert opened(tmp_path / "t-0", clean=True).aborted_between(0, 2) == [AbortedTransaction(7, 0, 1, 2)]


def test_what_was_sent_behind_a_refused_batch_is_refused_for_the_same_reason(tmp_path: Path):
    log = opened(tmp_path / "t-0")
    idempotent(log, 0, b"first")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_module, "_pwrite", refusing(errno.ENOSPC))
        with pytest.raises(OSError, match="space"):
            idempotent(log, 1, b"second")
    with pytest.raises(OSError, match="space"):
        idempotent(log, 2, b"third")
    idempotent(log, 1, b"second")
    idempotent(log, 2, b"third")
    with pytest.raises(BrokerError) as refusal:
        idempotent(log, 4, b"fifth")
    assert refusal.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert values(log) == [b"first", b"second", b"third"]


def test_a_log_that_is_cut_on_a_full_disk_is_well_when_there_is_room(tmp_path: Path):
    """Its file of epochs has to say where the batches that come next belong: before it does, none is written."""
    log = opened(tmp_path / "t-0")
    append(log, b"kept", epoch=3)
    append(log, b"cut off", epoch=5)
    later = memoryview(bytearray(batch(b"later")))
    place(later, 0, base_offset=1, leader_epoch=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trilogue.storage.epochs.replace_file", refusing(errno.ENOSPC))
        for refused in (
            lambda: log.truncate_to(1, NOW),
            lambda: log.truncate_to(1, NOW),
            lambda: log.append_as_follower(later, now_ms=NOW),
        ):
            with pytest.raises(OSError, match="space"):
                refused()
    assert (log.failed, values(log)) == (None, [b"kept"])

    log.append_as_follower(later, now_ms=NOW)
    assert (values(log), log.epoch_end_offset(5)) == ([b"kept", b"later"], (-1, -1))
    again = opened(tmp_path / "t-0")
    assert (values(again), again.latest_epoch, again.epoch_at(1)) == ([b"kept", b"later"], 3, 3)


def refusing(number: int) -> Callable[..., Any]:
    def call(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    return call


@pytest.mark.parametrize("number", sorted(PASSING))
def test_what_passes_leaves_the_directory_online(tmp_path: Path, number: int):
    home = DataDirectory(tmp_path, cluster_id="c", node_id=1, new_id=bytes(16))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(system, "open", refusing(number))
        with pytest.raises(OSError, match=os.strerror(number)):
            home.save_high_watermarks({("t", 0): 1})
    assert home.failed is None
    home.save_high_watermarks({("t", 0): 1})
    assert [each.name for each in tmp_path.iterdir() if each.suffix == ".tmp"] == []
    home.close({}, clean=True, now_ms=NOW)


@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS, errno.EACCES])
def test_what_does_not_pass_takes_it_offline(tmp_path: Path, number: int):
    home = DataDirectory(tmp_path, cluster_id="c", node_id=1, new_id=bytes(16))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(system, "open", refusing(number))
        with pytest.raises(OSError, match=os.strerror(number)):
            home.save_high_watermarks({("t", 0): 1})
    assert home.failed is not None
    home.close({}, clean=True, now_ms=NOW)


@pytest.mark.parametrize(("number", "final"), [(errno.ENOSPC, True), (errno.EIO, True), (errno.EMFILE, False)])
def test_a_failed_fsync_is_final_and_a_folder_that_cannot_be_opened_is_not(tmp_path: Path, number: int, final: bool):
    log = opened(tmp_path / "t-0")
    append(log, b"perhaps")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(system, "sync_directory" if not final else "fsync", refusing(number))
        with pytest.raises(OSError, match=os.strerror(number)):
            log.flush(NOW)
    assert (log.failed is not None, log.recovery_point) == (final, 0)
    if not final:
        log.flush(NOW)
        assert log.recovery_point == 1


@pytest.mark.parametrize("call", ["open", "pwrite", "sync_directory"])
def test_a_compaction_that_was_refused_leaves_the_log_as_it_was(tmp_path: Path, call: str):
    log = opened(tmp_path / "t-0", segment_bytes=300, compact=True, delete=False, min_cleanable_dirty_ratio=0.0)
    for number in range(12):
        append(log, b"%d" % number * 20)
    before = values(log)
    plan = cleaner.plan(log, NOW, log.end_offset)
    assert plan is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(system, call, refusing(REFUSED[call]))
        with pytest.raises(OSError, match=os.strerror(REFUSED[call])):
            plan.run()
    left = [each.name for each in (tmp_path / "t-0").iterdir() if each.name.endswith(".cleaned")]
    assert (left, values(log), log.failed) == ([], before, None)


def test_a_compaction_that_cannot_be_adopted_is_thrown_away(tmp_path: Path):
    log = opened(tmp_path / "t-0", segment_bytes=300, compact=True, delete=False, min_cleanable_dirty_ratio=0.0)
    for number in range(12):
        append(log, b"%d" % number * 20)
    before = values(log)
    plan = cleaner.plan(log, NOW, log.end_offset)
    assert plan is not None
    cleaned = plan.run()
    for segment in log.segments:
        segment.sleep()
        segment._index = None  # as after a start: to be read before the files are renamed
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "stat", refusing(errno.ENOMEM))
        with pytest.raises(OSError, match=os.strerror(errno.ENOMEM)):
            cleaner.adopt(log, cleaned, NOW)
    assert (values(log), log.failed) == (before, None)
    again = cleaner.plan(log, NOW, log.end_offset)
    assert again is not None
    assert cleaner.adopt(log, again.run(), NOW)
    assert values(log)[-1:] == before[-1:]
