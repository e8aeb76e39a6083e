"""Partitions move from broker to broker while they are written to; everything that was acknowledged moves with them."""

import re
from pathlib import Path

import pytest
import trio
import trio.testing

from trilogue.broker.cluster.decisions import NewTopic
from trilogue.broker.names import OFFSETS_TOPIC
from trilogue.broker.requests.seams import led_partition
from trilogue.broker.security.operations import Operation
from trilogue.broker.tests.cluster import Cluster, eventually, run
from trilogue.storage.tests.making import batch
from trilogue.wire.errors import BrokerError, ErrorCode

NOW = 1_700_000_000_000


async def make(cluster: Cluster, *replicas: tuple[int, ...], name: str = "t", **configs: str) -> None:
    given = {each.replace("_", "."): value for each, value in configs.items()}
    new = NewTopic(name, -1, -1, dict(enumerate(replicas)), given)
    await some(cluster).controller.create_topic(new, (1, 1))


def some(cluster: Cluster):
    return next(iter(cluster.servers.values())).broker


async def move(cluster: Cluster, target: tuple[int, ...] | None, index: int = 0, name: str = "t") -> None:
    assert await some(cluster).controller.reassign(name, [(index, target)], may_resize=True) == [None]


async def moved(cluster: Cluster, *replicas: int, index: int = 0, name: str = "t") -> None:
    """Returns when every broker knows that it is there, and on no other way."""
    await eventually(
        lambda: all(
            (state := server.broker.image.partition(name, index)).replicas == replicas and not state.moves
            for server in cluster.servers.values()
        )
    )


async def write(cluster: Cluster, *values: bytes) -> None:
    leader = await cluster.leader()
    end = leader.append(batch(*values), NOW).last_offset + 1
    await leader.committed(end, trio.current_time() + 10)


def content(cluster: Cluster, node_id: int) -> list[tuple[int, bytes]]:
    log = cluster.partition(node_id).log
    return [
        (record.offset, bytes(record.value or b""))
        for each in log.batches(log.start_offset)
        for record in each.records()
    ]


def holders(cluster: Cluster, topic: str = "t", index: int = 0) -> list[int]:
    return [each for each, server in cluster.servers.items() if server.broker.replicas.find(topic, index)]


def folders(cluster: Cluster, node_id: int) -> list[str]:
    """Of the topic, without what is drawn in their names."""
    home = Path(cluster.servers[node_id].broker.replicas.directories[0].path)
    return [re.sub(r"\.[0-9a-f]{32}", "", each.name) for each in home.glob("t-*")]


def test_a_partition_moves_with_everything_in_it_and_leaves_nothing_behind():
    async def story(cluster: Cluster) -> None:
        await make(cluster, (1, 2))
        await write(cluster, b"a", b"b")
        epoch = cluster.partition(1).leader_epoch

        await move(cluster, (3, 4))
        await moved(cluster, 3, 4)
        leader = await cluster.leader(isr=2)
        await write(cluster, b"c")

        assert leader.node_id == 3
        assert leader.leader_epoch == epoch + 1
        assert holders(cluster) == [3, 4]
        assert content(cluster, 3) == content(cluster, 4) == [(0, b"a"), (1, b"b"), (2, b"c")]
        assert folders(cluster, 1) == ["t-0-delete"]
        assert folders(cluster, 3) == ["t-0"]

    run(story, count=4)


def test_a_replica_that_is_added_while_there_is_no_other_is_waited_for():
    """Who leads alone has nobody to look after, and from one moment to the next he has."""

    async def story(cluster: Cluster) -> None:
        await make(cluster, (1,), min_insync_replicas="2")
        await write(cluster, b"a")
        cluster.servers[2].broker.followers.pause()
        await move(cluster, (1, 2))
        await eventually(lambda: cluster.partition(1).state.adding == (2,))
        with pytest.raises(BrokerError) as refused:
            await write(cluster, b"refused")
        assert refused.value.code == ErrorCode.NOT_ENOUGH_REPLICAS

        cluster.servers[2].broker.followers.go_on()
        await moved(cluster, 1, 2)
        await write(cluster, b"b")
        assert content(cluster, 2) == [(0, b"a"), (1, b"b")]
        assert cluster.partition(1).leader_epoch == 0, "nobody has left"

    run(story)


def test_records_are_written_all_the_way():
    async def story(cluster: Cluster) -> None:
        await make(cluster, (1, 2), min_insync_replicas="2")
        written: list[bytes] = []
        codes = set[int]()
        done = trio.Event()

        async def go_on() -> None:
            while not done.is_set():
                value = b"%d" % len(written)
                try:
                    await write(cluster, value)
                except BrokerError as error:
                    codes.add(error.code)
                    # It may be there all the same: it is looked for, as a broker looks for a producer's next attempt.
                    leader = await cluster.leader()
                    if value not in [each for _, each in content(cluster, leader.node_id)]:
                        continue
                written.append(value)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(go_on)
            for target in ((3, 4), (2, 3), (4, 1), (1, 2)):
                await move(cluster, target)
                await moved(cluster, *target)
            done.set()
        await cluster.leader(isr=2)
        await eventually(lambda: content(cluster, 1) == content(cluster, 2))
        assert [value for _, value in content(cluster, 1)] == written
        assert codes <= {ErrorCode.NOT_LEADER_OR_FOLLOWER}
        assert holders(cluster) == [1, 2]

    run(story, count=4)


def test_who_waits_at_a_broker_that_leaves_hears_that_another_leads():
    async def story(cluster: Cluster) -> None:
        await make(cluster, (1, 2))
        leader = await cluster.leader(isr=2)
        cluster.servers[2].broker.followers.pause()
        end = leader.append(batch(b"a"), NOW).last_offset + 1
        codes = []

        async def wait() -> None:
            with pytest.raises(BrokerError) as refused:
                await leader.committed(end, trio.current_time() + 10)
            codes.append(refused.value.code)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked(0.01)
            await move(cluster, (3,))
        await moved(cluster, 3)
        assert codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
        with pytest.raises(BrokerError) as refused:
            led_partition(cluster.servers[1].broker, None, Operation.READ, "t", 0)
        assert refused.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    run(story)


def test_who_waits_at_a_leader_that_stays_hears_nothing_of_the_move():
    async def story(cluster: Cluster) -> None:
        await make(cluster, (1, 2))
        leader = await cluster.leader(isr=2)
        cluster.servers[2].broker.followers.pause()
        epoch = leader.leader_epoch
        end = leader.append(batch(b"a"), NOW).last_offset + 1

        async with trio.open_nursery() as nursery:
            nursery.start_soon(leader.committed, end, trio.current_time() + 10, epoch)
            await trio.testing.wait_all_tasks_blocked(0.01)
            await move(cluster, (1, 3))
        assert leader.leader_epoch == epoch + 1
        await leader.committed(end, trio.current_time() + 10, epoch)

    run(story)


def test_a_target_that_is_gone_is_waited_for_and_the_next_controller_goes_on():
    async def story(cluster: Cluster) -> None:
        await make(cluster, (1, 2))
        await write(cluster, b"a")
        await cluster.kill(4)
        await move(cluster, (3, 4))
        await eventually(lambda: cluster.partition(1).state.isr == (3, 1, 2))
        first = some(cluster).image.controller
        await cluster.kill(first)
        await eventually(lambda: some(cluster).image.controller not in (-1, first))
        assert some(cluster).image.partition("t", 0).removing == (1, 2)

        await cluster.start(4)
        await moved(cluster, 3, 4)
        assert content(cluster, 3) == content(cluster, 4) == [(0, b"a")]
        await cluster.start(first)
        assert holders(cluster) == [3, 4]

    run(story, count=4)


def test_a_move_that_is_stopped_leaves_everything_as_it_was():
    async def story(cluster: Cluster) -> None:
        await make(cluster, (1, 2))
        await write(cluster, b"a")
        cluster.servers[3].broker.followers.pause()
        await move(cluster, (3, 2))
        await eventually(lambda: holders(cluster) == [1, 2, 3])

        await move(cluster, None)
        await moved(cluster, 2, 1)
        await write(cluster, b"b")

        assert holders(cluster) == [1, 2]
        assert content(cluster, 1) == content(cluster, 2) == [(0, b"a"), (1, b"b")]
        cluster.servers[3].broker.followers.go_on()
        await move(cluster, (3,))
        await moved(cluster, 3)
        assert content(cluster, 3) == [(0, b"a"), (1, b"b")]

    run(story)


def test_what_has_moved_away_while_its_broker_was_not_there_is_put_aside():
    async def story(cluster: Cluster) -> None:
        await make(cluster, (1, 2))
        await write(cluster, b"a")
        await cluster.stop(2)
        await move(cluster, (1, 3))
        await moved(cluster, 1, 3)

        await cluster.start(2)
        assert holders(cluster) == [1, 3]
        assert folders(cluster, 2) == ["t-0-stray"]
        await move(cluster, (1, 2))
        await moved(cluster, 1, 2)
        assert content(cluster, 2) == [(0, b"a")]

    run(story)


def test_who_looks_after_groups_moves_with_its_partition():
    async def story(cluster: Cluster) -> None:
        await make(cluster, (1,), name=OFFSETS_TOPIC)
        await eventually(lambda: cluster.servers[1].broker.groups.shards())
        await move(cluster, (2,), name=OFFSETS_TOPIC)
        await moved(cluster, 2, name=OFFSETS_TOPIC)

        assert cluster.servers[1].broker.groups.shards() == []
        assert [each.active for each in cluster.servers[2].broker.groups.shards()] == [True]

    run(story)


async def throttled(cluster: Cluster, side: str, rate: int, name: str = "t") -> None:
    """All replicas of a topic, on all brokers, as leaders or as followers."""
    settings = {
        ("topics", name): {f"{side}.replication.throttled.replicas": "*"},
        ("brokers", "<default>"): {f"{side}.replication.throttled.rate": str(rate)},
    }
    await some(cluster).controller.alter_configs(lambda image: settings)


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_who_is_not_in_sync_is_held_back_and_the_others_are_not(side):
    async def story(cluster: Cluster) -> None:
        await make(cluster, (1, 2))
        await make(cluster, (1, 2), name="u")
        for _ in range(20):
            await write(cluster, bytes(1000))
        await throttled(cluster, side, 1)
        begun = trio.current_time()
        await move(cluster, (1, 2, 3))
        await move(cluster, (1, 2, 3), name="u")

        await moved(cluster, 1, 2, 3, name="u")
        new = cluster.partition(3)
        await eventually(lambda: new.log.end_offset > 0)
        await write(cluster, b"for those in sync")
        await write(cluster, b"once more")
        await trio.sleep(0.2)
        assert new.log.end_offset < 22, "the first bytes come at once, and are too many"
        assert cluster.partition(1).state.isr == (1, 2)
        assert cluster.partition(1).high_watermark == 22
        assert trio.current_time() - begun < 5

        await throttled(cluster, side, 1_000_000)
        await moved(cluster, 1, 2, 3)
        assert content(cluster, 3) == content(cluster, 1)

    run(story, replica_fetch_max_bytes="3000", replica_fetch_response_max_bytes="3000")
