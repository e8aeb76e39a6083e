"""The disk is full, or fails: nothing that was acknowledged is lost, and the failure goes up as OSError."""

import errno
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from trilogue.storage import log as log_module
from trilogue.storage import system
from trilogue.storage.log import Log
from trilogue.storage.tests.making import NOW, append, opened, values


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB, where the machine lets us mount one."""
    path = tmp_path / "small"
    path.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(path)], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount a small tmpfs: {mounted.stderr.strip()}")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


def fill(log: Log, written: list[bytes], size: int) -> None:
    """Append, and note what was acknowledged, until something stops it."""
    for number in range(1000):
        append(log, b"%d" % number * size)
        written.append(b"%d" % number * size)


def test_full_disk_refuses_and_goes_on_when_there_is_room(small: Path):
    blocker = small / "other people's data"
    blocker.write_bytes(bytes(100_000))
    log = opened(small / "t-0", segment_bytes=30_000)
    written: list[bytes] = []
    with pytest.raises(OSError, match="space") as failure:
        fill(log, written, 300)
    assert failure.value.errno == errno.ENOSPC
    assert len(written) > 50
    assert values(log) == written  # reading goes on
    with pytest.raises(OSError, match="space"):
        append(log, b"once more" * 1000)
    blocker.unlink()
    assert append(log, b"there is room").base_offset == len(written)
    log.close(clean=True, now_ms=NOW)
    assert values(opened(small / "t-0", clean=True)) == [*written, b"there is room"]


def failing_after(count: int, real: Callable[..., int], *, short: bool = False) -> Callable[..., int]:
    """A pwrite that runs out of space in the middle of its `count`-th call."""
    calls = iter(range(count))

    def pwrite(fd: int, data: bytes, position: int) -> int:
        if next(calls, None) is not None:
            return real(fd, data, position)
        if short:
            real(fd, bytes(data)[: len(data) // 2], position)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return pwrite


@pytest.mark.parametrize("short", [False, True], ids=["nothing written", "half written"])
@pytest.mark.parametrize("count", range(6))
def test_failed_write_leaves_a_log_that_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, short: bool):
    log = opened(tmp_path / "t-0", segment_bytes=300)
    written: list[bytes] = []
    failing = failing_after(count, system.pwrite, short=short)
    with monkeypatch.context() as patch:
        patch.setattr(log_module, "_pwrite", failing)
        patch.setattr(system, "pwrite", failing)
        with pytest.raises(OSError, match="space"):
            fill(log, written, 50)
    assert values(log) == written
    log.close(clean=False)
    again = opened(tmp_path / "t-0", segment_bytes=300)
    assert values(again) == written
    append(again, b"more")
    assert values(again)[-1] == b"more"


def test_short_write_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    real = system.pwrite
    a_byte_or_so = lambda fd, data, position: real(fd, bytes(data)[:7], position)  # noqa: E731
    monkeypatch.setattr(log_module, "_pwrite", a_byte_or_so)
    monkeypatch.setattr(system, "pwrite", a_byte_or_so)
    log = opened(tmp_path / "t-0")
    append(log, b"whole")
    assert values(log) == [b"whole"]


def broken_fsync(fd: int) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_failed_fsync_is_final(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    log = opened(tmp_path / "t-0")
    append(log, b"safe")
    log.flush(NOW)
    append(log, b"perhaps")
    with monkeypatch.context() as patch:
        patch.setattr(system, "fsync", broken_fsync)
        with pytest.raises(OSError, match="Input/output"):
            log.flush(NOW)
    assert log.recovery_point == 1
    for attempt in (lambda: log.flush(NOW), lambda: append(log, b"no"), lambda: log.roll(NOW), log.start_flush):
        with pytest.raises(OSError, match="Input/output"):
            attempt()
    assert log.failed is not None
    assert values(log) == [b"safe", b"perhaps"]
    log.close(clean=True)
    again = opened(tmp_path / "t-0", recovery_point=1)
    assert values(again)[:1] == [b"safe"]
    append(again, b"goes on")


def test_flush_beside_appends_covers_what_was_there_when_it_began(tmp_path: Path):
    log = opened(tmp_path / "t-0", segment_bytes=200)
    append(log, b"x" * 100)
    append(log, b"y" * 100)
    flush = log.start_flush()
    append(log, b"z" * 100)
    log.truncate_to(3, NOW)
    flush.run()
    log.finish_flush(flush, NOW)
    assert log.recovery_point == 2
    assert log.flush_due(NOW) is False
    append(log, b"z" * 100)
    append(log, b"z" * 100)
    assert log.flush_due(NOW) is True  # a segment was finished: it is flushed,
    assert log.must_flush(NOW) is False  # but no producer waits for that


def unflushed(log: Log) -> int:
    return log.end_offset - log.recovery_point


@pytest.mark.parametrize(("messages", "due"), [(1, [True, True]), (2, [False, True]), (3, [False, False])])
def test_flush_by_count(tmp_path: Path, messages: int, due: list[bool]):
    log = opened(tmp_path / "t-0", flush_messages=messages)
    for expected in due:
        append(log, b"x")
        assert log.flush_due(NOW) is log.must_flush(NOW) is expected
    assert unflushed(log) == 2


def test_flush_by_time(tmp_path: Path):
    log = opened(tmp_path / "t-0", flush_ms=100)
    assert not log.flush_due(NOW + 1000)
    append(log, b"x")
    assert not log.flush_due(NOW + 99)
    assert log.flush_due(NOW + 100)
    log.flush(NOW + 100)
    assert not log.flush_due(NOW + 1000)


def test_flush_by_time_when_the_clock_is_put_back(tmp_path: Path):
    """How long the last is ago is not known then; not to flush for an hour would be wrong."""
    timely, never = opened(tmp_path / "t-0", flush_ms=100), opened(tmp_path / "t-1")
    for log in (timely, never):
        append(log, b"x")
    assert (timely.flush_due(NOW - 3_600_000), never.flush_due(NOW - 3_600_000)) == (True, False)
    timely.flush(NOW - 3_600_000)
    append(timely, b"y")
    assert [timely.flush_due(NOW - 3_600_000 + later) for later in (99, 100)] == [False, True]
