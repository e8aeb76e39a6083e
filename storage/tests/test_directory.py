"""Data directories: identity, lock, checkpoints, the mark of a clean end, and one disk failing alone."""

import errno
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from trilogue.storage import checkpoint
from trilogue.storage.config import LogConfig
from trilogue.storage.directory import DataDirectory, DirectoryInUse, WrongDirectory
from trilogue.storage.tests.making import NOW, append, records, values

CONFIG = LogConfig(segment_bytes=200)


def directory(path: Path, cluster_id: str = "c", node_id: int = 1) -> DataDirectory:
    return DataDirectory(path, cluster_id=cluster_id, node_id=node_id, new_id=(9).to_bytes(16, "big"))


def test_identity_is_written_once_and_checked(tmp_path: Path):
    first = directory(tmp_path)
    assert (tmp_path / "meta.properties").read_text() == (
        "node.id=1\ndirectory.id=AAAAAAAAAAAAAAAAAAAACQ\nversion=1\ncluster.id=c\n"
    )
    first.close({}, clean=True, now_ms=NOW)
    assert not (tmp_path / ".lock").exists()
    for wrong in ({"cluster_id": "other"}, {"node_id": 2}):
        with pytest.raises(WrongDirectory):
            directory(tmp_path, **wrong)  # type: ignore[arg-type]
    again = DataDirectory(tmp_path, cluster_id="c", node_id=1, new_id=(10).to_bytes(16, "big"))
    assert again.id == (9).to_bytes(16, "big")


def test_second_broker_is_kept_out(tmp_path: Path):
    ours = directory(tmp_path)
    script = (
        "import sys\n"
        "from trilogue.storage.directory import DataDirectory, DirectoryInUse\n"
        "try: DataDirectory(sys.argv[1], cluster_id='c', node_id=1, new_id=bytes(16))\n"
        "except DirectoryInUse: print('in use')\n"
    )
    run = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, timeout=20)
    assert run.stdout == "in use\n", run.stderr
    assert issubclass(DirectoryInUse, Exception)
    ours.close({}, clean=False, now_ms=NOW)


def test_clean_end_is_marked_and_the_mark_is_used_once(tmp_path: Path):
    node = directory(tmp_path)
    assert not node.was_clean
    log = node.open_log("t", 0, CONFIG, NOW)
    for number in range(5):
        append(log, b"%d" % number * 50)
    log.raise_start(3, 5)
    node.save_high_watermarks({("t", 0): 5})
    node.close({("t", 0): log}, clean=True, now_ms=NOW, broker_epoch=13)
    assert (tmp_path / ".kafka_cleanshutdown").read_bytes() == b'{"version":0,"brokerEpoch":13}'
    assert (tmp_path / "recovery-point-offset-checkpoint").read_bytes() == b"0\n1\nt 0 5\n"
    assert (tmp_path / "log-start-offset-checkpoint").read_bytes() == b"0\n1\nt 0 3\n"
    again = directory(tmp_path)
    assert (again.was_clean, again.clean_broker_epoch, again.high_watermarks) == (True, 13, {("t", 0): 5})
    assert again.partitions() == [("t", 0)]
    log = again.open_log("t", 0, CONFIG, NOW)
    assert [offset for offset, _, _ in records(log)] == [3, 4]
    again.close({("t", 0): log}, clean=False, now_ms=NOW)
    assert not directory(tmp_path).was_clean


@pytest.mark.parametrize("content", [b"", b"noise", b"{}", b'{"brokerEpoch":"x"}'])
def test_unreadable_mark_is_still_a_mark(tmp_path: Path, content: bytes):
    (tmp_path / ".kafka_cleanshutdown").write_bytes(content)
    assert directory(tmp_path).clean_broker_epoch == -1


def test_damaged_checkpoints_count_as_empty(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    for name in (checkpoint.RECOVERY_POINTS, checkpoint.HIGH_WATERMARKS, checkpoint.LOG_STARTS, checkpoint.CLEANED_TO):
        (tmp_path / name).write_bytes(b"0\n7\nnoise")
    with caplog.at_level(logging.WARNING):
        node = directory(tmp_path)
    assert (node.recovery_points, node.high_watermarks, node.log_starts, node.cleaned_to) == ({}, {}, {}, {})
    assert caplog.text.count("counts as empty") == 4


def test_lost_recovery_point_loses_no_data(tmp_path: Path):
    node = directory(tmp_path)
    log = node.open_log("t", 0, CONFIG, NOW)
    append(log, b"x")
    log.flush(NOW)
    node.save_recovery_points({("t", 0): log})
    node.close({("t", 0): log}, clean=False, now_ms=NOW)
    (tmp_path / checkpoint.RECOVERY_POINTS).unlink()
    assert values(directory(tmp_path).open_log("t", 0, CONFIG, NOW)) == [b"x"]


def test_clean_end_counts_for_the_first_opening_only(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    node = directory(tmp_path)
    log = node.open_log("t", 0, CONFIG, NOW)
    append(log, b"x")
    node.close({("t", 0): log}, clean=True, now_ms=NOW)
    node = directory(tmp_path)
    log = node.open_log("t", 0, CONFIG, NOW)
    assert "checked" not in caplog.text
    append(log, b"torn")
    log.close(clean=False)
    path = next((tmp_path / "t-0").glob("*.log"))
    path.write_bytes(path.read_bytes()[:-1])
    assert values(node.open_log("t", 0, CONFIG, NOW)) == [b"x"]
    assert "checked" in caplog.text


def test_topic_made_anew_begins_at_0(tmp_path: Path):
    node = directory(tmp_path)
    log = node.open_log("t", 0, CONFIG, NOW)
    append(log, b"x", b"y")
    log.raise_start(1, 2)
    log.flush(NOW)
    node.save_log_starts({("t", 0): log})
    node.save_recovery_points({("t", 0): log})
    assert log.delete("0" * 32) is not None
    again = node.open_log("t", 0, CONFIG, NOW)
    assert (again.start_offset, again.end_offset, again.recovery_point) == (0, 0, 0)
    assert node.log_starts == {}


def test_deleted_partitions_are_leftovers_until_they_are_removed(tmp_path: Path):
    node = directory(tmp_path)
    log = node.open_log("t", 0, CONFIG, NOW)
    append(log, b"x")
    path = log.delete("0" * 32)
    assert path is not None
    assert node.leftovers() == [path]
    assert node.partitions() == []
    with pytest.raises(ValueError, match="not a deleted partition"):
        node.remove_leftover(str(tmp_path / "t-1"))
    node.remove_leftover(path)
    assert node.leftovers() == []
    assert node.open_log("t", 0, CONFIG, NOW).end_offset == 0


def test_one_failing_directory_takes_only_its_partitions_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    bad, good = directory(tmp_path / "bad"), directory(tmp_path / "good")
    lost, kept = bad.open_log("t", 0, CONFIG, NOW), good.open_log("t", 1, CONFIG, NOW)
    append(lost, b"x")
    append(kept, b"x")
    broken = OSError(errno.EIO, os.strerror(errno.EIO))
    bad.fail(broken, [lost])
    with pytest.raises(OSError, match="Input/output"):
        append(lost, b"y")
    with pytest.raises(OSError, match="Input/output"):
        bad.save_high_watermarks({})
    append(kept, b"y")
    good.save_high_watermarks({("t", 1): 2})
    bad.close({("t", 0): lost}, clean=True, now_ms=NOW)
    good.close({("t", 1): kept}, clean=True, now_ms=NOW)
    assert not directory(tmp_path / "bad").was_clean
    assert directory(tmp_path / "good").was_clean
