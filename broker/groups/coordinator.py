"""All groups that hash to one partition of __consumer_offsets.

Finds the group, lets it decide, and turns what it raises into the answer.  What is stored changes by `replay` only,
which is also how everything is loaded.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from math import inf
from typing import Any

from trilogue.broker.groups import offset_requests
from trilogue.broker.groups.classic import describe as classic_describe
from trilogue.broker.groups.classic.group import ClassicGroup, join_refusal, sync_refusal
from trilogue.broker.groups.consumer.describe import describe, undescribed
from trilogue.broker.groups.consumer.group import ConsumerGroup
from trilogue.broker.groups.consumer.heartbeat import check, heartbeat_refusal
from trilogue.broker.groups.consumer.migration import upgrade
from trilogue.broker.groups.offsets import NEVER_MS, Committed, Offsets, tombstone
from trilogue.broker.groups.world import Caller, World
from trilogue.broker.machines.deadlines import Deadlines
from trilogue.broker.machines.effects import Effect, Put, Reply, Store, effects
from trilogue.wire.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from trilogue.wire.apis.delete_groups import DeleteGroupsResponse
from trilogue.wire.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from trilogue.wire.apis.join_group import JoinGroupRequest
from trilogue.wire.apis.leave_group import LeaveGroupRequest, LeaveGroupResponse
from trilogue.wire.apis.list_groups import ListGroupsResponse
from trilogue.wire.apis.offset_commit import OffsetCommitRequest
from trilogue.wire.apis.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from trilogue.wire.apis.offset_fetch import OffsetFetchRequest
from trilogue.wire.apis.sync_group import SyncGroupRequest
from trilogue.wire.apis.txn_offset_commit import TxnOffsetCommitRequest
from trilogue.wire.errors import BrokerError, ErrorCode
from trilogue.wire.internal import consumer_groups
from trilogue.wire.internal.consumer_groups import ConsumerGroupMetadataKey
from trilogue.wire.internal.offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    OffsetCommitKey,
)
from trilogue.wire.schema import Key

GROUP_NOT_FOUND_SINCE = 9
"""Since this OffsetCommit a group that is not there is called so; before, its generation was wrong."""

BY_ID_SINCE = 10
"""OffsetCommit and OffsetFetch name topics by id from here on."""

RECORDS_PER_STORE = 1000
"""What is written in one batch at most: it must stay well below what a topic takes."""

CONSUMER_KEYS = frozenset(
    it for it in vars(consumer_groups).values() if isinstance(it, type) and issubclass(it, Key) and it is not Key
)

Group = ClassicGroup | ConsumerGroup


class GroupCoordinator:
    """See `effects.Machine`."""

    def __init__(self, index: int, world: World) -> None:
        self._index, self._world = index, world
        self._groups: dict[str, Group] = {}
        self._offsets = Offsets()
        self._live = False
        """Whether records that are replayed are our own, of just now."""
        self._deadlines = Deadlines()
        self._look_at = inf

    # -- time ----------------------------------------------------------------------------------

    @property
    def deadline(self) -> float:
        return min(self._look_at, self._deadlines.earliest)

    @effects
    def tick(self, now: float) -> Iterator[Effect]:
        for group_id in self._deadlines.due(now):
            if group := self._groups.get(group_id):
                yield from self._watched(group, group.tick(now))
        if self._look_at <= now:
            self._look_at = now + self._world.config["offsets.retention.check.interval.ms"] / 1000
            yield from self._expire(self._world.clock())

    def _watched(self, group: Group, todo: list[Effect]) -> list[Effect]:
        """Whatever has been done with a group may have given it an earlier deadline, or made it another group.  Later
        deadlines are found by ticks."""
        if isinstance(group, ConsumerGroup) and group.successor:
            group = self._groups[group.id] = group.successor
        self._deadlines.advance(group.id, group.deadline)
        return todo

    def _expire(self, now_ms: int) -> Iterator[Effect]:
        """Forget offsets whose retention is over, and groups of which nothing is left."""
        retention_ms = self._world.config["offsets.retention.minutes"] * 60_000
        for group in list(self._groups.values()):
            offsets = self._offsets.of(group.id)
            gone = [
                partition
                for partition, committed in offsets.items()
                if not group.is_subscribed_to(partition[0])
                and is_expired(group, committed, now_ms, retention_ms)
                and not self._offsets.is_pending(group.id, partition)
            ]
            puts = [tombstone(group.id, partition) for partition in gone]
            if len(gone) == len(offsets) and group.is_empty and not self._offsets.has_pending(group.id):
                puts += group.tombstones()
            yield from stores(puts)

    # -- classic groups ------------------------------------------------------------------------

    @effects
    def join(
        self, now: float, request: JoinGroupRequest, caller: Caller, fresh_id: str, ticket: Any
    ) -> Iterator[Effect]:
        group = self._groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            if not group.is_empty:
                yield from self._join_consumers(now, group, request, caller, fresh_id, ticket)
                return
            if not request.member_id:
                yield from stores(group.tombstones())
                group = None
        is_new = group is None
        if not isinstance(group, ClassicGroup):
            if request.member_id:
                yield Reply(ticket, join_refusal(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id, caller.version))
                return
            group = self._groups[request.group_id] = ClassicGroup(request.group_id, self._world)
        try:
            yield from self._watched(group, group.join(now, request, caller, fresh_id, ticket))
        except BrokerError as error:
            yield Reply(ticket, join_refusal(error.code, request.member_id, caller.version))
        if is_new:
            yield Store((group.first_record(),))

    def _join_consumers(
        self, now: float, group: ConsumerGroup, request: JoinGroupRequest, caller: Caller, fresh_id: str, ticket: Any
    ) -> list[Effect]:
        """A classic member joins a group of the new protocol."""
        try:
            return self._watched(group, group.join(now, request, caller, fresh_id, ticket))
        except BrokerError as error:
            return [Reply(ticket, join_refusal(error.code, "", caller.version))]

    @effects
    def sync(self, now: float, request: SyncGroupRequest, ticket: Any) -> Iterator[Effect]:
        try:
            group = self._joined_group(request.group_id)
            yield from self._watched(group, group.sync(now, request, ticket))
        except BrokerError as error:
            yield Reply(ticket, sync_refusal(error.code))

    @effects
    def heartbeat(self, now: float, request: HeartbeatRequest, ticket: Any) -> Iterator[Effect]:
        try:
            group = self._joined_group(request.group_id)
            yield from self._watched(group, group.heartbeat(now, request, ticket))
        except BrokerError as error:
            yield Reply(ticket, HeartbeatResponse(error_code=error.code))

    @effects
    def leave(self, now: float, request: LeaveGroupRequest, ticket: Any) -> Iterator[Effect]:
        try:
            group = self._joined_group(request.group_id)
        except BrokerError:
            unknown = [
                LeaveGroupResponse.Member(
                    member_id=each.member_id,
                    group_instance_id=each.group_instance_id,
                    error_code=ErrorCode.UNKNOWN_MEMBER_ID,
                )
                for each in request.members
            ]
            yield Reply(ticket, LeaveGroupResponse(members=unknown))
            return
        yield from self._watched(group, group.leave(now, request, ticket))

    # -- consumer groups -----------------------------------------------------------------------

    @effects
    def consumer_heartbeat(
        self, now: float, request: ConsumerGroupHeartbeatRequest, caller: Caller, fresh_id: str, ticket: Any
    ) -> Iterator[Effect]:
        try:
            check(request, caller.version, self._world.config["group.consumer.assignors"])
            puts, group = self._consumer_group(now, request)
            todo = group.consumer_heartbeat(now, request, caller, fresh_id, ticket)
        except BrokerError as error:
            yield Reply(ticket, heartbeat_refusal(error.code, error.message or error.code.sentence))
            return
        former = self._groups.get(group.id)
        if isinstance(former, ClassicGroup):
            yield from former.turn_away()
        self._groups[group.id] = group
        yield from self._watched(group, preceded(puts, todo))

    def _consumer_group(self, now: float, request: ConsumerGroupHeartbeatRequest) -> tuple[list[Put], ConsumerGroup]:
        """The group, made if somebody joins; and what has to be stored first if it was a classic one."""
        group_id, joins = request.group_id, request.member_epoch == 0
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return [], group
        if not joins:
            problem = f"Group {group_id} is not a consumer group." if group else f"Consumer group {group_id} not found."
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, problem)
        made = ConsumerGroup(group_id, self._world)
        if group is None:
            return [], made
        if group.is_empty:
            return group.tombstones(), made
        puts = upgrade(group, made, self._world)
        for put in puts:
            made.replay(put)
        made.loaded(now)
        return puts, made

    @effects
    def describe_consumer(self, now: float, group_id: str, ticket: Any) -> Iterator[Effect]:
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            yield Reply(ticket, describe(group, self._world.image))
        else:
            problem = "is not a consumer group" if group else "not found"
            code = ErrorCode.GROUP_ID_NOT_FOUND
            yield Reply(ticket, undescribed(group_id, code, f"Group {group_id} {problem}."))

    # -- offsets -------------------------------------------------------------------------------

    @effects
    def commit(self, now: float, request: OffsetCommitRequest, caller: Caller, ticket: Any) -> Iterator[Effect]:
        member_id, epoch = request.member_id, request.generation_id_or_member_epoch
        group = self._groups.get(request.group_id)
        code = ErrorCode.NONE
        try:
            if group is not None:
                group.check_commit(member_id, request.group_instance_id, epoch, caller.version)
                group.touch(now, member_id)
            elif epoch >= 0:
                found = caller.version >= GROUP_NOT_FOUND_SINCE
                raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND if found else ErrorCode.ILLEGAL_GENERATION)
        except BrokerError as error:
            code = error.code

        def may(topic_id: bytes, index: int) -> ErrorCode:
            if code or not isinstance(group, ConsumerGroup):
                return code
            return group.may_commit(member_id, epoch, (topic_id, index))

        puts, answer = self._weigh(request, may, by_id=caller.version >= BY_ID_SINCE)
        yield from stores(puts)
        yield Reply(ticket, answer)

    @effects
    def commit_in_transaction(
        self, now: float, request: TxnOffsetCommitRequest, caller: Caller, ticket: Any
    ) -> Iterator[Effect]:
        """Stored now, counted when the transaction is committed.  Members may commit in any state of the group."""
        generation = request.generation_id_or_member_epoch
        group = self._groups.get(request.group_id)
        code = ErrorCode.NONE
        try:
            if group is not None:
                group.check_commit_in_transaction(request.member_id, request.group_instance_id, generation)
            elif generation >= 0:
                raise BrokerError(ErrorCode.ILLEGAL_GENERATION)
        except BrokerError as error:
            code = error.code

        def may(topic_id: bytes, index: int) -> ErrorCode:
            told = code
            if not told and isinstance(group, ConsumerGroup):
                told = group.may_commit(request.member_id, generation, (topic_id, index))
            # Producers do not know epochs.
            return ErrorCode.ILLEGAL_GENERATION if told == ErrorCode.STALE_MEMBER_EPOCH else told

        puts, answer = self._weigh(request, may, by_id=False)
        yield from stores(puts, request.producer_id, request.producer_epoch)
        yield Reply(ticket, answer)

    def _weigh(
        self, request: offset_requests.CommitRequest, may: Callable[[bytes, int], ErrorCode], *, by_id: bool
    ) -> tuple[list[Put], offset_requests.CommitResponse]:
        """A partition that is not there is said to be so, whatever the group says: Kafka looks there first."""
        world = self._world
        longest = world.config["offset.metadata.max.bytes"]
        return offset_requests.commit(request, world.image, world.clock(), longest, by_id=by_id, may=may)

    @effects
    def fetch(
        self, now: float, asked: OffsetFetchRequest.Group, stable: bool, caller: Caller, ticket: Any
    ) -> Iterator[Effect]:
        """Of one group.  A group that is not there has committed nothing."""
        try:
            if group := self._groups.get(asked.group_id):
                group.check_fetch(asked.member_id, asked.member_epoch)
        except BrokerError as error:
            yield Reply(ticket, offset_requests.fetch_refusal(asked.group_id, error.code))
            return
        by_id = caller.version >= BY_ID_SINCE
        yield Reply(ticket, offset_requests.fetch(asked, self._offsets, self._world.image, stable=stable, by_id=by_id))

    @effects
    def delete_offsets(self, now: float, request: OffsetDeleteRequest, ticket: Any) -> Iterator[Effect]:
        try:
            group = self._find(request.group_id)
            group.check_offset_delete()
        except BrokerError as error:
            yield Reply(ticket, OffsetDeleteResponse(error_code=error.code, topics=[]))
            return
        image = self._world.image
        puts, answer = offset_requests.delete(request, self._offsets, image, group.is_subscribed_to)
        yield from stores(puts)
        yield Reply(ticket, answer)

    # -- administration ------------------------------------------------------------------------

    def list_groups(self, states: Collection[str], kinds: Collection[str]) -> list[ListGroupsResponse.Group]:
        """Those in one of the states and of one of the kinds, in lower case; all, if none is named."""
        return [
            ListGroupsResponse.Group(
                group_id=each.id,
                protocol_type=each.protocol_type or "",
                group_state=each.state_name,
                group_type=each.kind,
            )
            for each in self._groups.values()
            if (not states or each.state_name.lower() in states) and (not kinds or each.kind in kinds)
        ]

    @effects
    def describe(self, now: float, group_id: str, caller: Caller, ticket: Any) -> Iterator[Effect]:
        group = self._groups.get(group_id)
        if isinstance(group, ClassicGroup):
            yield Reply(ticket, classic_describe.describe(group))
        else:
            problem = "is not a classic group" if group else "not found"
            yield Reply(ticket, classic_describe.not_found(group_id, caller.version, f"Group {group_id} {problem}."))

    @effects
    def delete_group(self, now: float, group_id: str, ticket: Any) -> Iterator[Effect]:
        answer = DeleteGroupsResponse.Result(group_id=group_id)
        try:
            group = self._find(group_id)
            group.check_delete()
        except BrokerError as error:
            answer.error_code = error.code
            yield Reply(ticket, answer)
            return
        puts = [tombstone(group_id, partition) for partition in sorted(self._offsets.partitions(group_id))]
        yield from stores([*puts, *group.tombstones()])
        yield Reply(ticket, answer)

    # -- the cluster ---------------------------------------------------------------------------

    @effects
    def forget_topics(self, now: float, gone: set[str]) -> Iterator[Effect]:
        """Topics are gone.  What was committed for them says nothing about their namesakes to come."""
        yield from stores(list(self._offsets.tombstones(gone)))

    # -- the log -------------------------------------------------------------------------------

    def replay(self, put: Put, offset: int, producer_id: int) -> None:
        match put.key:
            case OffsetCommitKey() | LegacyOffsetCommitKey() as key:
                if put.value is not None and key.group not in self._groups:
                    self._groups[key.group] = ClassicGroup(key.group, self._world)  # a simple consumer's
                self._offsets.replay(key, put.value, offset, producer_id)  # type: ignore[arg-type]
            case GroupMetadataKey() as key:
                self._replay_classic(key.group, put.value)  # type: ignore[arg-type]
            case _ if type(put.key) in CONSUMER_KEYS:
                self._replay_consumer(put)

    def _replay_classic(self, group_id: str, value: GroupMetadataValue | None) -> None:
        group = self._groups.get(group_id)
        if value is None:
            if isinstance(group, ClassicGroup):
                del self._groups[group_id]
        elif self._live and isinstance(group, ClassicGroup):
            group.settle(value)
        else:
            self._groups[group_id] = ClassicGroup.load(group_id, value, self._world)

    def _replay_consumer(self, put: Put) -> None:
        group_id: str = put.key.group_id  # type: ignore[attr-defined]
        group = self._groups.get(group_id)
        if put.value is None and isinstance(put.key, ConsumerGroupMetadataKey):
            if isinstance(group, ConsumerGroup):
                del self._groups[group_id]
            return
        if not isinstance(group, ConsumerGroup):
            if put.value is None:
                return
            group = self._groups[group_id] = ConsumerGroup(group_id, self._world)
        group.replay(put)

    def replay_end(self, producer_id: int, committed: bool) -> None:
        self._offsets.replay_end(producer_id, committed)

    @effects
    def loaded(self, now: float) -> Iterator[Effect]:
        self._live = True
        self._look_at = now + self._world.config["offsets.retention.check.interval.ms"] / 1000
        for group in list(self._groups.values()):
            yield from self._watched(group, group.loaded(now))

    # -- finding -------------------------------------------------------------------------------

    def _find(self, group_id: str) -> Group:
        group = self._groups.get(group_id)
        if group is None:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group

    def _joined_group(self, group_id: str) -> Group:
        """For its members, who are no members of anything else."""
        group = self._groups.get(group_id)
        if group is None:
            raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID)
        return group


def stores(puts: Sequence[Put], producer_id: int = -1, producer_epoch: int = -1) -> Iterator[Store]:
    for at in range(0, len(puts), RECORDS_PER_STORE):
        yield Store(tuple(puts[at : at + RECORDS_PER_STORE]), producer_id, producer_epoch)


def preceded(puts: Sequence[Put], todo: Sequence[Effect]) -> list[Effect]:
    """These first, and together with what is stored next: a crash must not come in between."""
    if not puts:
        return list(todo)
    at = next(number for number, effect in enumerate(todo) if isinstance(effect, Store))
    following = todo[at]
    assert isinstance(following, Store)
    return [*todo[:at], Store((*puts, *following.records)), *todo[at + 1 :]]


def is_expired(group: Group, committed: Committed, now_ms: int, retention_ms: int) -> bool:
    since_ms = group.idle_since_ms(committed)
    if since_ms is None:
        return False
    if committed.expire_ms != NEVER_MS:
        return now_ms >= committed.expire_ms
    return now_ms - since_ms >= retention_ms
