"""kafka-reassign-partitions moves partitions of a cluster under load: nothing acknowledged is lost, doubled or moved.

The same stories were told to three nodes of Apache Kafka 4.3.1, by hand.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import confluent_kafka.admin
import pytest

from compat_tests.brokers import TRILOGUE, Cluster, cluster
from compat_tests.history import History
from compat_tests.stories import eventually
from compat_tests.test_tools import TOOLS, tool

pytestmark = [pytest.mark.java, pytest.mark.slow]

SETTINGS = {"replica.fetch.wait.max.ms": "200", "replica.fetch.backoff.ms": "100"}
PER_SECOND = 100
GAP_SECONDS = 10.0
"""A producer that has come to a broker too late asks for metadata, and tries again."""
LARGE = 3000
"""Records of a thousand bytes each: more than a fetch brings."""


@pytest.fixture(scope="module")
def three(target: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if target != TRILOGUE:
        pytest.skip("starts brokers of ours")
    with cluster(tmp_path_factory.mktemp("three"), SETTINGS) as several:
        yield several


def reassign(bootstrap: str, folder: Path, plan: dict[str, list[list[int]]], action: str, *more: str) -> str:
    """What the tool says; `plan` has the replicas of each partition, by topic."""
    wish = folder / "wish.json"
    partitions = [
        {"topic": topic, "partition": index, "replicas": replicas}
        for topic, assigned in plan.items()
        for index, replicas in enumerate(assigned)
    ]
    wish.write_text(json.dumps({"version": 1, "partitions": partitions}))
    main = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
    return tool(main, bootstrap, "--reassignment-json-file", str(wish), action, *more)


def make(bootstrap: str, name: str, replicas: list[list[int]]) -> None:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    new = confluent_kafka.admin.NewTopic(name, len(replicas), replica_assignment=replicas)
    admin.create_topics([new])[name].result(30)


def fill(bootstrap: str, name: str, partition: int) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "acks": "all", "batch.size": 20_000})
    for _ in range(LARGE):
        producer.produce(name, bytes(1000), partition=partition)
    assert producer.flush(30) == 0


def replicas(bootstrap: str, name: str) -> list[tuple[list[int], list[int]]]:
    """Of every partition: where it is, and who is in sync."""
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    found = admin.list_topics(name, timeout=10).topics[name].partitions
    return [(list(each.replicas), sorted(each.isrs)) for _, each in sorted(found.items())]


@pytest.mark.feature(TOOLS, "kafka-reassign-partitions")
def test_partitions_move_under_load(three: Cluster, tmp_path: Path) -> None:
    bootstrap = three.bootstrap
    make(bootstrap, "moved", [[1, 2], [2, 3]])
    history = History(bootstrap, "moved", 2, PER_SECOND)
    history.start()
    plan = {"moved": [[3, 1], [1, 2]]}

    said = reassign(bootstrap, tmp_path, plan, "--execute")
    assert "Successfully started partition reassignments for moved-0,moved-1" in said
    eventually(lambda: replicas(bootstrap, "moved"), [([3, 1], [1, 3]), ([1, 2], [1, 2])])

    assert "Reassignment of partition moved-0 is completed." in reassign(bootstrap, tmp_path, plan, "--verify")
    history.stop()
    assert (history.check(), history.errors) == ([], [])
    assert len(history.acknowledged) > PER_SECOND
    assert history.longest_gap < GAP_SECONDS


@pytest.mark.feature(TOOLS, "kafka-reassign-partitions")
def test_a_slow_move_is_seen_stopped_and_begun_again(three: Cluster, tmp_path: Path) -> None:
    bootstrap = three.bootstrap
    make(bootstrap, "slow", [[1]])
    fill(bootstrap, "slow", 0)
    plan = {"slow": [[3, 2]]}

    reassign(bootstrap, tmp_path, plan, "--execute", "--throttle", "1000")
    listed = tool("org.apache.kafka.tools.reassign.ReassignPartitionsCommand", bootstrap, "--list")
    assert re.search(r"slow-0: replicas: 3,2,1\. adding: 2,3\. removing: 1\.", listed), listed
    assert "Reassignment of partition slow-0 is still in progress." in reassign(bootstrap, tmp_path, plan, "--verify")
    assert "Successfully cancelled partition reassignment for: slow-0" in reassign(
        bootstrap, tmp_path, plan, "--cancel"
    )
    assert replicas(bootstrap, "slow") == [([1], [1])]

    reassign(bootstrap, tmp_path, plan, "--execute", "--throttle", "100000000")
    eventually(lambda: replicas(bootstrap, "slow"), [([3, 2], [2, 3])])
    said = reassign(bootstrap, tmp_path, plan, "--verify")
    assert "Clearing broker-level throttles on brokers 1,2,3" in said
    assert "Clearing topic-level throttles on topic slow" in said
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "any"})
    assert consumer.get_watermark_offsets(confluent_kafka.TopicPartition("slow", 0), timeout=10) == (0, LARGE)
    consumer.close()
