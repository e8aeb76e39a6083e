"""DeleteRecords is answered when the records are gone on every replica whose broker is there."""

from collections.abc import Awaitable, Callable

import trio

from trilogue.broker.broker import Broker
from trilogue.broker.coordinators.tests.asking import ask
from trilogue.broker.partitions.partition import Partition
from trilogue.broker.tests.cluster import Cluster, eventually, run
from trilogue.broker.tests.test_replication import make, write
from trilogue.wire.apis.delete_records import DeleteRecordsRequest
from trilogue.wire.errors import ErrorCode

Answer = tuple[ErrorCode, int]


async def delete(broker: Broker, offset: int, timeout_ms: int = 20_000) -> Answer:
    Topic = DeleteRecordsRequest.Topic
    wanted = Topic(name="t", partitions=[Topic.Partition(partition_index=0, offset=offset)])
    answer = await ask(broker, DeleteRecordsRequest(topics=[wanted], timeout_ms=timeout_ms), 2)
    (found,) = answer.topics[0].partitions
    return ErrorCode(found.error_code), found.low_watermark


async def five_records(cluster: Cluster) -> tuple[Partition, Broker]:
    """Their leader, and its broker; everybody has them."""
    await make(cluster)
    leader = await cluster.leader(isr=3)
    await write(cluster, *(b"%d" % number for number in range(5)))
    return leader, cluster.servers[leader.node_id].broker


def follower(cluster: Cluster, leader: Partition) -> int:
    return next(each for each in cluster.servers if each != leader.node_id)


async def while_waiting(broker: Broker, leader: Partition, do: Callable[[], Awaitable[None]]) -> Answer:
    """What is answered if this happens after the leader has forgotten and before everybody else has."""
    heard: list[Answer] = []

    async def deleting() -> None:
        heard.append(await delete(broker, 3))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(deleting)
        await eventually(lambda: leader.log.start_offset == 3)
        assert heard == []
        await do()
    return heard[0]


def test_every_replica_has_forgotten_when_it_is_answered():
    async def story(cluster: Cluster) -> None:
        _, broker = await five_records(cluster)
        assert await delete(broker, 3) == (ErrorCode.NONE, 3)
        assert [cluster.partition(each).log.start_offset for each in cluster.servers] == [3, 3, 3]
        assert await delete(broker, -1) == (ErrorCode.NONE, 5)
        assert await delete(broker, 3, timeout_ms=0) == (ErrorCode.NONE, 5)
        assert await delete(broker, 6) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)

    run(story)


def test_a_follower_that_is_too_slow_is_waited_for_as_long_as_was_said():
    async def story(cluster: Cluster) -> None:
        leader, broker = await five_records(cluster)
        late = follower(cluster, leader)
        cluster.servers[late].broker.followers.pause()
        assert await delete(broker, 3, timeout_ms=50) == (ErrorCode.REQUEST_TIMED_OUT, 0)
        assert leader.log.start_offset == 3

        async def it_goes_on() -> None:
            cluster.servers[late].broker.followers.go_on()

        assert await while_waiting(broker, leader, it_goes_on) == (ErrorCode.NONE, 3)
        assert cluster.partition(late).log.start_offset == 3

    run(story)


def test_whoever_is_gone_is_not_waited_for():
    async def story(cluster: Cluster) -> None:
        leader, broker = await five_records(cluster)
        late = follower(cluster, leader)
        cluster.servers[late].broker.followers.pause()
        assert await while_waiting(broker, leader, lambda: cluster.kill(late)) == (ErrorCode.NONE, 3)

    run(story)


def test_who_leads_no_more_says_so():
    async def story(cluster: Cluster) -> None:
        leader, broker = await five_records(cluster)
        cluster.servers[follower(cluster, leader)].broker.followers.pause()

        async def another_leads() -> None:
            leader.become(leader.state._replace(leader=-1, leader_epoch=leader.leader_epoch + 1))

        assert await while_waiting(broker, leader, another_leads) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)

    run(story)
