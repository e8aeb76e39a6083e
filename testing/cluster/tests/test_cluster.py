"""Several brokers for a test: what can be done to them, and what clients and the others then see."""

import time

import pytest
from kafka import KafkaConsumer, KafkaProducer

from trilogue.broker.tests.running import Raw
from trilogue.testing import Cluster, ClusterError, NotRunning
from trilogue.testing.cluster import nodes
from trilogue.testing.tests.asking import FETCH, a_produce, create, fetch, produce
from trilogue.wire.apis.fetch import FetchRequest, FetchResponse
from trilogue.wire.apis.metadata import MetadataRequest, MetadataResponse
from trilogue.wire.apis.produce import ProduceResponse
from trilogue.wire.errors import ErrorCode
from trilogue.wire.frame import write_request

ORDERS = ("orders", 0)
ALL = {1, 2, 3}


@pytest.fixture
def cluster():
    with Cluster(offsets_topic_num_partitions=3, transaction_state_log_num_partitions=3) as cluster:
        with Raw(cluster[1].server) as raw:
            create(raw, "orders", replicas=3)
        yield cluster


def written(cluster, broker, acks=-1):
    with Raw(cluster[broker].server) as raw:
        answer = raw.ask(a_produce(ORDERS, acks=acks), 9, ProduceResponse)
        return answer.responses[0].partition_responses[0].error_code


def ends(cluster):
    """How far the log is on each broker that runs."""
    return [each.server.broker.replicas.find(*ORDERS).log.end_offset for each in cluster if each.runs]


def test_three_are_up_in_half_a_second():
    times = []
    for _ in range(3):
        began = time.perf_counter()
        with Cluster():
            times.append(time.perf_counter() - began)
    assert min(times) < 0.5


def test_what_is_acknowledged_is_on_all_three(cluster):
    assert written(cluster, cluster.leader_of("orders")) == 0
    assert ends(cluster) == [1, 1, 1]
    assert cluster.in_sync("orders") == ALL


def test_clients_are_told_of_all_brokers(cluster):
    with Raw(cluster[2].server) as raw:
        known = raw.ask(MetadataRequest(topics=[]), 9, MetadataResponse).brokers

    assert {f"{each.host}:{each.port}" for each in known} == set(cluster.bootstrap.split(","))


def test_another_leads_when_the_leader_is_killed_and_it_comes_back_to_its_address(cluster):
    leader = cluster.leader_of("orders")
    written(cluster, leader)
    address = cluster[leader].bootstrap

    cluster.kill(leader)
    other = cluster.leader_of("orders")
    assert other != leader
    assert cluster.in_sync("orders") == ALL - {leader}
    assert written(cluster, other) == 0
    cluster.restart(leader)

    assert cluster.in_sync("orders", wait_for=ALL) == ALL
    assert cluster[leader].bootstrap == address
    assert ends(cluster) == [2, 2, 2]


def test_who_is_killed_closes_nothing_and_who_is_stopped_does(cluster):
    def was_clean(broker):
        return cluster[broker].server.broker.replicas.directories[0].was_clean

    cluster.stop(2)
    cluster.restart(2)
    assert was_clean(2)
    cluster.kill(2)
    cluster.restart(2)
    assert not was_clean(2)


def test_who_is_stopped_hands_over_before_it_ends(cluster):
    leader = cluster.leader_of("orders")
    with Raw(cluster[leader % 3 + 1].server) as raw:
        cluster.stop(leader)
        answer = raw.ask(MetadataRequest(topics=[MetadataRequest.Topic(name="orders")]), 9, MetadataResponse)
    assert answer.topics[0].partitions[0].leader_id in ALL - {leader}


def test_a_restart_of_a_broker_that_runs_stops_it_first(cluster):
    before = cluster[2].server
    cluster.restart(2)
    assert before.stopped.is_set()
    assert cluster[2].server is not before


def test_a_broker_that_hangs_loses_its_place_and_answers_when_it_goes_on(cluster):
    leader = cluster.leader_of("orders")
    with Raw(cluster[leader].server) as raw:
        cluster.pause(leader)
        assert cluster.leader_of("orders") != leader
        raw.send(b"".join(write_request(a_produce(ORDERS), 9, 1, "raw")))
        raw.sock.settimeout(0.1)
        with pytest.raises(TimeoutError):
            raw.receive()
        raw.sock.settimeout(10)
        assert written(cluster, cluster.leader_of("orders")) == 0

        cluster.resume(leader)

        assert raw.receive()
        assert cluster.in_sync("orders", wait_for=ALL) == ALL
    assert len(set(ends(cluster))) == 1


def test_what_a_paused_leader_took_for_itself_is_cut_off_again(cluster):
    leader = cluster.leader_of("orders")
    follower, other = sorted(ALL - {leader})
    cluster.partition(leader, follower)
    cluster.partition(leader, other)
    assert written(cluster, leader, acks=1) == 0
    cluster.pause(leader)
    assert written(cluster, cluster.leader_of("orders")) == 0

    cluster.heal()

    cluster.in_sync("orders", wait_for=ALL)
    assert ends(cluster) == [1, 1, 1]


def test_brokers_that_cannot_reach_each_other_are_not_in_sync(cluster):
    leader = cluster.leader_of("orders")
    follower = leader % 3 + 1
    cluster.partition(leader, follower)
    assert written(cluster, leader) == 0
    cluster.in_sync("orders", wait_for=ALL - {follower})

    cluster.heal()

    assert cluster.in_sync("orders", wait_for=ALL) == ALL
    assert ends(cluster) == [1, 1, 1]


def test_what_a_follower_waits_for_does_not_reach_it_once_it_is_cut_off(cluster):
    leader = cluster.leader_of("orders")
    follower = leader % 3 + 1
    for _ in range(5):  # its fetch waits at the leader when the cut comes
        cluster.heal()
        cluster.in_sync("orders", wait_for=ALL)
        before = ends(cluster)[follower - 1]
        cluster.partition(follower, leader)
        written(cluster, leader, acks=1)
        assert ends(cluster)[follower - 1] == before


def test_a_slow_broker_is_late_for_everybody(cluster):
    leader = cluster.leader_of("orders")
    cluster.slow(leader, 0.2)
    began = time.monotonic()
    assert written(cluster, leader, acks=1) == 0
    assert time.monotonic() - began >= 0.2

    cluster.heal()

    began = time.monotonic()
    assert written(cluster, leader, acks=1) == 0
    assert time.monotonic() - began < 0.2


def test_troubles_outlive_a_restart(cluster):
    leader = cluster.leader_of("orders")
    follower = leader % 3 + 1
    cluster.partition(leader, follower)
    cluster.restart(follower)
    written(cluster, leader, acks=1)
    assert ends(cluster)[follower - 1] == 0
    cluster.heal()
    cluster.in_sync("orders", wait_for=ALL)


def test_a_leader_is_moved_to_whom_the_test_says(cluster):
    for to in (2, 3, 1, 1):
        cluster.move_leader("orders", to=to)
        assert cluster.leader_of("orders") == to
        assert written(cluster, to) == 0
    cluster.kill(2)
    with pytest.raises(ClusterError, match="broker 2 does not run"):
        cluster.move_leader("orders", to=2)


def test_who_is_not_in_sync_does_not_get_to_lead(cluster):
    leader = cluster.leader_of("orders")
    follower = leader % 3 + 1
    cluster.partition(leader, follower)
    written(cluster, leader, acks=1)
    cluster.in_sync("orders", wait_for=ALL - {follower})
    with pytest.raises(ClusterError, match=f"broker {follower} is not in sync with orders-0"):
        cluster.move_leader("orders", to=follower)


def test_faults_are_of_one_broker_and_meet_clients_only(cluster):
    leader = cluster.leader_of("orders")
    cluster[leader].faults.on("Fetch").answer("NOT_LEADER_OR_FOLLOWER")

    assert written(cluster, leader) == 0  # followers go on fetching
    with Raw(cluster[leader].server) as raw:
        assert fetch(raw, ORDERS)[ORDERS].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    for other in ALL - {leader}:
        assert len(cluster[other].faults) == 0


def test_the_history_is_of_clients_and_not_of_brokers(cluster):
    leader = cluster.leader_of("orders")
    with cluster[leader].history.recording() as history, Raw(cluster[leader].server) as raw:
        produce(raw, ORDERS)
        whole = FetchRequest(max_wait_ms=600, min_bytes=1, topics=[])
        raw.ask(whole, FETCH, FetchResponse)
        assert [each.api for each in history] == ["Produce", "Fetch"]


def test_reset_brings_everybody_back_and_forgets_everything(cluster):
    leader = cluster.leader_of("orders")
    cluster.kill(leader)
    cluster.pause(leader % 3 + 1)
    cluster[leader].faults.on("Produce").drop()

    cluster.reset()

    assert [each.runs for each in cluster] == [True] * 3
    assert len(cluster[leader].faults) == 0
    with Raw(cluster[leader].server) as raw:
        assert raw.ask(MetadataRequest(topics=None), 9, MetadataResponse).topics == []
        create(raw, "orders", replicas=3)
    assert cluster.in_sync("orders", wait_for=ALL) == ALL
    assert written(cluster, cluster.leader_of("orders")) == 0


def test_stock_clients_go_on_while_leaders_are_killed(cluster):
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, acks="all", retry_backoff_ms=20)
    try:
        for number in range(30):
            if number % 10 == 5:
                leader = cluster.leader_of("orders")
                cluster.kill(leader)
                cluster.restart(leader)
                cluster.in_sync("orders", wait_for=ALL)
            producer.send("orders", b"%d" % number).get(20)
    finally:
        producer.close()
    consumer = KafkaConsumer("orders", bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest")
    try:
        found = [next(consumer).value for _ in range(30)]
    finally:
        consumer.close()
    assert found == [b"%d" % number for number in range(30)]


# -- what is said ----------------------------------------------------------------------------------


def test_what_cannot_be_is_said(cluster, monkeypatch):
    cluster.pause(1)
    cluster.kill(3)
    for asked, said in (
        (lambda: cluster.kill(4), "there is no broker 4: choose among 1, 2, 3"),
        (lambda: cluster.stop(3), r"broker 3 does not run: `restart\(3\)` first"),
        (lambda: cluster.stop(1), r"broker 1 hangs and hears nothing: `resume\(1\)` or `kill\(1\)`"),
        (lambda: cluster.partition(2, 2), "two brokers are parted, not one from itself"),
        (lambda: cluster.slow(2, -1), "a broker is late by some time, not by -1 s"),
    ):
        with pytest.raises(ClusterError, match=said):
            asked()
    monkeypatch.setattr(nodes, "PATIENCE_SECONDS", 0.05)
    with pytest.raises(ClusterError, match="nobody leads nowhere-0, and"):
        cluster.leader_of("nowhere")
    with pytest.raises(ClusterError, match=r"orders-0 has not \[1, 2, 3\] in sync but \[2\], and"):
        cluster.in_sync("orders", wait_for=ALL)
    cluster.kill(1)
    cluster.kill(2)
    with pytest.raises(ClusterError, match="no broker runs"):
        cluster.leader_of("orders")


def test_who_asks_too_early_or_too_late_hears_so():
    cluster = Cluster(1)
    with pytest.raises(NotRunning, match="has not been started"):
        cluster.bootstrap  # noqa: B018
    with cluster:
        assert cluster.bootstrap
        with pytest.raises(RuntimeError, match="running already"):
            cluster.start()
    with pytest.raises(NotRunning, match="has ended"):
        cluster.kill(1)
    with cluster:
        assert cluster[1].runs
    with pytest.raises(KeyError, match="there is no broker 2"):
        cluster[2]
    with pytest.raises(ValueError, match="1 to 9 brokers, not 0"):
        Cluster(0)
