"""Transactions of a cluster whose brokers die or hang at the worst moment: what was decided is carried out, what was
not is aborted in time."""

from typing import Any

import pytest
import trio
from posix_only import posix_only

from trilogue.broker.broker import Broker
from trilogue.broker.cluster.decisions import NewTopic
from trilogue.broker.cluster.image import Endpoint, broker_json, broker_path
from trilogue.broker.cluster.store import Create, Delete
from trilogue.broker.coordinators.markers import Marker, request_of
from trilogue.broker.coordinators.tests.asking import add, ask, end, find, init, write
from trilogue.broker.coordinators.tests.test_verification import located
from trilogue.broker.partitions.partition import Partition
from trilogue.broker.tests.cluster import Cluster, eventually, run
from trilogue.wire.apis.describe_transactions import DescribeTransactionsRequest
from trilogue.wire.apis.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from trilogue.wire.errors import BrokerError, ErrorCode

REPLICATED = {"transaction_state_log_replication_factor": "3", "transaction_state_log_min_isr": "2"}
NAME = "shop"


async def coordinator(cluster: Cluster) -> Broker:
    """As soon as there is one that lives."""
    anybody = next(iter(cluster.servers.values())).broker
    with trio.fail_after(20):
        while True:
            found = await located(anybody, find(NAME), 2)
            if found.node_id in cluster.servers:
                return cluster.servers[found.node_id].broker
            await trio.sleep(0.01)


async def topic(cluster: Cluster, partitions: int = 1, replicas: int = 3) -> list[Partition]:
    """Its leaders."""
    anybody = next(iter(cluster.servers.values())).broker
    await anybody.controller.create_topic(NewTopic("t", partitions, replicas, {}, {}), (1, 1))
    return [await cluster.leader(index=index, isr=replicas) for index in range(partitions)]


async def begun(cluster: Cluster, *leaders: Partition, timeout_ms: int = 60_000) -> int:
    """Something is written in a transaction of the first generation.  The producer's id."""
    broker = await coordinator(cluster)
    me = await located(broker, init(NAME, timeout_ms), 5)
    places = [each.key for each in leaders]
    answer = await ask(broker, add(NAME, me.producer_id, 0, *places), 3)
    (added,) = answer.results_by_topic_v3_and_below
    assert {each.partition_error_code for each in added.results_by_partition} == {ErrorCode.NONE}
    for leader in leaders:
        request = write(NAME, me.producer_id, 0, 0, leader.key, b"x")
        answer = await ask(cluster.servers[leader.node_id].broker, request, 11)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    return int(me.producer_id)


async def state(broker: Broker) -> str:
    answer = await ask(broker, DescribeTransactionsRequest(transactional_ids=[NAME]), 0)
    return str(answer.transaction_states[0].transaction_state)


async def comes_to(cluster: Cluster, wanted: str) -> None:
    with trio.fail_after(20):
        while await state(await coordinator(cluster)) != wanted:  # noqa: ASYNC110
            await trio.sleep(0.01)


@pytest.mark.parametrize("version", [4, 5], ids=["first generation", "second"])
def test_what_was_decided_is_carried_out_by_the_next_coordinator(version: int):
    async def story(cluster: Cluster) -> None:
        leaders = await topic(cluster, partitions=3)
        producer = await begun(cluster, *leaders)
        first = await coordinator(cluster)
        first.transactions.send = lambda message: None  # it dies between its decision and the markers
        assert (await ask(first, end(NAME, producer, 0, True), version)).error_code == ErrorCode.NONE
        assert await state(first) == "PrepareCommit"
        await cluster.kill(first.node_id)

        await comes_to(cluster, "CompleteCommit")
        for index in range(3):
            leader = await cluster.leader(index=index)
            await eventually(lambda leader=leader: leader.last_stable_offset == leader.log.end_offset == 2)

    run(story, **REPLICATED)


def test_what_was_left_open_is_aborted_in_time_by_the_next_coordinator():
    async def story(cluster: Cluster) -> None:
        (leader,) = await topic(cluster)
        begun_at = trio.current_time()
        await begun(cluster, leader, timeout_ms=800)
        await cluster.kill((await coordinator(cluster)).node_id)
        await comes_to(cluster, "CompleteAbort")
        assert 0.8 <= trio.current_time() - begun_at < 5
        leader = await cluster.leader()
        await eventually(lambda: leader.last_stable_offset == leader.log.end_offset == 2)

    run(story, **REPLICATED)


def test_a_marker_waits_until_somebody_leads_its_partition():
    async def story(cluster: Cluster) -> None:
        leaders = await topic(cluster, partitions=3, replicas=1)
        first = await coordinator(cluster)
        alone = next(each for each in leaders if each.node_id != first.node_id)
        producer = await begun(cluster, alone)
        await cluster.kill(alone.node_id)
        assert (await ask(first, end(NAME, producer, 0, True), 4)).error_code == ErrorCode.NONE
        await trio.sleep(0.1)
        assert await state(first) == "PrepareCommit"
        await cluster.start(alone.node_id)
        await comes_to(cluster, "CompleteCommit")
        again = await cluster.leader(index=alone.index)
        assert again.last_stable_offset == again.log.end_offset == 2

    run(story, **REPLICATED)


def test_a_leader_that_hangs_holds_up_its_own_markers_only():
    async def story(cluster: Cluster) -> None:
        leaders = await topic(cluster, partitions=3, replicas=1)
        first = await coordinator(cluster)
        others = [each for each in leaders if each.node_id != first.node_id]
        producer = await begun(cluster, *others)
        real, wakes = first.inter_broker, trio.Event()

        async def hung(node_id: int, request: Any, version: int, answer: Any) -> Any:
            if node_id == others[0].node_id:
                await wakes.wait()
            return await real(node_id, request, version, answer)

        first.inter_broker = hung
        assert (await ask(first, end(NAME, producer, 0, True), 4)).error_code == ErrorCode.NONE
        await eventually(lambda: others[1].log.end_offset == 2)
        assert (await state(first), others[0].log.end_offset) == ("PrepareCommit", 1)
        wakes.set()
        await comes_to(cluster, "CompleteCommit")
        assert others[0].log.end_offset == 2

    run(story, **REPLICATED)


@posix_only("the gate needs epoll, and tasks do not receive while they wait")
def test_a_marker_does_not_wait_until_the_one_before_is_with_all_replicas():
    async def story(cluster: Cluster) -> None:
        (leader,) = await topic(cluster)
        other = cluster.servers[next(each for each in cluster.ids if each != leader.node_id)].broker
        for server in cluster.servers.values():
            server.broker.followers.pause()
        answered: list[int] = []

        async def bring(producer: int) -> None:
            request = request_of(Marker(producer, 0, True, 0, 1), frozenset({leader.key}))
            answer = await other.inter_broker(leader.node_id, request, 1, WriteTxnMarkersResponse)
            answered.append(answer.markers[0].producer_id)

        async with trio.open_nursery() as nursery:
            for producer in (1, 2):
                nursery.start_soon(bring, producer)
            await eventually(lambda: leader.log.end_offset == 2)
            assert answered == []
            for server in cluster.servers.values():
                server.broker.followers.go_on()
        assert sorted(answered) == [1, 2]

    run(story)


def test_who_hangs_is_waited_for_until_it_is_given_up():
    async def story(cluster: Cluster) -> None:
        broker = cluster.servers[1].broker
        (silent,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        endpoint = Endpoint("PLAINTEXT", "127.0.0.1", silent.socket.getsockname()[1])
        session = broker.view.session
        await session.commit([Create(broker_path(9), broker_json([endpoint], None, [], clean_epoch=-1))])
        await eventually(lambda: 9 in broker.image.brokers)
        heard: list[ErrorCode] = []

        async def asking() -> None:
            with pytest.raises(BrokerError) as refused:
                await broker.inter_broker(9, WriteTxnMarkersRequest(markers=[]), 1, WriteTxnMarkersResponse)
            heard.append(refused.value.code)

        async with silent, trio.open_nursery() as nursery:
            nursery.start_soon(asking)
            await trio.sleep(0.05)
            assert heard == []
            await session.commit([Delete(broker_path(9))])
            await eventually(lambda: heard == [ErrorCode.NETWORK_EXCEPTION], seconds=5)

    run(story)
