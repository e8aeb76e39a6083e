"""Fetch: read record batches.

Waits up to `max_wait_ms` for `min_bytes`, unless something is to be said at once, or the same connection asks for
something else meanwhile: with Kafka that would wait as well.  Partitions are served in the order asked for; the first
that has anything gives at least one batch, however large.  A batch comes whole, also when the offset lies inside of it.
read_committed stops at the last stable offset and names the aborted transactions.
v0-3: the old message formats, made from what the log keeps (Kafka 4 does not any more).  v7+: sessions.  v9+: leader
epochs.  v12+: where the reader's log parts from ours.  v13+: topics by id.  v16+: where the leader is.
"""

from collections.abc import Iterable
from typing import NamedTuple

import trio

from trilogue.broker.broker import Broker
from trilogue.broker.partitions.fetch_sessions import Context, Session, Wanted, passing_session
from trilogue.broker.partitions.partition import Partition, Read
from trilogue.broker.partitions.standing import Key
from trilogue.broker.partitions.waiting import Bell
from trilogue.broker.requests.following import follow
from trilogue.broker.requests.later import Later, Parked, nobody
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.reading import (
    NAMES_LEADERS,
    NOTHING,
    Answer,
    by_topic,
    find,
    name_leaders,
    refusal,
    shape,
)
from trilogue.broker.requests.registry import handles
from trilogue.broker.security.brokers import Identity
from trilogue.storage.slices import Slice
from trilogue.wire.apis.fetch import FetchRequest, FetchResponse
from trilogue.wire.errors import BrokerError, ErrorCode, MalformedMessage
from trilogue.wire.records import HEADER_SIZE, read_header
from trilogue.wire.schema import ZERO_UUID

Topic = FetchResponse.Topic
Answered = FetchResponse | Parked[FetchResponse]
NO_EPOCH = -1
READ_UNCOMMITTED, READ_COMMITTED = ISOLATION_LEVELS = (0, 1)
BY_ID = 13
"""From this version on topics are asked for by their ids."""
BATCHES = 4
"""From this version on records come in batches."""
CONVERTED_BYTES = 8 << 20
"""Of the old formats, so much is made for one answer, whatever was asked for: it lies in memory until it is sent."""
CONVERTING_SECONDS = 1.0
"""After that the partitions that are left are answered with nothing, and have to be asked for again."""
MANY_PARTITIONS = 100
"""To answer a fetch of more than these takes long."""


class Plan(NamedTuple):
    """One fetch, understood."""

    wanted: list[Wanted]
    context: Context
    max_bytes: int
    min_bytes: int
    committed_only: bool
    version: int
    pretends: int
    """Which broker it says to be, and has not proven to be."""


class Found:
    """What there is for the partitions of a plan, in its order."""

    __slots__ = ("answers", "size", "sizes", "urgent")

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.sizes: list[int] = []
        self.size = 0
        """Of all records together."""
        self.urgent = False
        """There is something to be heard whatever the size: an error, or that the reader's log has parted from ours."""

    def add(self, answer: Answer, size: int) -> None:
        self.answers.append(answer)
        self.sizes.append(size)
        self.size += size


@handles(FetchRequest, gives_way=True)
def fetch(broker: Broker, request: FetchRequest, peer: Peer) -> Answered | Later[Answered]:
    if request.isolation_level not in ISOLATION_LEVELS:
        return refuse_all(request, ErrorCode.UNKNOWN_SERVER_ERROR, peer)
    by_id = peer.version >= BY_ID
    wanted, forgotten = named(request, by_id=by_id)
    now_ms = broker.clock()
    try:
        replica, pretends = replica_in(broker, request, peer)
        context = broker.fetch_sessions.begin(
            request.session_id, request.session_epoch, by_id, wanted, forgotten, now_ms
        )
    except BrokerError as error:
        return FetchResponse(error_code=error.code, responses=[])
    if replica is not None:
        session = context.session or passing_session(wanted, now_ms)
        return follow(
            broker, request, peer, session, replica, [(each.topic, each.partition) for each in wanted], forgotten
        )
    plan = understand(broker, request, peer, context, wanted, pretends)
    if len(plan.wanted) > MANY_PARTITIONS:
        return fetch_many(broker, plan, request.max_wait_ms, peer, trio.current_time())
    found = Found()
    for each in plan.wanted:
        found.add(*read_one(broker, plan, each, found, found.size, peer))
    if enough(broker, plan, found, request.max_wait_ms):
        return answer(broker, plan, found, peer) if plan.version >= BATCHES else answer_old(broker, plan, found, peer)
    return Waiting(broker, plan, found, peer, trio.current_time() + request.max_wait_ms / 1000)


async def fetch_many(broker: Broker, plan: Plan, max_wait_ms: int, peer: Peer, now: float) -> Answered:
    found, pace = Found(), broker.turns.pace()
    for each in plan.wanted:
        found.add(*read_one(broker, plan, each, found, found.size, peer))
        await pace.step()
    if enough(broker, plan, found, max_wait_ms):
        return await answer_old(broker, plan, found, peer)
    return Waiting(broker, plan, found, peer, now + max_wait_ms / 1000)


def enough(broker: Broker, plan: Plan, found: Found, max_wait_ms: int) -> bool:
    return not plan.wanted or found.urgent or found.size >= plan.min_bytes or max_wait_ms <= 0 or broker.stopping


def named(request: FetchRequest, *, by_id: bool) -> tuple[list[Wanted], list[Key]]:
    """What is asked for, and what is not wanted any more."""
    wanted = [
        Wanted(
            topic.topic_id if by_id else topic.topic,
            each.partition,
            each.fetch_offset,
            each.partition_max_bytes,
            max(each.current_leader_epoch, NO_EPOCH),
            max(each.last_fetched_epoch, NO_EPOCH),
            each.log_start_offset,
        )
        for topic in request.topics
        for each in topic.partitions
    ]
    forgotten: list[Key] = [
        (topic.topic_id if by_id else topic.topic, partition)
        for topic in request.forgotten_topics_data
        for partition in topic.partitions
    ]
    return wanted, forgotten


def understand(
    broker: Broker, request: FetchRequest, peer: Peer, context: Context, wanted: list[Wanted], pretends: int
) -> Plan:
    if context.session is not None:
        wanted = [entry.wanted for entry in context.session.entries.values()]
    elif len(wanted) > 1:
        wanted = list({(each.topic, each.partition): each for each in wanted}.values())
    max_bytes = min(request.max_bytes, broker.config["fetch.max.bytes"])
    return Plan(
        wanted,
        context,
        max_bytes,
        min(request.min_bytes, max_bytes),
        request.isolation_level == READ_COMMITTED,
        peer.version,
        pretends,
    )


def replica_in(broker: Broker, request: FetchRequest, peer: Peer) -> tuple[Identity | None, int]:
    """The broker that fetches, or which it only says to be.  A forged one could move the high watermark: it has to have
    proven who it is, and to be the one that is registered now."""
    node_id = request.replica_state.replica_id if peer.version >= 15 else request.replica_id
    if node_id < 0:
        return None, -1
    if peer.broker is None or peer.broker.node_id != node_id:
        return None, node_id
    info = broker.image.brokers.get(node_id)
    if info is None or info.epoch != peer.broker.epoch:
        raise BrokerError(ErrorCode.STALE_BROKER_EPOCH)
    return peer.broker, -1


def read_one(broker: Broker, plan: Plan, wanted: Wanted, found: Found, others: int, peer: Peer) -> tuple[Answer, int]:
    """One partition's part, and how many bytes of records it has; `others` is how many the others have."""
    partition = None
    try:
        partition = find(broker, peer, wanted)
        if plan.pretends >= 0:
            check_replica(partition, plan.pretends)
        left = plan.max_bytes - others
        limit = min(wanted.max_bytes, max(0, left) if found.answers else left)
        if limit < 0:
            raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{limit} bytes wanted")
        got = partition.read(
            wanted.offset,
            limit,
            committed_only=plan.committed_only,
            min_one=not others,
            epoch=wanted.leader_epoch,
            last_fetched_epoch=wanted.last_fetched_epoch,
        )
        found.urgent = found.urgent or got.diverging is not None
        answer = shape(wanted.partition, got)
        if plan.committed_only:
            answer.aborted_transactions = aborted(partition, wanted.offset, got) if got.records else []
        return answer, 0 if got.records is None else len(got.records)
    except BrokerError as error:
        code = error.code
    except OSError:
        code = ErrorCode.KAFKA_STORAGE_ERROR
    found.urgent = True
    return refusal(wanted.partition, code, partition), 0


def check_replica(partition: Partition, node_id: int) -> None:
    """Refuse who has not proven to be this broker, whether or not it would be a replica."""
    if node_id in partition.state.replicas and node_id != partition.node_id:
        raise BrokerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "not a replica of this partition")


def read_again(broker: Broker, plan: Plan, found: Found, position: int, peer: Peer) -> None:
    others = found.size - found.sizes[position]
    found.answers[position], taken = read_one(broker, plan, plan.wanted[position], found, others, peer)
    found.sizes[position] = taken
    found.size = others + taken


def refuse_all(request: FetchRequest, code: ErrorCode, peer: Peer) -> FetchResponse:
    """An error of the whole; while topics had names each partition was told, too."""
    topics = [
        Topic(
            topic=topic.topic,
            topic_id=ZERO_UUID,
            partitions=[refusal(each.partition, code) for each in topic.partitions],
        )
        for topic in request.topics
    ]
    return FetchResponse(error_code=code, responses=topics if peer.version < BY_ID else [])


def aborted(partition: Partition, offset: int, got: Read) -> list[Answer.AbortedTransaction]:
    return [
        Answer.AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
        for each in partition.log.aborted_between(offset, got.last_stable_offset)
    ]


async def answer_old(broker: Broker, plan: Plan, found: Found, peer: Peer) -> FetchResponse:
    """Likewise, in the old formats for those who know no others.  They are made in a thread: a few bytes of the log may
    become many."""
    left, until = min(plan.max_bytes, CONVERTED_BYTES), trio.current_time() + CONVERTING_SECONDS
    for position, wanted in enumerate(plan.wanted if plan.version < BATCHES else ()):
        each = found.answers[position]
        if not isinstance(each.records, Slice):
            continue
        if left <= 0 or trio.current_time() > until:
            each.records = NOTHING
            continue
        limit = min(wanted.max_bytes, left)
        try:
            each.records = made = await broker.turns.in_thread(
                converted, each.records, plan.version, wanted.offset, limit
            )
            left -= len(made)
        except BrokerError as error:
            found.answers[position] = refusal(wanted.partition, error.code)
        except MalformedMessage:
            found.answers[position] = refusal(wanted.partition, ErrorCode.CORRUPT_MESSAGE)
        except OSError:
            found.answers[position] = refusal(wanted.partition, ErrorCode.KAFKA_STORAGE_ERROR)
    return answer(broker, plan, found, peer)


def converted(records: Slice, version: int, offset: int, limit: int) -> bytearray:
    """As much of it as reaches the limit."""
    from trilogue.wire.legacy import down_convert

    first = read_header(records.before(min(len(records), HEADER_SIZE)).read())
    data = records.before(min(len(records), max(first.size, limit))).read()
    return down_convert(data, 0 if version < 2 else 1, offset, limit=limit, inside_limit=CONVERTED_BYTES)


class Waiting(Parked[FetchResponse]):
    """Until there is enough, something to be said, no more time, or something else that the reader asks for."""

    __slots__ = ("_bell", "_broker", "_found", "_held", "_peer", "_plan", "_positions")

    def __init__(self, broker: Broker, plan: Plan, found: Found, peer: Peer, deadline: float) -> None:
        super().__init__(deadline)
        self._broker, self._plan, self._found, self._peer = broker, plan, found, peer
        self._bell = Bell(self._heard)
        self._positions: dict[Partition, int] = {}
        watch(broker, plan, found, self._bell, self._positions, peer)
        self._held = let_go(found, range(len(found.answers)))
        self._bell.lacks = plan.min_bytes - found.size

    def _heard(self) -> None:
        self.wake()

    def take(self, now: float) -> FetchResponse | Later[FetchResponse] | None:
        plan, found = self._plan, self._found
        over = now >= self.deadline or self._broker.stopping
        many = len(plan.wanted) > MANY_PARTITIONS
        if not (found.urgent or (over and many)):
            self._look_again()
        if not (over or found.urgent or found.size >= plan.min_bytes):
            return None
        if many or plan.version < BATCHES:
            return self._answer_later()
        for position in self._unread():
            read_again(self._broker, plan, found, position, self._peer)
        return answer(self._broker, plan, found, self._peer)

    async def _answer_later(self) -> FetchResponse:
        pace = self._broker.turns.pace()
        await self._broker.turns.next()
        for position in self._unread():
            read_again(self._broker, self._plan, self._found, position, self._peer)
            await pace.step()
        return await answer_old(self._broker, self._plan, self._found, self._peer)

    def _look_again(self) -> None:
        """At what has changed."""
        bell, plan, found, positions = self._bell, self._plan, self._found, self._positions
        changed, bell.changed = bell.changed, {}
        for partition in changed:
            position = positions[partition]
            before = found.sizes[position]
            read_again(self._broker, plan, found, position, self._peer)
            if 0 < found.sizes[position] == before:
                partition.unwatch(bell)  # it gives no more, whatever comes
        fresh = [positions[partition] for partition in changed]
        if found.urgent or found.size >= plan.min_bytes:
            self._held.difference_update(fresh)
        else:
            self._held |= let_go(found, fresh)
            bell.lacks = plan.min_bytes - found.size

    def _unread(self) -> list[int]:
        """Where there is what was let go of, and what has changed since it was looked at."""
        self.close()
        changed = (self._positions[partition] for partition in self._bell.changed)
        return sorted(self._held.union(changed))

    def close(self) -> None:
        self.wake = nobody
        self._bell.heard = nobody  # else the two would keep each other, and the files of what was found, open
        for partition in self._positions:
            partition.unwatch(self._bell)


def watch(broker: Broker, plan: Plan, found: Found, bell: Bell, positions: dict[Partition, int], peer: Peer) -> None:
    """Hear from now on what changes, and now what has changed since it was found."""
    for position, (wanted, each) in enumerate(zip(plan.wanted, found.answers, strict=True)):
        try:
            partition = find(broker, peer, wanted)
        except BrokerError:
            read_again(broker, plan, found, position, peer)  # it is gone, and that is to be said
            continue
        positions[partition] = position
        partition.watch(bell, committed_only=plan.committed_only)
        if (partition.high_watermark, partition.last_stable_offset) != (each.high_watermark, each.last_stable_offset):
            bell.changed[partition] = None


def let_go(found: Found, positions: Iterable[int]) -> set[int]:
    """Those that have records, which are forgotten: whoever waits holds no files open."""
    full = {position for position in positions if found.sizes[position]}
    for position in full:
        found.answers[position].records = NOTHING
    return full


def answer(broker: Broker, plan: Plan, found: Found, peer: Peer) -> FetchResponse:
    session, full = plan.context
    said = [
        (wanted.topic, each)
        for wanted, each in zip(plan.wanted, found.answers, strict=True)
        if is_news(session, wanted, each) or full
    ]
    response = FetchResponse(session_id=session.id if session else 0, responses=by_topic(said))
    if found.urgent and plan.version >= NAMES_LEADERS:
        name_leaders(broker, peer, response, endpoints=plan.pretends < 0)
    return response


def is_news(session: Session | None, wanted: Wanted, each: Answer) -> bool:
    return session is None or session.is_news(
        (wanted.topic, wanted.partition),
        each.high_watermark,
        each.log_start_offset,
        bool(each.records),
        each.error_code,
        diverges=each.diverging_epoch.end_offset >= 0,
    )
