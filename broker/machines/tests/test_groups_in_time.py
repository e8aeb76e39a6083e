"""Groups in a whole broker whose clock jumps: what the pure tests assume of the runner is so."""

import contextlib
import inspect
from functools import partial

import trio
from trio.testing import MockClock

from trilogue.broker.cluster.decisions import NewTopic
from trilogue.broker.cluster.local import LocalStore
from trilogue.broker.config import DEVELOPMENT, BrokerConfig
from trilogue.broker.groups.subscription import write_assignment
from trilogue.broker.groups.tests.stage import subscription
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import APIS
from trilogue.broker.server import serve
from trilogue.broker.tests.jumping import NO_THREADS
from trilogue.wire.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from trilogue.wire.apis.describe_groups import DescribeGroupsRequest
from trilogue.wire.apis.find_coordinator import FindCoordinatorRequest
from trilogue.wire.apis.heartbeat import HeartbeatRequest
from trilogue.wire.apis.join_group import JoinGroupRequest
from trilogue.wire.apis.list_groups import ListGroupsRequest
from trilogue.wire.apis.offset_commit import OffsetCommitRequest
from trilogue.wire.apis.offset_fetch import OffsetFetchRequest
from trilogue.wire.apis.sync_group import SyncGroupRequest
from trilogue.wire.errors import ErrorCode


class Asker:
    """Puts requests to the handlers, as a connection would."""

    def __init__(self, broker):
        self._broker = broker

    async def __call__(self, request, version):
        peer = Peer("PLAINTEXT", "127.0.0.1", ("127.0.0.1", 9092))
        peer.version, peer.client_id = version, "c"
        answer = APIS[request.api_key].handler(self._broker, request, peer)
        return await answer if inspect.iscoroutine(answer) else answer


@contextlib.asynccontextmanager
async def running(folder, **settings):
    given = {name.replace("_", "."): value for name, value in settings.items()}
    config = {**DEVELOPMENT, **NO_THREADS, "listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(folder), **given}
    folder.mkdir(exist_ok=True)
    store = LocalStore(folder / "metadata.sqlite", synced=False)
    async with trio.open_nursery() as nursery:
        server = await nursery.start(partial(serve, BrokerConfig.parse(config), store=store))
        broker = server.broker
        ask = Asker(broker)
        await ask(FindCoordinatorRequest(key="g", key_type=0), 3)
        if "t" not in broker.image.topics:
            await broker.controller.create_topic(NewTopic("t", 2, 1, {}, {}), (1, 1))
        yield ask
        server.stop()
    store.close()


def in_jumping_time(story, *arguments):
    trio.run(story, *arguments, clock=MockClock(autojump_threshold=0))


def join(member="", session_ms=10_000, group="g", metadata=b""):
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=60_000,
        member_id=member,
        protocol_type="consumer",
        protocols=[JoinGroupRequest.Protocol(name="range", metadata=metadata)],
    )


def sync(member, generation, group="g", **assignments):
    given = [SyncGroupRequest.Assignment(member_id=each, assignment=it) for each, it in assignments.items()]
    return SyncGroupRequest(group_id=group, generation_id=generation, member_id=member, assignments=given)


def heartbeat(member, generation, group="g"):
    return HeartbeatRequest(group_id=group, generation_id=generation, member_id=member)


def commit(offset):
    partition = OffsetCommitRequest.Topic.Partition(partition_index=0, committed_offset=offset, committed_metadata="")
    topic = OffsetCommitRequest.Topic(name="t", partitions=[partition])
    return OffsetCommitRequest(group_id="g", topics=[topic])


def test_a_silent_member_is_gone_to_the_second_and_the_others_begin_anew(tmp_path):
    in_jumping_time(silent_member, tmp_path)


async def silent_member(folder):
    async with running(folder) as ask:
        first = await ask(join(), 3)
        await ask(sync(first.member_id, 1), 3)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, join(), 3)
            await trio.testing.wait_all_tasks_blocked()
            assert (await ask(heartbeat(first.member_id, 1), 3)).error_code == ErrorCode.REBALANCE_IN_PROGRESS
            again = await ask(join(first.member_id), 3)
        assert (again.generation_id, len(again.members)) == (2, 2)
        await ask(sync(first.member_id, 2), 3)  # the other one never asks for its part, nor heartbeats

        for seconds, expected in ((5, ErrorCode.NONE), (4.9, ErrorCode.NONE), (0.2, ErrorCode.REBALANCE_IN_PROGRESS)):
            await trio.sleep(seconds)
            assert (await ask(heartbeat(first.member_id, 2), 3)).error_code == expected
        alone = await ask(join(first.member_id), 3)
        assert (alone.generation_id, len(alone.members)) == (3, 1)


def test_a_new_group_waits_its_delay_and_no_longer(tmp_path):
    in_jumping_time(delay, tmp_path)


async def delay(folder):
    async with running(folder, group_initial_rebalance_delay_ms="3000") as ask:
        begin = trio.current_time()
        await ask(join(), 3)
        assert trio.current_time() - begin == 3


def test_a_consumer_group_loses_who_is_silent(tmp_path):
    in_jumping_time(consumer_group, tmp_path)


async def consumer_group(folder):
    async with running(folder) as ask:
        answer = await ask(
            ConsumerGroupHeartbeatRequest(
                group_id="n",
                member_id="m",
                member_epoch=0,
                rebalance_timeout_ms=1000,
                subscribed_topic_names=["t"],
                topic_partitions=[],
            ),
            1,
        )
        assert answer.assignment.topic_partitions[0].partitions == [0, 1]
        still = ConsumerGroupHeartbeatRequest(group_id="n", member_id="m", member_epoch=answer.member_epoch)
        assert (await ask(still, 1)).assignment is None
        for seconds, expected in ((44.9, "Stable"), (0.2, "Empty")):
            await trio.sleep(seconds)
            groups = (await ask(ListGroupsRequest(), 5)).groups
            assert [each.group_state for each in groups if each.group_id == "n"] == [expected]


def test_from_v5_on_who_asks_for_an_assignment_names_the_protocol(tmp_path):
    in_jumping_time(named_protocol, tmp_path)


async def named_protocol(folder):
    async with running(folder) as ask:
        first = await ask(join(), 3)
        assert (await ask(sync(first.member_id, 1), 5)).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        named = sync(first.member_id, 1)
        named.protocol_type, named.protocol_name = "consumer", "range"
        assert (await ask(named, 5)).error_code == ErrorCode.NONE


def test_a_group_is_upgraded_and_falls_back_when_the_new_member_is_silent(tmp_path):
    in_jumping_time(migration, tmp_path)


async def upgraded(ask, group):
    """A group of a classic member and a new one, `n`: the classic member's id."""
    told = subscription("t")
    first = await ask(join(group=group, metadata=told), 3)
    await ask(sync(first.member_id, 1, group, **{first.member_id: write_assignment({"t": [0, 1]}, 0)}), 3)
    request = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id="n",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    assert (await ask(request, 1)).error_code == ErrorCode.NONE
    return first.member_id


async def migration(folder):
    async with running(folder) as ask:
        member = await upgraded(ask, "m")
        begin = trio.current_time()
        assert (await ask(heartbeat(member, 1, "m"), 3)).error_code == ErrorCode.REBALANCE_IN_PROGRESS
        joined = await ask(join(member, group="m", metadata=subscription("t")), 3)
        assert (await ask(sync(member, joined.generation_id, "m"), 3)).assignment == write_assignment({"t": [0]}, 0)
        for second in range(46):  # a session of the new protocol is 45 seconds
            expected = ErrorCode.NONE if second < 45 else ErrorCode.REBALANCE_IN_PROGRESS
            await trio.sleep_until(begin + second + 0.5)
            assert (await ask(heartbeat(member, joined.generation_id, "m"), 3)).error_code == expected
        alone = await ask(join(member, group="m", metadata=subscription("t")), 3)
        assert (alone.leader, alone.generation_id) == (member, joined.generation_id + 1)


def test_groups_and_offsets_are_loaded_again(tmp_path):
    in_jumping_time(restart, tmp_path)


async def restart(folder):
    async with running(folder) as ask:
        assert (await ask(commit(7), 5)).topics[0].partitions[0].error_code == ErrorCode.NONE
        first = await ask(join(), 3)
        await ask(sync(first.member_id, 1, **{first.member_id: b"mine"}), 3)
    async with running(folder) as ask:
        asked = OffsetFetchRequest(group_id="g", topics=None)
        while (found := await ask(asked, 7)).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:  # noqa: ASYNC110
            await trio.sleep(0.01)
        assert [each.committed_offset for topic in found.topics for each in topic.partitions] == [7]
        assert (await ask(sync(first.member_id, 1), 3)).assignment == b"mine"


def test_while_a_coordinator_loads_it_says_so(tmp_path):
    in_jumping_time(loading, tmp_path)


BATCHES = 2000
"""So many that loading them takes many turns: whoever asks in between is heard."""


async def loading(folder):
    async with running(folder) as ask:
        for offset in range(BATCHES):
            assert (await ask(commit(offset), 5)).topics[0].partitions[0].error_code == ErrorCode.NONE
    async with running(folder) as ask:
        asked = OffsetFetchRequest(group_id="g", topics=None)
        told = [
            (await ask(join(), 3)).error_code,
            (await ask(sync("m", 1), 3)).error_code,
            (await ask(commit(0), 5)).topics[0].partitions[0].error_code,
            (await ask(asked, 7)).error_code,
            (await ask(ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=0), 0)).error_code,
            (await ask(DescribeGroupsRequest(groups=["g"]), 5)).groups[0].error_code,
            (await ask(ListGroupsRequest(), 5)).error_code,
        ]
        assert told == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * len(told)
        alive = await ask(heartbeat("m", 1), 3)
        assert alive.error_code == ErrorCode.NONE, "nobody has to join again because of us"
        while (found := await ask(asked, 7)).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:  # noqa: ASYNC110
            await trio.sleep(0.01)
        assert [each.committed_offset for topic in found.topics for each in topic.partitions] == [BATCHES - 1]
