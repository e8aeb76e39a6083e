"""How long nothing is acknowledged while brokers are restarted one after the other, and after one was killed: three of
ours beside three nodes of Apache Kafka, under an idempotent producer with stock settings but for its patience.

python -m bench --only failover
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import apache
import confluent_kafka
import confluent_kafka.admin

from bench.brokers import SETTINGS
from bench.cluster import SESSION_MS, OurCluster, running
from bench.trial import Figure, Row, say
from compat_tests.history import History

TOPIC, PARTITIONS = "failover", 3
PER_SECOND = 300
WARM_SECONDS = 3.0
WAIT_SECONDS = 120.0
REPLICAS = 3


class Side(NamedTuple):
    """A cluster whose brokers can be ended and begun again."""

    name: str
    bootstrap: str
    stop: dict[int, Callable[[], None]]
    kill: dict[int, Callable[[], None]]
    start: dict[int, Callable[[], None]]


@contextmanager
def ours(folder: Path) -> Iterator[Side]:
    cluster = OurCluster(folder)
    with running(cluster):
        each = dict(enumerate(cluster.brokers, 1))
        yield Side(
            "trilogue",
            cluster.bootstrap,
            {number: broker.stop for number, broker in each.items()},
            {number: broker.kill for number, broker in each.items()},
            {number: broker.start for number, broker in each.items()},
        )


@contextmanager
def theirs(folder: Path) -> Iterator[Side]:
    with apache.KafkaCluster(folder, {**SETTINGS, "broker.session.timeout.ms": str(SESSION_MS)}) as cluster:
        each = cluster.nodes
        yield Side(
            "Apache Kafka",
            cluster.bootstrap,
            {number: node.stop for number, node in each.items()},
            {number: node.kill for number, node in each.items()},
            {number: node.start for number, node in each.items()},
        )


def partitions(side: Side) -> dict[int, confluent_kafka.admin.PartitionMetadata]:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": side.bootstrap, "log_level": 0})
    return dict(admin.list_topics(TOPIC, timeout=5).topics[TOPIC].partitions)


def until_in_sync(side: Side) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        with suppress(confluent_kafka.KafkaException):
            if all(len(each.isrs) == REPLICAS for each in partitions(side).values()):
                return
        time.sleep(0.1)
    raise TimeoutError(f"{side.name}: not all replicas are in sync again")


def gaps(side: Side) -> tuple[float, float]:
    """Of restarts in turn, and of a leader that is killed."""
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": side.bootstrap, "log_level": 0})
    admin.create_topics([confluent_kafka.admin.NewTopic(TOPIC, PARTITIONS, REPLICAS)])[TOPIC].result(30)
    history = History(side.bootstrap, TOPIC, PARTITIONS, PER_SECOND)
    history.start()
    try:
        until_in_sync(side)
        time.sleep(WARM_SECONDS)
        history.begin_gap()
        for number, stop in side.stop.items():
            say(f"  failover: {side.name}, broker {number} is restarted")
            stop()
            side.start[number]()
            until_in_sync(side)
        restarted = history.longest_gap
        victim = partitions(side)[0].leader
        say(f"  failover: {side.name}, broker {victim} is killed")
        history.begin_gap()
        side.kill[victim]()
        time.sleep(2 * SESSION_MS / 1000)
        killed = history.longest_gap
        side.start[victim]()
        until_in_sync(side)
    finally:
        history.stop()
    if wrong := history.check() + history.errors:
        raise RuntimeError(f"{side.name}: {'; '.join(wrong[:3])}")
    return restarted, killed


def trials(folder: Path) -> list[Row]:
    with ours(folder / "ours") as side:
        found = gaps(side)
    with theirs(folder / "theirs") as side:
        kafkas = gaps(side)
    names = ("restarted one after the other", f"a leader killed, session of {SESSION_MS // 1000} s")
    figure = Figure("gap", "s without an acknowledgement, the longest", False)
    return [Row("failover", name, figure, [one], [two]) for name, one, two in zip(names, found, kafkas, strict=True)]
