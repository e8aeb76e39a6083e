"""What is written to a leader is with its followers; who leads, and who is in sync, follows from who is there."""

from dataclasses import replace
from typing import TypeVar

import pytest
import trio
from posix_only import posix_only

from trilogue.broker.cluster.decisions import NewTopic
from trilogue.broker.partitions.partition import Partition
from trilogue.broker.security.brokers import MECHANISM, Identity, claim, proof
from trilogue.broker.tests.cluster import Cluster, eventually, run
from trilogue.client.link import Link, connect
from trilogue.client.tasks import Tasks
from trilogue.client.world import Address
from trilogue.storage.tests.making import batch
from trilogue.wire.apis.fetch import FetchRequest, FetchResponse
from trilogue.wire.apis.metadata import MetadataRequest, MetadataResponse
from trilogue.wire.apis.produce import ProduceRequest, ProduceResponse
from trilogue.wire.apis.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from trilogue.wire.apis.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from trilogue.wire.errors import BrokerError, ErrorCode
from trilogue.wire.schema import Request, Response

NOW = 1_700_000_000_000
R = TypeVar("R", bound=Response)


async def make(cluster: Cluster, replicas: int = 3, partitions: int = 1, **configs: str) -> None:
    given = {name.replace("_", "."): value for name, value in configs.items()}
    server = next(iter(cluster.servers.values()))
    await server.broker.controller.create_topic(NewTopic("t", partitions, replicas, {}, given), (1, 1))


def ends(cluster: Cluster) -> list[int]:
    return [cluster.partition(each).log.end_offset for each in cluster.servers]


def content(cluster: Cluster, node_id: int) -> list[tuple[int, int, bytes]]:
    log = cluster.partition(node_id).log
    return [
        (each.header.partition_leader_epoch, record.offset, bytes(record.value or b""))
        for each in log.batches(log.start_offset)
        for record in each.records()
    ]


async def write(cluster: Cluster, *values: bytes, acks: int = -1) -> None:
    leader = await cluster.leader()
    end = leader.append(batch(*values), NOW, acks=acks).last_offset + 1
    await leader.committed(end, trio.current_time() + 10)


def test_what_is_acknowledged_is_with_every_replica():
    async def story(cluster: Cluster) -> None:
        await make(cluster)
        await write(cluster, b"a", b"b")
        await write(cluster, b"c")

        assert ends(cluster) == [3, 3, 3]
        assert content(cluster, 1) == content(cluster, 2) == content(cluster, 3)
        await eventually(lambda: [cluster.partition(each).high_watermark for each in (1, 2, 3)] == [3, 3, 3])

    run(story)


def test_after_the_leaders_death_another_leads_with_all_that_was_acknowledged():
    async def story(cluster: Cluster) -> None:
        await make(cluster, min_insync_replicas="2")
        await write(cluster, b"a")
        first = await cluster.leader()
        await cluster.kill(first.node_id)

        second = await cluster.leader(isr=2)
        assert second.node_id != first.node_id
        assert second.leader_epoch == first.leader_epoch + 1
        await write(cluster, b"b")
        await cluster.start(first.node_id)
        await cluster.leader(isr=3)
        await write(cluster, b"c")

        assert [value for _, _, value in content(cluster, first.node_id)] == [b"a", b"b", b"c"]
        assert content(cluster, 1) == content(cluster, 2) == content(cluster, 3)

    run(story)


def test_what_was_never_committed_is_cut_off_when_its_leader_comes_back():
    async def story(cluster: Cluster) -> None:
        await make(cluster)
        await write(cluster, b"a")
        first = await cluster.leader()
        # Nobody fetches from here on, and so nobody has what comes.
        for server in cluster.servers.values():
            server.broker.followers.pause()
        first.append(batch(b"lost", b"lost too"), NOW, acks=1)
        await cluster.kill(first.node_id)
        for server in cluster.servers.values():
            server.broker.followers.go_on()
        await write(cluster, b"b")

        await cluster.start(first.node_id)
        await cluster.leader(isr=3)
        assert [value for _, _, value in content(cluster, first.node_id)] == [b"a", b"b"]
        assert content(cluster, 1) == content(cluster, 2) == content(cluster, 3)

    run(story)


def test_with_too_few_in_sync_nothing_is_written_for_all():
    async def story(cluster: Cluster) -> None:
        await make(cluster, min_insync_replicas="2")
        leader = await cluster.leader(isr=3)
        for each in [each for each in (1, 2, 3) if each != leader.node_id]:
            await cluster.kill(each)
        await cluster.leader(isr=1)
        with pytest.raises(BrokerError) as refused:
            leader.append(batch(b"x"), NOW, acks=-1)
        assert refused.value.code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert leader.log.end_offset == 0

    run(story)


def test_who_stops_hands_over_first():
    async def story(cluster: Cluster) -> None:
        await make(cluster, partitions=6)
        for index in range(6):
            await cluster.leader(index=index, isr=3)
        await cluster.stop(2)

        for index in range(6):
            leader = await cluster.leader(index=index, isr=2)
            assert leader.node_id != 2

    run(story)


def test_who_falls_behind_leaves_and_comes_back_when_it_has_caught_up():
    async def story(cluster: Cluster) -> None:
        await make(cluster)
        leader = await cluster.leader(isr=3)
        late = next(each for each in (1, 2, 3) if each != leader.node_id)
        cluster.servers[late].broker.followers.pause()
        leader.append(batch(b"a"), NOW, acks=1)

        await eventually(lambda: late not in leader.state.isr)
        assert leader.high_watermark == 1, "nobody waits for it"
        cluster.servers[late].broker.followers.go_on()
        await cluster.leader(isr=3)
        assert content(cluster, late) == content(cluster, leader.node_id)

    run(story, replica_lag_time_max_ms="200", replica_fetch_wait_max_ms="50")


def test_a_leader_that_refuses_every_fetch_is_named_once(caplog):
    async def story(cluster: Cluster) -> None:
        await make(cluster)
        leader = await cluster.leader(isr=3)
        follower = leader.node_id % 3 + 1
        view = cluster.servers[leader.node_id].broker.view
        image = view.image
        others = {number: info for number, info in image.brokers.items() if number != follower}
        view.image = replace(image, brokers=others)  # the cluster has given it up, and it has not heard
        for _ in range(10):
            await trio.sleep(0.05)
        view.image = image
        await write(cluster, b"a")
        named = [each.getMessage() for each in caplog.records if "cannot be followed" in each.getMessage()]
        assert named == [f"broker {leader.node_id} cannot be followed: STALE_BROKER_EPOCH"]

    run(story, replica_fetch_wait_max_ms="50", replica_lag_time_max_ms="60000")


def test_a_follower_begins_where_its_leader_does():
    async def story(cluster: Cluster) -> None:
        await make(cluster)
        leader = await cluster.leader(isr=3)
        late = next(each for each in (1, 2, 3) if each != leader.node_id)
        await cluster.kill(late)
        await cluster.leader(isr=2)
        for number in range(5):
            await write(cluster, b"%d" % number)
        leader.log.roll(NOW)
        leader.forget_before(5)
        leader.log.expire(NOW, leader.high_watermark)
        await write(cluster, b"new")

        await cluster.start(late)
        await cluster.leader(isr=3)
        assert content(cluster, late) == [(leader.leader_epoch, 5, b"new")]
        assert cluster.partition(late).log.start_offset == 5

    run(story)


async def refused(link: Link, fetch: FetchRequest) -> int:
    answer = await link.call(fetch, FetchResponse, cap=17)
    (part,) = answer.responses[0].partitions
    assert part.high_watermark == -1
    return int(part.error_code)


def test_who_has_not_proven_to_be_a_broker_does_not_fetch_as_one():
    async def story(cluster: Cluster) -> None:
        await make(cluster)
        leader = await cluster.leader(isr=3)
        leader.append(batch(b"a"), NOW, acks=1)
        server = cluster.servers[leader.node_id]
        address = Address("127.0.0.1", server.listeners[0].port)
        forged = FetchRequest(
            replica_state=FetchRequest.ReplicaState(replica_id=leader.node_id % 3 + 1, replica_epoch=-1),
            max_wait_ms=0,
            min_bytes=0,
            session_epoch=-1,
            topics=[
                FetchRequest.Topic(
                    topic_id=leader.topic_id,
                    partitions=[
                        FetchRequest.Topic.Partition(
                            partition=0, current_leader_epoch=0, fetch_offset=999, partition_max_bytes=1000
                        )
                    ],
                )
            ],
        )
        link = await connect(Tasks(), address)
        assert await refused(link, forged) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED

        # Knowing the mechanism is not knowing the secret.
        await link.call(SaslHandshakeRequest(mechanism=MECHANISM), SaslHandshakeResponse)
        claimed = claim(Identity(2, server.broker.image.brokers[2].epoch), bytes(16))
        drawn = await link.call(SaslAuthenticateRequest(auth_bytes=claimed), SaslAuthenticateResponse)
        wrong = SaslAuthenticateRequest(auth_bytes=proof(b"guessed", claimed, bytes(drawn.auth_bytes)))
        told = await link.call(wrong, SaslAuthenticateResponse)
        assert told.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert await refused(link, forged) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        link.close()

    run(story)


WITH_SASL = {
    "listeners": "IN://127.0.0.1:0",
    "listener_security_protocol_map": "IN:SASL_PLAINTEXT",
    "sasl_enabled_mechanisms": "SCRAM-SHA-256",
}


def test_brokers_know_each_other_where_everybody_is_asked_who_he_is():
    async def story(cluster: Cluster) -> None:
        await make(cluster)
        await write(cluster, b"a")
        leader = await cluster.leader(isr=3)
        assert content(cluster, 1) == content(cluster, 2) == content(cluster, 3)
        server = cluster.servers[leader.node_id]
        peers = [each.connection.peer for each in server.transport._guests.by_fd.values()]  # type: ignore[union-attr]
        assert {peer.broker.node_id for peer in peers if peer.broker} == set(cluster.servers) - {leader.node_id}
        assert {str(peer.principal) for peer in peers if peer.broker} == {
            f"Broker:{each}" for each in set(cluster.servers) - {leader.node_id}
        }

        await cluster.kill(leader.node_id)
        await write(cluster, b"b")
        await cluster.start(leader.node_id)
        await cluster.leader(isr=3)
        assert content(cluster, 1) == content(cluster, 2) == content(cluster, 3)

    run(story, **WITH_SASL)


def test_all_may_be_killed_at_once_and_nothing_acknowledged_is_lost():
    async def story(cluster: Cluster) -> None:
        await make(cluster, min_insync_replicas="2")
        for number in range(20):
            await write(cluster, b"%d" % number)
        for each in (1, 2, 3):
            await cluster.kill(each)
        for each in (3, 1, 2):
            await cluster.start(each)
        await cluster.leader(isr=3)
        await write(cluster, b"after")

        assert [value for _, _, value in content(cluster, 1)] == [*(b"%d" % number for number in range(20)), b"after"]
        assert content(cluster, 1) == content(cluster, 2) == content(cluster, 3)

    run(story)


def test_topics_can_be_made_through_any_broker_and_the_controller_moves():
    async def story(cluster: Cluster) -> None:
        first = cluster.servers[1].broker.image.controller
        epoch = cluster.servers[1].broker.image.controller_epoch
        await cluster.kill(first)
        for each, server in cluster.servers.items():
            await server.broker.controller.create_topic(NewTopic(f"by-{each}", 1, 2, {}, {}), (1, 1))
        view = next(iter(cluster.servers.values())).broker.view
        await eventually(lambda: view.image.controller not in (first, -1))
        assert view.image.controller_epoch == epoch + 1
        assert len(view.image.topics) == 2

    run(story)


def produce(value: bytes, timeout_ms: int = 10_000) -> ProduceRequest:
    data = ProduceRequest.Topic.Partition(index=0, records=bytes(batch(value)))
    topic = ProduceRequest.Topic(name="t", partition_data=[data])
    return ProduceRequest(acks=-1, timeout_ms=timeout_ms, topic_data=[topic])


async def ask_leader(cluster: Cluster, leader: Partition, request: Request, answer: type[R], cap: int) -> R:
    link = await connect(Tasks(), Address("127.0.0.1", cluster.servers[leader.node_id].listeners[0].port))
    try:
        return await link.call(request, answer, cap=cap)
    finally:
        link.close()


def test_who_waits_for_followers_hears_of_them_of_another_leader_or_that_its_time_is_over():
    async def story(cluster: Cluster) -> None:
        await make(cluster)
        leader = await cluster.leader(isr=3)
        for server in cluster.servers.values():
            server.broker.followers.pause()
        codes = {}

        async def write_to_leader(name: str, timeout_ms: int = 10_000) -> None:
            found = await ask_leader(cluster, leader, produce(b"x", timeout_ms), ProduceResponse, cap=9)
            codes[name] = found.responses[0].partition_responses[0].error_code

        await write_to_leader("impatient", timeout_ms=50)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(write_to_leader, "confirmed")
            await eventually(lambda: leader.log.end_offset == 2)
            for server in cluster.servers.values():
                server.broker.followers.go_on()
        await cluster.leader(isr=3)
        for server in cluster.servers.values():
            server.broker.followers.pause()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(write_to_leader, "deposed")
            await eventually(lambda: leader.log.end_offset == 3)
            await lead(cluster, next(each for each in (1, 2, 3) if each != leader.node_id))

        assert codes == {
            "impatient": ErrorCode.REQUEST_TIMED_OUT,
            "confirmed": ErrorCode.NONE,
            "deposed": ErrorCode.NOT_LEADER_OR_FOLLOWER,
        }

    run(story)


def test_a_consumer_that_waits_is_answered_when_followers_have_what_was_written():
    async def story(cluster: Cluster) -> None:
        await make(cluster)
        leader = await cluster.leader(isr=3)
        wanted = FetchRequest.Topic.Partition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        topics = [FetchRequest.Topic(topic="t", partitions=[wanted])]
        request = FetchRequest(max_wait_ms=20_000, min_bytes=1, max_bytes=1 << 20, topics=topics)
        found = []

        async def read() -> None:
            found.append(await ask_leader(cluster, leader, request, FetchResponse, cap=11))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            await eventually(lambda: leader._bells)
            with trio.fail_after(10):
                await write(cluster, b"a")
                await eventually(lambda: found)
        assert found[0].responses[0].partitions[0].records

    run(story)


@posix_only("the gate needs epoll, and tasks do not receive while they wait")
def test_the_next_batch_is_written_while_the_one_before_waits_for_followers_and_answers_keep_their_order():
    async def story(cluster: Cluster) -> None:
        await make(cluster)
        leader = await cluster.leader(isr=3)
        for server in cluster.servers.values():
            server.broker.followers.pause()
        link = await connect(Tasks(), Address("127.0.0.1", cluster.servers[leader.node_id].listeners[0].port))
        tickets = []
        for number in range(3):
            tickets.append(await link.ask(produce(b"%d" % number), ProduceResponse, cap=9))
            await eventually(lambda number=number: leader.log.end_offset == number + 1)
        behind = await link.ask(MetadataRequest(topics=[]), MetadataResponse)
        last = await link.ask(produce(b"3"), ProduceResponse, cap=9)
        await trio.sleep(0.1)
        assert leader.log.end_offset == 3, "what is behind another request waits for it"
        assert leader.high_watermark == 0

        for server in cluster.servers.values():
            server.broker.followers.go_on()
        answers = [await link.answer(each) for each in (*tickets, last)]
        offsets = [each.responses[0].partition_responses[0].base_offset for each in answers]
        assert offsets == [0, 1, 2, 3]
        assert len((await link.answer(behind)).brokers) == 3
        link.close()

    run(story)


def test_who_waits_to_be_confirmed_hears_when_another_leads():
    async def story(cluster: Cluster) -> None:
        await make(cluster)
        leader = await cluster.leader(isr=3)
        for server in cluster.servers.values():
            server.broker.followers.pause()
        epoch = leader.leader_epoch
        end = leader.append(batch(b"a"), NOW).last_offset + 1
        codes = []

        async def wait() -> None:
            with pytest.raises(BrokerError) as refused:
                await leader.committed(end, trio.current_time() + 10, epoch)
            codes.append(refused.value.code)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await trio.sleep(0.05)
            other = next(each for each in (1, 2, 3) if each != leader.node_id)
            await cluster.servers[other].broker.controller.change_partition(
                "t", 0, lambda image, state: state._replace(leader=other, leader_epoch=epoch + 1)
            )
        assert codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER]

    run(story)


async def lead(cluster: Cluster, node_id: int) -> None:
    """Another leader, for no reason."""
    server = cluster.servers[node_id]
    epoch = server.broker.image.brokers[node_id].epoch
    await server.broker.controller.change_partition(
        "t",
        0,
        lambda image, state: state._replace(
            leader=node_id, leader_epoch=state.leader_epoch + 1, leader_broker_epoch=epoch
        ),
    )
    await eventually(lambda: cluster.partition(node_id).leads)


def test_an_epoch_in_which_nothing_was_written_does_not_part_two_logs():
    """Whoever has led it has it in its book, at the end of its log; the next leader does not know of it."""

    async def story(cluster: Cluster) -> None:
        await make(cluster)
        await write(cluster, b"a")
        for node_id in (1, 2, 3, 1, 2, 3):
            await lead(cluster, node_id)
        await write(cluster, b"b")
        assert content(cluster, 1) == content(cluster, 2) == content(cluster, 3)

    run(story)
