"""The network between brokers, ZooKeeper and clients is cut, here and there and in one direction: nothing acknowledged
is lost, who is cut off acknowledges nothing, and all is well soon after the network is.

Each of them has a network namespace of its own (`networks.py`).  One cluster has all the cuts, one after the other, and
what became of its records is looked at in the end.  TRILOGUE_FAULTS says how often each fault is brought about (`make
faults`).
"""

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import confluent_kafka
import confluent_kafka.admin
import pytest

from compat_tests.brokers import ZOOKEEPER, Place
from compat_tests.networks import CLIENTS, Network, both_ways, network
from compat_tests.trial import ASK_SECONDS, LAG_MS, SESSION_MS, TIMES, Loaded, trial

pytestmark = [pytest.mark.java, pytest.mark.slow]

KEEPER = "zookeeper"
HOSTS = {ZOOKEEPER: KEEPER, 1: "one", 2: "two", 3: "three"}
HEALED_SECONDS = 15 + SESSION_MS / 1000


class Networked(NamedTuple):
    trial: Loaded
    network: Network


@pytest.fixture(scope="module")
def networked(only_ours: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Networked]:
    with network(HOSTS.values()) as made, made.inside(CLIENTS):
        places = {each: Place(made.address(name), made.within(name)) for each, name in HOSTS.items()}
        with trial(tmp_path_factory.mktemp("networked"), places=places) as it:
            yield Networked(it, made)


def others(leader: int) -> list[str]:
    return [HOSTS[each] for each in (1, 2, 3) if each != leader]


def healed(it: Loaded) -> None:
    """All brokers say so: who was cut off knows nothing of it at first."""

    def all_say_so() -> bool:
        states = [state(each.bootstrap) for each in it.cluster.brokers.values()]
        return states[0] == states[1] == states[2] and all(in_sync == [1, 2, 3] for _, in_sync in states[0])

    it.until("all brokers say that all are in sync", all_say_so, HEALED_SECONDS)
    it.writes_go_on()


def state(bootstrap: str) -> list[tuple[int, list[int]]]:
    """Leader and ISR of all partitions, as one broker has it."""
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    parts = admin.list_topics("t", timeout=ASK_SECONDS).topics["t"].partitions.values()
    return [(each.leader, sorted(each.isrs)) for each in parts]


def another_leads(it: Loaded, before: int) -> Callable[[], bool]:
    return lambda: it.leader() not in (before, -1)


def high_watermark(it: Loaded, leader: int) -> int:
    """Of the first partition, as this broker has it."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": it.cluster.brokers[leader].bootstrap, "group.id": "nobody"}
    )
    try:
        return int(consumer.get_watermark_offsets(confluent_kafka.TopicPartition("t", 0), timeout=ASK_SECONDS)[1])
    finally:
        consumer.close()


def test_a_leader_is_cut_off_from_everybody(networked: Networked) -> None:
    it, net = networked
    for _ in range(TIMES):
        leader = it.hung = it.leader()
        with net.cut(*both_ways(HOSTS[leader], [*others(leader), KEEPER, CLIENTS])):
            it.until("another leads", another_leads(it, leader))
            it.writes_go_on()
            time.sleep(SESSION_MS / 1000)  # until it knows itself
        it.hung = None
        healed(it)


def test_a_leader_is_cut_off_from_its_followers(networked: Networked) -> None:
    """It goes on leading, for ZooKeeper knows nothing of it, and acknowledges nothing."""
    it, net = networked
    for _ in range(TIMES):
        leader = it.leader()
        with net.cut(*both_ways(HOSTS[leader], others(leader))):
            it.until("nobody else is in sync", lambda: it.in_sync(0) == 1)
            before = high_watermark(it, leader)
            time.sleep(LAG_MS / 1000)
            assert (it.leader(), high_watermark(it, leader)) == (leader, before)
        healed(it)


def test_a_leader_is_cut_off_from_zookeeper(networked: Networked) -> None:
    """Clients and followers can reach it, and so it must not believe in itself for long."""
    it, net = networked
    for _ in range(TIMES):
        leader = it.hung = it.leader()
        with net.cut(*both_ways(HOSTS[leader], [KEEPER])):
            it.until("another leads", another_leads(it, leader))
            it.writes_go_on()
            time.sleep(SESSION_MS / 1000)
        it.hung = None
        healed(it)


@pytest.mark.parametrize("from_leader", [True, False], ids=["from the leader", "to the leader"])
def test_nothing_comes_in_one_direction(networked: Networked, from_leader: bool) -> None:
    it, net = networked
    for _ in range(TIMES):
        leader = it.hung = it.leader()
        ways = [(HOSTS[leader], each) for each in [*others(leader), KEEPER]]
        with net.cut(*(ways if from_leader else [(to, source) for source, to in ways])):
            it.until("another leads", another_leads(it, leader))
            it.writes_go_on()
        it.hung = None
        healed(it)


def test_each_broker_reaches_one_other(networked: Networked) -> None:
    """Around in a ring, so that nobody hears an answer: nothing is acknowledged, and nothing lost."""
    it, net = networked
    for _ in range(TIMES):
        leader = it.leader()
        with net.cut(("one", "three"), ("three", "two"), ("two", "one")):
            it.until("all are alone", lambda: [it.in_sync(each) for each in range(3)] == [1, 1, 1])
            before = high_watermark(it, leader)
            time.sleep(LAG_MS / 1000)
            assert high_watermark(it, leader) == before
        healed(it)
