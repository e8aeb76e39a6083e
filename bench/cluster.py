"""Three brokers and a ZooKeeper beside three nodes of Apache Kafka: what is acknowledged is with two of them at least.

python -m bench --only cluster

Clusters share the machine's cores, as everything here.  CPU is that of the three brokers; ours have a ZooKeeper beside
them, which does nothing while records are written.
"""

import contextlib
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import apache
from zookeeper import ZooKeeper

from bench import trials
from bench.brokers import OURS, SETTINGS, Apache, Broker, Ours
from bench.storage import touch_memory
from bench.trial import Fact, Figure, Row, Trial, measure
from bench.trials import KIB, PERCENTILES
from trilogue.wire.apis.metadata import MetadataRequest

BROKERS = 3
PARTITIONS = 3
TOTAL = 100 << 20
"""Bytes of one turn; both clusters are measured in turns of a few seconds."""

MANY = 3000
"""Partitions, each on all three."""
SESSION_MS = 6000
IDLE_SECONDS = 10.0
LONG_SECONDS = 120.0


class Several(Broker):
    """Brokers that are measured as if they were one: the first is asked, and what they use is added up."""

    replication = BROKERS
    brokers: Sequence[Broker]

    @property
    def pid(self) -> int:  # type: ignore[override]
        return self.brokers[0].pid

    @property
    def port(self) -> int:  # type: ignore[override]
        return self.brokers[0].port

    @property
    def bootstrap(self) -> str:
        return ",".join(each.bootstrap for each in self.brokers)

    @property
    def pids(self) -> list[int]:
        return [each.pid for each in self.brokers]

    def cpu_seconds(self) -> float:
        return sum(each.cpu_seconds() for each in self.brokers)

    def rss_mib(self) -> float:
        return sum(each.rss_mib() for each in self.brokers)

    def _is_led(self, topic: str, partitions: int) -> bool:
        """Everybody knows who leads; who leads knows it then, too."""
        asked = [MetadataRequest.Topic(name=topic)]
        for each in self.brokers:
            found = each.ask(MetadataRequest(topics=asked), 7).topics[0]
            led = [part for part in found.partitions if part.leader_id >= 0 and len(part.isr_nodes) == BROKERS]
            if len(led) < partitions:
                return False
        return True


class OurCluster(Several):
    name = "trilogue"

    def __init__(self, folder: Path, *, name: str = name, command: str = OURS) -> None:
        self._folder, self.name, self._command = folder, name, command
        self.zookeeper = ZooKeeper(folder / "zookeeper")
        self.brokers: list[Ours] = []

    def start(self) -> None:
        self.zookeeper.start()
        for number in range(1, BROKERS + 1):
            self.add(number)

    def add(self, number: int) -> Ours:
        settings = {
            **apache.REPLICATED,
            "node.id": str(number),
            "zookeeper.connect": self.zookeeper.address,
            "zookeeper.session.timeout.ms": str(SESSION_MS),
        }
        broker = Ours(self._folder / str(number), command=self._command, **settings)
        broker.start()
        self.brokers.append(broker)
        return broker

    def stop(self) -> None:
        for each in self.brokers:
            each.stop()
        self.brokers.clear()
        self.zookeeper.stop()

    @property
    def pids(self) -> list[int]:
        """ZooKeeper's too: to hold brokers and not the one who counts their silence would end their sessions."""
        assert self.zookeeper.process is not None
        return [*super().pids, self.zookeeper.process.pid]


class ApacheNode(Apache):
    def __init__(self, node: apache.Kafka) -> None:
        self.port = node.port
        assert node.process is not None
        self.pid = node.process.pid


class ApacheCluster(Several):
    name = "Apache Kafka"

    def __init__(self, folder: Path) -> None:
        self._cluster = apache.KafkaCluster(folder, SETTINGS)

    def start(self) -> None:
        self._cluster.start()
        self.brokers = [ApacheNode(each) for each in self._cluster.nodes.values()]

    def stop(self) -> None:
        self._cluster.stop()


@contextlib.contextmanager
def running(cluster: OurCluster | ApacheCluster) -> Iterator[OurCluster | ApacheCluster]:
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop()


def cluster_trials() -> Iterator[Trial]:
    for batch, target, cpu_target in ((16 * KIB, 2.0, 0.4), (128 * KIB, 1.5, 0.5)):
        yield trials.produce(
            KIB, batch, acks="all", partitions=PARTITIONS, target=target, cpu_target=cpu_target, total=TOTAL
        )._replace(section="cluster")
    yield trials.acknowledgement(2000, acks="all", targets={"p50_us": 0.8, "p99_us": 0.7})._replace(section="cluster")
    figures = tuple(each._replace(target={"p50_us": 0.9}.get(each.key)) for each in PERCENTILES)
    yield trials.tail(
        "end to end, 1,000 records/s, acks=all", "cluster", 1000, 3000, figures, "acks=all", "linger.ms=0"
    )._replace(alone=True)


def side_by_side(folder: Path, rounds: int) -> list[Row]:
    ours, theirs = OurCluster(folder / "our-cluster"), ApacheCluster(folder / "apache-cluster")
    ahead = partial(touch_memory, folder, BROKERS * TOTAL)
    with running(ours), running(theirs):
        rows = [row for trial in cluster_trials() for row in measure(trial, (ours, theirs), rounds, ahead)]
        return [*rows, memory(ours, theirs)]


def memory(ours: Broker, theirs: Broker) -> Row:
    figure = Figure("rss", "MiB of all three after all of this", False, 0.1)
    return Row("cluster", "memory", figure, [ours.rss_mib()], [theirs.rss_mib()])


# -- many partitions, ours alone -------------------------------------------------------------------


def many_partitions(folder: Path) -> list[Fact]:
    """Three thousand of them on each broker: what it costs to have them, to start with them, and to lose a broker."""
    with running(OurCluster(folder)) as cluster:
        assert isinstance(cluster, OurCluster)
        cluster.create("many", MANY)
        time.sleep(IDLE_SECONDS / 2)  # what making them has left behind
        before = [each.cpu_seconds() for each in cluster.brokers]
        time.sleep(IDLE_SECONDS)
        idle = max(each.cpu_seconds() - used for each, used in zip(cluster.brokers, before, strict=True))
        victim = cluster.brokers.pop()
        victim.kill()
        begun = time.monotonic()
        while not led_by_others(cluster, BROKERS):
            if time.monotonic() - begun > LONG_SECONDS:
                raise TimeoutError("not all partitions of the broker that was killed are led again")
            time.sleep(0.05)
        led = time.monotonic() - begun - SESSION_MS / 1000
        begun = time.monotonic()
        cluster.add(BROKERS)
        started = time.monotonic() - begun
    what = f"{MANY:,} partitions, each on three brokers"
    return [
        Fact(f"{what}: idle, the busiest broker", "% of a core", idle / IDLE_SECONDS * 100, 3),
        Fact(f"{what}: a broker is lost, from the end of its session until all are led", "s", led, 3),
        Fact(f"{what}: start of the one that was killed", "s", started, 15),
    ]


def led_by_others(cluster: OurCluster, victim: int) -> bool:
    asked = MetadataRequest(topics=[MetadataRequest.Topic(name="many")])
    return all(
        part.leader_id not in (-1, victim)
        for each in cluster.brokers
        for part in each.ask(asked, 7).topics[0].partitions
    )
