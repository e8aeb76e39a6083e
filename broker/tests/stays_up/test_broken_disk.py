"""A disk that fails: the directory is offline, and a broker without any directory ends, so that somebody notices."""

from pathlib import Path

import pytest
from posix_only import posix_only

from trilogue.broker.tests.stays_up.disks import Injected, needs_strace
from trilogue.broker.tests.stays_up.process import Process, eventually, process
from trilogue.wire.errors import ErrorCode

pytestmark = [posix_only("calls of the system are made to fail"), needs_strace]

NONE, STORAGE = ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR
NOWHERE = "the broker has ended, for no data directory works any more: [Errno 5] Input/output error"


def injected(broker: Process, rule: str) -> Injected:
    return Injected(broker.pid, "-e", f"inject={rule}", traces=broker.folder / "traces")


def traced(broker: Process) -> bool:
    """Whether strace has its hands on all threads: only then do calls fail."""
    return "TracerPid:\t0" not in Path(f"/proc/{broker.pid}/status").read_text()


@pytest.mark.parametrize(
    ("rule", "settings"),
    [
        ("pwrite64:error=EIO", {}),
        ("fsync,fdatasync:error=EIO", {"flush_messages": "1"}),
        ("fsync,fdatasync:error=EIO:when=1", {"flush_messages": "1"}),
    ],
    ids=["write", "fsync", "one fsync only"],
)
def test_the_only_disk_fails_and_the_broker_ends(tmp_path: Path, rule: str, settings: dict[str, str]) -> None:
    with process(tmp_path) as broker, broker.client() as client:
        assert client.create("t", **settings) == NONE
        assert client.produce("t", b"before") == NONE
        with injected(broker, rule):
            eventually(lambda: traced(broker))
            assert client.produce("t", b"lost") == STORAGE
            assert broker.wait() == 1
        assert broker.log().splitlines()[-1].endswith(NOWHERE)
        assert "Traceback" not in broker.log()

        broker.start()
        with broker.client() as again:
            assert again.values("t")[:1] == [b"before"]
            assert again.produce("t", b"after") == NONE


def test_a_fsync_that_failed_for_lack_of_space_is_not_done_again_as_if_it_could_be(tmp_path: Path) -> None:
    with process(tmp_path) as broker, broker.client() as client:
        assert client.create("t", flush_messages="1") == NONE
        assert client.create("other") == NONE
        assert client.produce("t", b"before") == NONE
        with injected(broker, "fsync,fdatasync:error=ENOSPC:when=1"):
            eventually(lambda: traced(broker))
            assert client.produce("t", b"perhaps") == STORAGE
        assert [client.produce(topic, b"after") for topic in ("t", "other")] == [STORAGE, NONE]
        assert client.values("t")[:1] == [b"before"]


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("pwrite64:error=ENOSPC:when=1", STORAGE),
        ("pwrite64:error=EDQUOT:when=1", STORAGE),
        ("pwrite64:error=ENOMEM:when=1", STORAGE),
        ("pwrite64:retval=3:when=1", NONE),
    ],
    ids=["no space", "no quota", "no memory", "cut short"],
)
def test_a_write_that_was_refused_leaves_nothing_and_one_cut_short_is_completed(
    tmp_path: Path, rule: str, told: ErrorCode
) -> None:
    with process(tmp_path) as broker, broker.client() as client:
        assert client.create("t") == NONE
        assert client.produce("t", b"before") == NONE
        with injected(broker, rule):
            eventually(lambda: traced(broker))
            assert client.produce("t", b"this") == told
            assert client.produce("t", b"after") == NONE
        assert client.values("t") == [b"before", *([b"this"] if told == NONE else []), b"after"]
        assert "goes offline" not in broker.log()


def test_of_two_disks_one_goes_on(tmp_path: Path) -> None:
    first, second = tmp_path / "data", tmp_path / "second"
    with process(tmp_path, f"--data={first},{second}") as broker, broker.client() as client:
        assert client.create("t", 4) == NONE
        assert [client.produce("t", b"x", partition=index) for index in range(4)] == [NONE] * 4
        there = {index for index in range(4) if (second / f"t-{index}").exists()}
        assert len(there) == 2, "the partitions are spread"
        with injected(broker, "pwrite64:error=EIO:when=1"):
            eventually(lambda: traced(broker))
            assert client.produce("t", b"y", partition=min(there)) == STORAGE
        codes = [client.produce("t", b"z", partition=index) for index in range(4)]
        assert codes == [STORAGE if index in there else NONE for index in range(4)]
        assert broker.ended is None
