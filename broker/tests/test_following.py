"""What a follower is answered, fetch by fetch: the follower is played by hand, against a broker that leads."""

import trio

from trilogue.broker.apis.fetch import fetch
from trilogue.broker.broker import Broker
from trilogue.broker.cluster.decisions import NewTopic
from trilogue.broker.partitions.partition import Partition
from trilogue.broker.requests.following import STANDS_SECONDS, Following
from trilogue.broker.requests.later import Parked
from trilogue.broker.requests.peer import Peer
from trilogue.broker.security.brokers import Identity
from trilogue.broker.tests.cluster import Cluster, eventually, run
from trilogue.storage.tests.making import batch
from trilogue.wire.apis.fetch import FetchRequest, FetchResponse
from trilogue.wire.errors import ErrorCode

NOW = 1_700_000_000_000
PARTITIONS = 3
Heard = dict[int, tuple[int, int, int]]
"""By partition: how many bytes, the high watermark, the error."""


class Follower:
    """Broker 2, whose own fetchers do nothing meanwhile."""

    def __init__(self, leader: Broker, partitions: list[Partition]) -> None:
        self._leader, self.partitions = leader, partitions
        self.peer = Peer("PLAINTEXT", "127.0.0.1", ("127.0.0.1", 1))
        self.peer.version = 17
        self.peer.broker = Identity(2, leader.image.brokers[2].epoch)
        self.session, self.epoch = 0, 0

    def ask(self, *said: int, wait_ms: int = 60_000) -> FetchResponse | Parked[FetchResponse]:
        """Of these partitions it says that it has everything."""
        parts = [
            FetchRequest.Topic.Partition(
                partition=each,
                current_leader_epoch=self.partitions[each].leader_epoch,
                fetch_offset=self.partitions[each].log.end_offset,
                last_fetched_epoch=-1,
                log_start_offset=0,
                partition_max_bytes=1 << 20,
            )
            for each in said
        ]
        topics = [FetchRequest.Topic(topic_id=self.partitions[0].topic_id, partitions=parts)] if parts else []
        request = FetchRequest(
            replica_state=FetchRequest.ReplicaState(replica_id=2, replica_epoch=self.peer.broker.epoch),  # type: ignore[union-attr]
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=1 << 20,
            session_id=self.session,
            session_epoch=self.epoch,
            topics=topics,
        )
        answer = fetch(self._leader, request, self.peer)
        assert isinstance(answer, FetchResponse | Following)
        self.epoch += 1
        if isinstance(answer, FetchResponse) and answer.session_id:
            self.session = answer.session_id
        return answer


def heard(answer: object) -> Heard:
    assert isinstance(answer, FetchResponse), answer
    return {
        each.partition_index: (len(each.records), each.high_watermark, each.error_code)
        for topic in answer.responses
        for each in topic.partitions
    }


def take(parked: object) -> object:
    assert isinstance(parked, Following)
    answer = parked.take(trio.current_time())
    if answer is not None:
        parked.close()
    return answer


def due(follower: Follower) -> list[int]:
    session = follower._leader.fetch_sessions._sessions[follower.session]
    assert session.standing is not None
    return [index for _, index in session.standing.due]


async def played(cluster: Cluster) -> Follower:
    server = cluster.servers[1]
    await server.broker.controller.create_topic(
        NewTopic("t", -1, -1, dict.fromkeys(range(PARTITIONS), (1, 2)), {}), (1, 1)
    )
    found: list[Partition | None] = []

    def all_in_sync() -> bool:
        found[:] = [server.broker.replicas.find("t", each) for each in range(PARTITIONS)]
        return all(each is not None and each.leads and len(each.state.isr) == 2 for each in found)

    await eventually(all_in_sync)
    cluster.servers[2].broker.followers.pause()
    follower = Follower(server.broker, [each for each in found if each is not None])
    assert heard(follower.ask(0, 1, 2, wait_ms=0)) == {0: (0, 0, 0), 1: (0, 0, 0), 2: (0, 0, 0)}
    return follower


def test_what_is_idle_is_not_looked_at():
    async def story(cluster: Cluster) -> None:
        follower = await played(cluster)
        assert due(follower) == [], "the first answer has said where everything is"

        waiting = follower.ask()
        assert take(waiting) is None
        follower.partitions[1].append(batch(b"a"), NOW)
        assert due(follower) == [1]
        (size, high_watermark, error) = heard(take(waiting))[1]
        assert size == len(batch(b"a"))
        assert (high_watermark, error) == (0, 0)

        waiting = follower.ask(1)
        assert take(waiting) is None
        assert follower.partitions[1].high_watermark == 1, "both have it"
        assert due(follower) == [1], "which the follower is to hear"
        assert isinstance(waiting, Following)
        waiting.hurry()
        assert heard(take(waiting)) == {1: (0, 1, 0)}
        assert due(follower) == []

    run(story)


def test_what_is_not_fetched_is_offered_again():
    async def story(cluster: Cluster) -> None:
        follower = await played(cluster)
        follower.partitions[1].append(batch(b"a"), NOW)
        follower.partitions[0].append(batch(b"a"), NOW)
        size = len(batch(b"a"))
        assert heard(follower.ask()) == {1: (size, 0, 0), 0: (size, 0, 0)}
        assert heard(follower.ask()) == {1: (size, 0, 0), 0: (size, 0, 0)}, "it has said nothing of them"
        assert heard(follower.ask(1)) == {0: (size, 0, 0), 1: (0, 1, 0)}

    run(story)


def test_an_error_is_repeated_until_it_is_over():
    async def story(cluster: Cluster) -> None:
        follower = await played(cluster)
        partition = follower.partitions[2]
        before = partition.state
        partition.become(before._replace(leader=2, leader_epoch=before.leader_epoch + 1))
        told = {2: (0, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER)}
        assert heard(follower.ask()) == told
        assert heard(follower.ask()) == told

        partition.become(before._replace(leader_epoch=before.leader_epoch + 2))
        follower.ask(2, wait_ms=0)
        assert due(follower) == []

    run(story)


def test_whose_connection_ends_is_not_stood_for_and_goes_on_where_it_was():
    async def story(cluster: Cluster) -> None:
        follower = await played(cluster)
        waiting = follower.ask()
        assert isinstance(waiting, Following)
        waiting.close()
        assert due(follower) == [0, 1, 2]

        follower.partitions[1].append(batch(b"a"), NOW)
        assert heard(follower.ask()) == {1: (len(batch(b"a")), 0, 0)}
        assert due(follower) == [1]

    run(story)


def test_who_is_overtaken_by_another_request_of_its_session_takes_nothing_from_it():
    async def story(cluster: Cluster) -> None:
        follower = await played(cluster)
        first = follower.ask()
        second = follower.ask()
        follower.partitions[1].append(batch(b"a"), NOW)

        late = take(first)
        assert isinstance(late, FetchResponse)
        assert (late.error_code, late.responses) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, [])
        assert heard(take(second)) == {1: (len(batch(b"a")), 0, 0)}

    run(story)


def test_another_session_ends_the_watch_of_those_that_are_not_used_any_more():
    async def story(cluster: Cluster) -> None:
        follower = await played(cluster)
        session = follower._leader.fetch_sessions._sessions[follower.session]
        assert session.standing is not None
        session.standing.asked_at -= STANDS_SECONDS + 0.1

        again = Follower(follower._leader, follower.partitions)
        again.ask(0, 1, 2, wait_ms=0)

        assert due(follower) == [0, 1, 2]
        assert due(again) == []

    run(story)


def test_a_follower_for_whose_session_there_is_no_room_is_answered_all_the_same():
    async def story(cluster: Cluster) -> None:
        follower = await played(cluster)
        follower._leader.fetch_sessions._slots = 0
        again = Follower(follower._leader, follower.partitions)
        follower.partitions[1].append(batch(b"a"), NOW)
        follower._leader.fetch_sessions.clear()

        answer = again.ask(0, 1, wait_ms=0)

        assert heard(answer) == {0: (0, 0, 0), 1: (0, 1, 0)}
        assert again.session == 0
        assert not any(each.watched for each in follower.partitions)

    run(story)
