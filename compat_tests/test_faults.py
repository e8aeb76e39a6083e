"""Brokers die, hang and stop under a producer and a reader: nothing acknowledged is lost, doubled or moved, and in the
end all replicas are the same, byte for byte.

TRILOGUE_FAULTS says how often each fault is brought about (`make faults`).
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import confluent_kafka
import confluent_kafka.admin
import pytest

from compat_tests.brokers import TRILOGUE, Cluster, cluster
from compat_tests.history import History

pytestmark = [pytest.mark.java, pytest.mark.slow]

TIMES = int(os.environ.get("TRILOGUE_FAULTS", "2"))
SESSION_MS, LAG_MS = 2000, 1500
SETTINGS = {
    "zookeeper.session.timeout.ms": str(SESSION_MS),
    "replica.lag.time.max.ms": str(LAG_MS),
    "replica.fetch.wait.max.ms": "200",
    "replica.fetch.backoff.ms": "100",
}
PARTITIONS = 3
PER_SECOND = 300
SECONDS_MAX = 60.0
ASK_SECONDS = 3.0


@pytest.fixture(autouse=True)
def only_ours(target: str) -> None:
    if target != TRILOGUE:
        pytest.skip("kills brokers of ours")


class Trial:
    """A cluster under load."""

    def __init__(self, several: Cluster, folder: Path) -> None:
        self.cluster, self._folder = several, folder
        self.hung: int | None = None
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": several.bootstrap})
        admin.create_topics([confluent_kafka.admin.NewTopic("t", PARTITIONS)])["t"].result(30)
        self.history = History(several.bootstrap, "t", PARTITIONS, PER_SECOND)

    def leader(self, partition: int = 0) -> int:
        return int(self._partition(partition).leader)

    def in_sync(self, partition: int) -> int:
        return len(self._partition(partition).isrs)

    def controller(self) -> int:
        return int(self._metadata().controller_id)

    def brokers(self) -> int:
        return len(self._metadata().brokers)

    def _partition(self, index: int) -> confluent_kafka.admin.PartitionMetadata:
        return self._metadata().topics["t"].partitions[index]

    def _metadata(self) -> confluent_kafka.admin.ClusterMetadata:
        """From somebody who answers: a client that knows all of them may go on asking one that hangs."""
        awake = ",".join(each.bootstrap for number, each in self.cluster.brokers.items() if number != self.hung)
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": awake})
        return admin.list_topics(timeout=ASK_SECONDS)

    @contextmanager
    def hanging(self, victim: int) -> Iterator[None]:
        process = self.cluster.brokers[victim].process
        assert process is not None
        self.hung = victim
        process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            process.send_signal(signal.SIGCONT)
            self.hung = None

    def until(self, what: str, so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            with suppress(confluent_kafka.KafkaException):  # it may have asked one that hangs
                if so():
                    return
            assert time.monotonic() < deadline, f"not within {SECONDS_MAX} s: {what}; {self.views()}"
            time.sleep(0.05)

    def views(self) -> str:
        """What each broker believes, for whoever has to find out what went wrong."""
        found = []
        for number, broker in self.cluster.brokers.items():
            admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": broker.bootstrap})
            try:
                parts = admin.list_topics("t", timeout=ASK_SECONDS).topics["t"].partitions.values()
                found.append(f"{number} says {[(each.id, each.leader, each.isrs) for each in parts]}")
            except confluent_kafka.KafkaException as error:
                found.append(f"{number} does not say: {error}")
        return "; ".join(found)

    def all_in_sync(self) -> None:
        self.until("all are in sync", lambda: all(self.in_sync(each) == 3 for each in range(PARTITIONS)))

    def writes_go_on(self) -> None:
        before = len(self.history.acknowledged)
        self.until("writing goes on", lambda: len(self.history.acknowledged) > before + 50)


@contextmanager
def trial(folder: Path) -> Iterator[Trial]:
    """Checked at the end, when everything is well again."""
    with cluster(folder, SETTINGS) as several:
        it = Trial(several, folder)
        it.history.start()
        try:
            it.writes_go_on()
            yield it
            it.writes_go_on()
            it.all_in_sync()
        finally:
            it.history.stop()
        assert it.history.check() == []
        assert len(it.history.acknowledged) > 100
        it.all_in_sync()
        print(f"\n{len(it.history.acknowledged)} acknowledged, longest gap {it.history.longest_gap:.1f} s", end=" ")
    # They have stopped by now, and so have written everything.
    for partition in range(PARTITIONS):
        logs = [content(folder / str(each) / "data" / f"t-{partition}") for each in several.brokers]
        assert logs[0] == logs[1] == logs[2], f"the replicas of t-{partition} differ"
    for each in several.brokers:
        assert "Traceback" not in (folder / str(each) / "broker.log").read_text()


def content(folder: Path) -> bytes:
    return b"".join(each.read_bytes() for each in sorted(folder.glob("*.log")))


def test_a_leader_is_killed(tmp_path: Path) -> None:
    with trial(tmp_path) as it:
        for _ in range(TIMES):
            victim = it.leader()
            it.cluster.brokers[victim].kill()
            it.until("another leads", lambda victim=victim: it.leader() not in (victim, -1))
            it.writes_go_on()
            it.cluster.brokers[victim].start()
            it.all_in_sync()


def test_the_controller_is_killed(tmp_path: Path) -> None:
    with trial(tmp_path) as it:
        for _ in range(TIMES):
            victim = it.controller()
            it.cluster.brokers[victim].kill()
            it.until("another is", lambda victim=victim: it.controller() not in (victim, -1))
            it.cluster.brokers[victim].start()
            it.all_in_sync()


def test_all_are_killed_at_once(tmp_path: Path) -> None:
    with trial(tmp_path) as it:
        for _ in range(TIMES):
            for each in it.cluster.brokers.values():
                each.kill()
            for each in it.cluster.brokers.values():
                each.start()
            it.all_in_sync()
            it.writes_go_on()


def test_one_after_the_other_is_restarted(tmp_path: Path) -> None:
    """No error reaches the producer, which has stock settings but for its patience."""
    with trial(tmp_path) as it:
        for broker in it.cluster.brokers.values():
            it.history.begin_gap()
            assert broker.stop() == 0
            broker.start()
            it.all_in_sync()
        assert it.history.errors == []


def test_a_leader_hangs_and_comes_back_as_a_zombie(tmp_path: Path) -> None:
    with trial(tmp_path) as it:
        for _ in range(TIMES):
            victim = it.leader()
            with it.hanging(victim):
                time.sleep(2 * SESSION_MS / 1000)
                it.until("another leads", lambda victim=victim: it.leader() not in (victim, -1))
                it.writes_go_on()
            it.all_in_sync()


def test_a_follower_hangs(tmp_path: Path) -> None:
    with trial(tmp_path) as it:
        for _ in range(TIMES):
            leader = it.leader()
            victim = next(each for each in it.cluster.brokers if each != leader)
            with it.hanging(victim):
                it.until("it is out of sync", lambda: it.in_sync(0) == 2)
                it.writes_go_on()
            it.all_in_sync()


@pytest.mark.parametrize("sessions", [0.5, 3.0])
def test_zookeeper_is_away(tmp_path: Path, sessions: float) -> None:
    with trial(tmp_path) as it:
        it.cluster.zookeeper.stop()
        time.sleep(sessions * SESSION_MS / 1000)
        it.writes_go_on()
        it.cluster.zookeeper.start()
        it.until("all are registered", lambda: it.brokers() == 3)
        it.all_in_sync()
