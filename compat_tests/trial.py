"""Three brokers and ZooKeeper that are killed, hung and stopped under load, and what has to be true in the end.

What a fault must not do is said by whoever brings the load: `history.py` for a plain producer and a reader.
Whatever the load: all replicas are the same in the end, byte for byte, and no broker has met what it did not expect.
"""

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import confluent_kafka
import confluent_kafka.admin

from compat_tests.brokers import Cluster, Place, cluster
from compat_tests.history import History

TIMES = int(os.environ.get("TRILOGUE_FAULTS", "2"))
"""How often each fault is brought about (`make faults`)."""

ROUNDS = max(1, TIMES // 2)
"""The same for trials that bring about several faults in a round."""

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

T = TypeVar("T", bound="Trial")


class Trial:
    """A cluster, and some topics of it: by name, how many partitions they have."""

    def __init__(self, several: Cluster, topics: Mapping[str, int]) -> None:
        self.cluster, self.topics = several, topics
        self.hung: int | None = None
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": several.bootstrap})
        for name, count in topics.items():
            # Whoever is asked may not have heard of the last broker yet: then three replicas are refused.
            self.until(f"{name} is made", lambda name=name, count=count: self._make(admin, name, count))

    def _make(self, admin: confluent_kafka.admin.AdminClient, name: str, count: int) -> bool:
        admin.create_topics([confluent_kafka.admin.NewTopic(name, count)])[name].result(30)
        return True

    def leader(self, partition: int = 0, topic: str = "t") -> int:
        """-1 if nobody leads."""
        return int(self.metadata().topics[topic].partitions[partition].leader)

    def in_sync(self, partition: int, topic: str = "t") -> int:
        return len(self.metadata().topics[topic].partitions[partition].isrs)

    def controller(self) -> int:
        return int(self.metadata().controller_id)

    def brokers(self) -> int:
        return len(self.metadata().brokers)

    @property
    def awake(self) -> str:
        """Where those can be reached who answer: a client that knows all of them may go on asking one that hangs."""
        return ",".join(each.bootstrap for number, each in self.cluster.brokers.items() if number != self.hung)

    def metadata(self) -> confluent_kafka.admin.ClusterMetadata:
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": self.awake})
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

    def until(self, what: str, so: Callable[[], bool], seconds: float = SECONDS_MAX) -> None:
        deadline = time.monotonic() + seconds
        while True:
            with suppress(confluent_kafka.KafkaException):  # it may have asked one that hangs
                if so():
                    return
            assert time.monotonic() < deadline, f"not within {seconds} s: {what}; {self.views()}"
            time.sleep(0.05)

    def views(self) -> str:
        """What each broker believes, for whoever has to find out what went wrong."""
        found = []
        for number, broker in self.cluster.brokers.items():
            admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": broker.bootstrap})
            try:
                topics = admin.list_topics(timeout=ASK_SECONDS).topics
                parts = {name: topics[name].partitions.values() for name in self.topics if name in topics}
                states = {name: [(each.id, each.leader, each.isrs) for each in parts[name]] for name in parts}
                found.append(f"{number} says {states}")
            except confluent_kafka.KafkaException as error:
                found.append(f"{number} does not say: {error}")
        return "; ".join(found)

    def all_in_sync(self) -> None:
        def all_are() -> bool:
            topics = self.metadata().topics  # the coordinators' as well
            return self.topics.keys() <= topics.keys() and all(
                len(each.isrs) == 3 for topic in topics.values() for each in topic.partitions.values()
            )

        self.until("all are in sync", all_are)


class Loaded(Trial):
    """With a producer and a reader of the topic `t`."""

    def __init__(self, several: Cluster) -> None:
        super().__init__(several, {"t": PARTITIONS})
        self.history = History(several.bootstrap, "t", PARTITIONS, PER_SECOND)

    def writes_go_on(self) -> None:
        before = len(self.history.acknowledged)
        self.until("writing goes on", lambda: len(self.history.acknowledged) > before + 50)


@contextmanager
def tried(
    folder: Path,
    make: Callable[[Cluster], T],
    settings: Mapping[str, str] | None = None,
    places: Mapping[int, Place] | None = None,
) -> Iterator[T]:
    """A cluster, with what `make` makes of it; checked when everything is well again and all have stopped."""
    with cluster(folder, {**SETTINGS, **(settings or {})}, places=places) as several:
        it = make(several)
        yield it
        it.all_in_sync()
    # They have stopped by now, and so have written everything.
    for topic, count in it.topics.items():
        for partition in range(count):
            logs = [content(each.data, f"{topic}-{partition}") for each in several.brokers.values()]
            assert logs[0] == logs[1] == logs[2], f"the replicas of {topic}-{partition} differ"
    for each in several.brokers:
        assert "Traceback" not in (folder / str(each) / "broker.log").read_text()


def content(data: Iterable[Path], partition: str) -> bytes:
    return b"".join(each.read_bytes() for folder in data for each in sorted(folder.glob(f"{partition}/*.log")))


@contextmanager
def trial(
    folder: Path, settings: Mapping[str, str] | None = None, places: Mapping[int, Place] | None = None
) -> Iterator[Loaded]:
    """Under load from the beginning to the end."""
    with tried(folder, Loaded, settings, places) as it:
        it.history.start()
        try:
            it.writes_go_on()
            yield it
            it.writes_go_on()
            it.all_in_sync()
        finally:
            it.history.stop()
        wrong = it.history.check()
        assert not wrong, "; ".join(wrong)
        assert len(it.history.acknowledged) > 100
        print(f"\n{len(it.history.acknowledged)} acknowledged, longest gap {it.history.longest_gap:.1f} s", end=" ")
