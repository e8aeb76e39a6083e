"""A disk of one broker is full, or fails, under a producer and a reader: others lead what it cannot write, nothing
acknowledged is lost, and it comes back.

TRILOGUE_FAULTS says how often each fault is brought about (`make faults`).
"""

import errno
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from compat_tests.brokers import Place
from compat_tests.lies import Lies, compiled
from compat_tests.trial import TIMES, Loaded, trial

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.usefixtures("only_ours")]

ROUNDS = max(1, TIMES // 2)
MOVED_SECONDS = 10.0
"""So soon others lead."""


@contextmanager
def small_disk(path: Path) -> Iterator[None]:
    path.mkdir(parents=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(path)], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount a small tmpfs: {mounted.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


@contextmanager
def small_disks(folder: Path) -> Iterator[None]:
    """Of every broker."""
    with ExitStack() as stack:
        for number in (1, 2, 3):
            stack.enter_context(small_disk(folder / str(number) / "data"))
        yield


def fill(path: Path) -> None:
    """Other people's data, until there is no room for a byte."""
    with open(path, "wb", buffering=0) as blocker:
        for size in (1 << 20, 4096, 1):
            with suppress(OSError):
                while blocker.write(bytes(size)):
                    pass


@contextmanager
def full(it: Loaded, victim: int) -> Iterator[None]:
    blocker = it.cluster.brokers[victim].data[0] / "blocker"
    fill(blocker)
    try:
        yield
    finally:
        blocker.unlink()


def leads_nothing(it: Loaded, victim: int) -> bool:
    return all(each.leader not in (victim, -1) for each in it.metadata().topics["t"].partitions.values())


def reads_go_on(it: Loaded) -> None:
    before = len(it.history.seen)
    it.until("reading goes on", lambda: len(it.history.seen) > before + 50)


def test_a_disk_is_full(tmp_path: Path) -> None:
    with small_disks(tmp_path), trial(tmp_path) as it:
        for _ in range(ROUNDS):
            leader = it.leader()
            with full(it, leader):
                it.until("others lead", lambda leader=leader: leads_nothing(it, leader), MOVED_SECONDS)
                it.writes_go_on()
                reads_go_on(it)
            it.all_in_sync()

            leader = it.leader()
            follower = next(each for each in it.cluster.brokers if each != leader)
            with full(it, follower):
                it.until("it is out of sync", lambda: it.in_sync(0) == 2)
                it.writes_go_on()
                assert it.leader() == leader
            it.all_in_sync()
        assert it.history.errors == []


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("lies"))


@contextmanager
def lied_to(library: Path, folder: Path, disks: int = 1) -> Iterator[tuple[Loaded, dict[int, Lies]]]:
    lies = {each: Lies(library, folder / f"lies-{each}") for each in (1, 2, 3)}
    places = {each: Place(variables=lies[each].variables, disks=disks) for each in lies}
    with trial(folder, {"log.flush.interval.messages": "100"}, places) as it:
        yield it, lies


def test_the_only_disk_of_a_leader_fails_and_it_ends_when_others_lead(library: Path, tmp_path: Path) -> None:
    with lied_to(library, tmp_path) as (it, lies):
        for _ in range(ROUNDS):
            for failure in ({"write": errno.EIO}, {"sync": errno.EIO}):
                victim = it.leader()
                broker = it.cluster.brokers[victim]
                assert broker.process is not None
                with lies[victim].disk_fails(broker.data[0], most=7):
                    it.writes_go_on()
                    assert it.leader() == victim, "what is cut short is completed"
                with lies[victim].disk_fails(broker.data[0], **failure):
                    it.until("others lead", lambda victim=victim: leads_nothing(it, victim), MOVED_SECONDS)
                    it.writes_go_on()
                    assert broker.process.wait(20) == 1
                last = (broker.folder / "broker.log").read_text().splitlines()[-1]
                assert last.endswith("no data directory works any more: [Errno 5] Input/output error")
                broker.start()
                it.all_in_sync()


def test_one_of_two_disks_of_a_leader_fails_and_only_what_is_there_moves(library: Path, tmp_path: Path) -> None:
    with lied_to(library, tmp_path, disks=2) as (it, lies):
        for _ in range(ROUNDS):
            victim = it.leader()
            broker = it.cluster.brokers[victim]
            (gone,) = (each for each in broker.data if (each / "t-0").exists())
            there = {index for index in it.metadata().topics["t"].partitions if (gone / f"t-{index}").exists()}
            with lies[victim].disk_fails(gone, write=errno.EIO):
                it.until("another leads", lambda victim=victim: it.leader() not in (victim, -1), MOVED_SECONDS)
                it.writes_go_on()
                it.until(
                    "it is out of sync there",
                    lambda there=there: {each for each in range(3) if it.in_sync(each) == 2} == there,
                )
            it.writes_go_on()
            assert it.in_sync(0) == 2, "a disk that has failed is not tried again"
            assert broker.stop() == 0
            broker.start()
            it.all_in_sync()
