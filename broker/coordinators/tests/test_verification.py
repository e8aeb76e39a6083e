"""A batch is vouched for by another broker, and its transaction ends before it is written (KIP-890)."""

from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest
import trio

from trilogue.broker.broker import Broker
from trilogue.broker.cluster.decisions import NewTopic
from trilogue.broker.coordinators.tests.asking import add, ask, end, find, init, write
from trilogue.broker.names import OFFSETS_TOPIC
from trilogue.broker.partitions.partition import Partition
from trilogue.broker.tests.cluster import Cluster, eventually, run
from trilogue.wire.apis.add_offsets_to_txn import AddOffsetsToTxnRequest
from trilogue.wire.apis.add_partitions_to_txn import AddPartitionsToTxnRequest
from trilogue.wire.apis.find_coordinator import FindCoordinatorRequest
from trilogue.wire.apis.txn_offset_commit import TxnOffsetCommitRequest
from trilogue.wire.errors import BrokerError, ErrorCode

FIRST, SECOND = 11, 12
"""Versions of Produce, by the generations of transactions."""


class Scene(NamedTuple):
    """A producer whose transactions are looked after by another broker than the one that it writes to."""

    leader: Broker
    coordinator: Broker
    name: str
    producer_id: int
    places: list[tuple[str, int]]
    partitions: list[Partition]

    async def add(self, *places: tuple[str, int]) -> None:
        """As soon as the transaction before is complete."""
        with trio.fail_after(10):
            while True:
                answer = await ask(self.coordinator, add(self.name, self.producer_id, 0, *places), 3)
                (topic,) = answer.results_by_topic_v3_and_below
                codes = {each.partition_error_code for each in topic.results_by_partition}
                if codes == {ErrorCode.NONE}:
                    return
                assert codes == {ErrorCode.CONCURRENT_TRANSACTIONS}
                await trio.sleep(0.01)

    async def write(self, version: int, sequence: int = 0, number: int = 0, epoch: int = 0) -> ErrorCode:
        request = write(self.name, self.producer_id, epoch, sequence, self.places[number], b"x")
        answer = await ask(self.leader, request, version)
        return ErrorCode(answer.responses[0].partition_responses[0].error_code)

    async def end(self, version: int, number: int = 0) -> None:
        """And wait until the marker is there."""
        before = self.partitions[number].log.end_offset
        answer = await ask(self.coordinator, end(self.name, self.producer_id, 0, False), version)
        assert answer.error_code == ErrorCode.NONE
        await eventually(lambda: self.partitions[number].log.end_offset == before + 1)

    def is_stable(self, number: int = 0) -> bool:
        partition = self.partitions[number]
        return partition.last_stable_offset == partition.log.end_offset


async def scene(cluster: Cluster) -> Scene:
    anybody = cluster.servers[1].broker
    await anybody.controller.create_topic(NewTopic("t", 6, 3, {}, {}), (1, 1))
    for name in map(str, range(50)):
        found = await located(anybody, find(name), 2)
        led = [
            ("t", index)
            for index in range(6)
            for leader in [await cluster.leader(index=index, isr=3)]
            if leader.node_id != found.node_id
        ]
        places = [
            each for each in led if anybody.image.partition(*each).leader == anybody.image.partition(*led[0]).leader
        ]
        if len(places) > 1:
            coordinator = cluster.servers[found.node_id].broker
            leader = cluster.servers[anybody.image.partition(*places[0]).leader].broker
            me = await located(coordinator, init(name), 5)
            partitions = [leader.replicas.find(*each) for each in places]
            return Scene(leader, coordinator, name, me.producer_id, places, partitions)
    raise AssertionError("one broker leads everything")


async def located(broker: Broker, request: Any, version: int) -> Any:
    """The answer, as soon as the coordinator is there."""
    with trio.fail_after(10):
        while True:
            answer = await ask(broker, request, version)
            if answer.error_code == ErrorCode.NONE:
                return answer
            await trio.sleep(0.01)


@asynccontextmanager
async def answer_held_back(broker: Broker) -> Any:
    """What the coordinator has said about partitions does not arrive before the end."""
    real, said, arrives = broker.inter_broker, trio.Event(), trio.Event()

    async def slow(node_id: int, request: Any, version: int, answer: Any) -> Any:
        found = await real(node_id, request, version, answer)
        if isinstance(request, AddPartitionsToTxnRequest):
            said.set()
            await arrives.wait()
        return found

    broker.inter_broker = slow
    yield said
    broker.inter_broker = real
    arrives.set()


async def late(
    leader: Broker, write: Callable[[], Awaitable[ErrorCode]], meanwhile: Callable[[], Awaitable[None]]
) -> ErrorCode:
    """What `write` hears if something happens after it was vouched for, and before it is written."""
    heard: list[ErrorCode] = []

    async def writing() -> None:
        heard.append(await write())

    async with trio.open_nursery() as nursery, answer_held_back(leader) as said:
        nursery.start_soon(writing)
        await said.wait()
        await meanwhile()
    return heard[0]


def test_a_batch_of_a_transaction_that_ended_meanwhile_is_refused():
    async def story(cluster: Cluster) -> None:
        at = await scene(cluster)
        await at.add(at.places[0])
        assert await late(at.leader, lambda: at.write(FIRST), lambda: at.end(4)) == ErrorCode.INVALID_TXN_STATE
        await eventually(at.is_stable)
        assert at.partitions[0].log.end_offset == 1

    run(story)


def test_in_the_second_generation_its_epoch_is_over():
    async def story(cluster: Cluster) -> None:
        at = await scene(cluster)
        assert await late(at.leader, lambda: at.write(SECOND), lambda: at.end(5)) == ErrorCode.INVALID_PRODUCER_EPOCH
        await eventually(at.is_stable)
        assert at.partitions[0].log.end_offset == 1

    run(story)


def test_the_next_transactions_guard_is_another():
    """The marker came, and the producer has begun anew: what was vouched for before is not part of that."""

    async def story(cluster: Cluster) -> None:
        at = await scene(cluster)
        await at.add(at.places[0])

        async def next_transaction() -> None:
            await at.end(4)
            await at.add(at.places[1])

        assert await late(at.leader, lambda: at.write(FIRST), next_transaction) == ErrorCode.INVALID_TXN_STATE
        assert await at.write(FIRST, number=1) == ErrorCode.NONE

    run(story)


def test_in_the_second_generation_a_batch_may_wait_for_the_marker_of_the_transaction_before():
    """Which has the epoch of the next, and comes while the coordinator is being asked about that."""

    async def story(cluster: Cluster) -> None:
        at = await scene(cluster)
        assert await at.write(SECOND) == ErrorCode.NONE
        markers, go = at.coordinator.inter_broker, trio.Event()

        async def held_back(*given: Any) -> Any:
            await go.wait()
            return await markers(*given)

        at.coordinator.inter_broker = held_back
        assert (await ask(at.coordinator, end(at.name, at.producer_id, 0, True), 5)).error_code == ErrorCode.NONE
        heard: list[ErrorCode] = []

        async def next_transaction() -> None:
            heard.append(await at.write(SECOND, epoch=1))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(next_transaction)
            await trio.sleep(0.03)
            assert heard == []
            go.set()
        assert heard == [ErrorCode.NONE]
        assert at.partitions[0].log.producer(at.producer_id).transaction_start == 2

    run(story, add_partitions_to_txn_retry_backoff_max_ms="10000")


def test_so_is_a_batch_that_needed_no_asking_and_waited_for_another():
    """Of two partitions in one request the transaction was open in the first only."""

    async def story(cluster: Cluster) -> None:
        at = await scene(cluster)
        await at.add(*at.places[:2])
        assert await at.write(FIRST) == ErrorCode.NONE
        first, second = (write(at.name, at.producer_id, 0, 1 - number, at.places[number], b"x") for number in (0, 1))
        first.topic_data[0].partition_data += second.topic_data[0].partition_data
        heard = []

        async def both() -> ErrorCode:
            answer = await ask(at.leader, first, FIRST)
            heard.extend(ErrorCode(each.error_code) for each in answer.responses[0].partition_responses)
            return heard[0]

        await late(at.leader, both, lambda: at.end(4))
        assert heard == [ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_TXN_STATE]
        await eventually(lambda: at.is_stable(0) and at.is_stable(1))

    run(story)


def test_two_that_were_vouched_for_together_are_both_written():
    """The first of them opens the transaction; the second finds it open."""

    async def story(cluster: Cluster) -> None:
        at = await scene(cluster)
        await at.add(at.places[0])

        async def first() -> None:
            assert at.leader.inter_broker is not at.leader.links
            at.leader.inter_broker = at.leader.links
            assert await at.write(FIRST, sequence=0) == ErrorCode.NONE

        assert await late(at.leader, lambda: at.write(FIRST, sequence=1), first) == ErrorCode.NONE
        assert at.partitions[0].log.end_offset == 2

    run(story)


def test_what_comes_behind_a_batch_that_nobody_could_vouch_for_waits_for_it():
    """Nothing is known of this producer, and so it might begin anywhere; but its first batch will come again."""

    async def story(cluster: Cluster) -> None:
        at = await scene(cluster)
        await at.add(at.places[0])

        async def unreachable(*_: Any) -> Any:
            raise BrokerError(ErrorCode.BROKER_NOT_AVAILABLE)

        at.leader.inter_broker = unreachable
        assert await at.write(FIRST, sequence=0) == ErrorCode.NOT_ENOUGH_REPLICAS
        at.leader.inter_broker = at.leader.links
        assert await at.write(FIRST, sequence=1) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert await at.write(FIRST, sequence=0) == ErrorCode.NONE
        assert await at.write(FIRST, sequence=1) == ErrorCode.NONE

    run(story)


@pytest.mark.parametrize(
    ("committing", "ending", "heard"),
    [(4, 4, ErrorCode.INVALID_TXN_STATE), (5, 5, ErrorCode.INVALID_PRODUCER_EPOCH)],
    ids=["first generation", "second"],
)
def test_offsets_of_a_transaction_that_ended_meanwhile_are_refused(committing: int, ending: int, heard: ErrorCode):
    async def story(cluster: Cluster) -> None:
        at = await scene(cluster)
        anybody, at_home = cluster.servers[1].broker, at.coordinator.node_id
        for group in map(str, range(50)):
            found = await located(anybody, FindCoordinatorRequest(key=group, key_type=0), 2)
            if found.node_id != at_home:
                break
        leader = cluster.servers[found.node_id].broker
        offsets = await committed_log(leader, group)
        if committing < 5:
            adding = AddOffsetsToTxnRequest(
                transactional_id=at.name, producer_id=at.producer_id, producer_epoch=0, group_id=group
            )
            assert (await ask(at.coordinator, adding, 3)).error_code == ErrorCode.NONE
        Topic = TxnOffsetCommitRequest.Topic
        request = TxnOffsetCommitRequest(
            transactional_id=at.name,
            group_id=group,
            producer_id=at.producer_id,
            producer_epoch=0,
            topics=[Topic(name="t", partitions=[Topic.Partition(partition_index=0, committed_offset=7)])],
        )

        async def commit() -> ErrorCode:
            answer = await ask(leader, request, committing)
            return ErrorCode(answer.topics[0].partitions[0].error_code)

        async def over() -> None:
            before = offsets.log.end_offset
            assert (await ask(at.coordinator, end(at.name, at.producer_id, 0, False), ending)).error_code == 0
            await eventually(lambda: offsets.log.end_offset == before + 1)

        assert await late(leader, commit, over) == heard
        await eventually(lambda: offsets.last_stable_offset == offsets.log.end_offset)

    run(story)


async def committed_log(broker: Broker, group: str) -> Partition:
    """Of the group's offsets, on its coordinator."""
    from trilogue.broker.coordinators.lookup import partition_of

    found = broker.replicas.find(OFFSETS_TOPIC, partition_of(broker, OFFSETS_TOPIC, group))
    assert found is not None
    return found
