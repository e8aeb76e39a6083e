"""No descriptors left: nobody new is let in, what would need a file is refused, and all is well when there are some."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from posix_only import posix_only

from trilogue.broker.tests.stays_up.disks import needs_strace
from trilogue.broker.tests.stays_up.process import Client, Process, eventually, process
from trilogue.wire.errors import ErrorCode

pytestmark = posix_only("the limit of descriptors has to be lowered")

NONE, STORAGE = ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR
LIMIT = 80


def limited(soft: int, hard: int) -> tuple[str, ...]:
    return ("sh", "-c", f'ulimit -Sn {soft}; ulimit -Hn {hard}; exec "$@"', "sh")


@contextlib.contextmanager
def starving(folder: Path, **settings: str) -> Iterator[Process]:
    broker = Process(folder, **settings)
    broker.start(before=limited(LIMIT, LIMIT))
    try:
        yield broker
    finally:
        if broker.ended is None:
            broker.kill()


def besiege(broker: Process) -> list[Client]:
    """Connect until there are no descriptors left."""
    taken = []
    for _ in range(2 * LIMIT):
        taken.append(broker.client())
        if "nobody is let in" in broker.log():
            return taken
        time.sleep(0.002)
    return eventually(lambda: taken if "nobody is let in" in broker.log() else [])


def test_the_directory_stays_and_everything_works_when_there_are_descriptors_again(tmp_path: Path) -> None:
    with starving(tmp_path, replica_high_watermark_checkpoint_interval_ms="100") as broker, broker.client() as client:
        assert client.create("open") == NONE
        assert client.create("closed") == NONE
        assert client.produce("open", b"before") == NONE
        besiegers = besiege(broker)
        assert client.produce("open", b"meanwhile") == NONE, "its file is open"
        assert client.produce("closed", b"no") == STORAGE
        assert client.create("no") == STORAGE
        eventually(lambda: "no checkpoint for now: Too many open files" in broker.log())
        for each in besiegers:
            each.close()

        eventually(lambda: client.produce("closed", b"after") == NONE)
        assert client.create("no") == NONE
        assert client.produce("no", b"after all") == NONE
        everything = [[b"before", b"meanwhile"], [b"after"], [b"after all"]]
        assert [client.values(topic) for topic in ("open", "closed", "no")] == everything
        assert "offline" not in broker.log()
        assert "takes no more writes" not in broker.log()
        assert "Traceback" not in broker.log()
        broker.restart()
        with broker.client() as again:
            assert [again.values(topic) for topic in ("open", "closed", "no")] == everything


def test_a_flush_without_descriptors_is_refused_and_done_again(tmp_path: Path) -> None:
    with starving(tmp_path) as broker, broker.client() as client:
        assert client.create("t", flush_messages="1") == NONE
        assert client.produce("t", b"before") == NONE
        besiegers = besiege(broker)
        assert client.produce("t", b"perhaps") == STORAGE, "the folder cannot be synced"
        for each in besiegers:
            each.close()

        eventually(lambda: client.produce("t", b"after") == NONE)
        assert client.values("t")[:2] == [b"before", b"perhaps"]


def test_the_limit_is_raised_as_far_as_it_may_be(tmp_path: Path) -> None:
    broker = Process(tmp_path, "--verbose")
    broker.start(before=limited(LIMIT, 2 * LIMIT))
    try:
        limits = Path(f"/proc/{broker.pid}/limits").read_text().splitlines()
        (line,) = (each for each in limits if each.startswith("Max open files"))
        assert line.split() == ["Max", "open", "files", str(2 * LIMIT), str(2 * LIMIT), "files"]
        assert f"the limit of open files is raised from {LIMIT} to {2 * LIMIT}" in broker.log()
    finally:
        broker.kill()


def test_more_partitions_than_descriptors_are_all_written_and_read(tmp_path: Path) -> None:
    with starving(tmp_path) as broker, broker.client() as client:
        assert client.create("t", 3 * LIMIT) == NONE
        for index in range(3 * LIMIT):
            assert client.produce("t", b"%d" % index, partition=index) == NONE
        for index in range(3 * LIMIT):
            assert client.values("t", index) == [b"%d" % index]


@needs_strace
@pytest.mark.parametrize("reason", ["EMFILE", "ENFILE", "ENOMEM", "EACCES"])
def test_logs_that_cannot_be_opened_are_opened_later(tmp_path: Path, reason: str) -> None:
    with process(tmp_path) as broker, broker.client() as client:
        assert client.create("t", 3) == NONE
        assert [client.produce("t", b"x", partition=index) for index in range(3)] == [NONE] * 3
        broker.kill()
        which = ("-P", str(broker.data / "t-1"), "-e", f"inject=openat:error={reason}:when=1..2")
        broker.start(before=("strace", "-D", "-f", "-qq", "-o", str(tmp_path / "traces"), *which))
        with broker.client() as again:
            assert [again.produce("t", b"y", partition=index) for index in range(3)] == [NONE, STORAGE, NONE]
            eventually(lambda: again.produce("t", b"y", partition=1) == NONE)
            assert [again.values("t", index) for index in range(3)] == [[b"x", b"y"]] * 3
        assert broker.stop() == 0
