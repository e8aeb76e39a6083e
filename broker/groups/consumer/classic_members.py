"""A consumer group (KIP-848) that serves classic members as well, while it migrates from one protocol to the other.

To a classic member the group is a coordinator that needs no leader: JoinGroup brings it one step towards its target
assignment, SyncGroup tells it what it has, and Heartbeat whether the next step is due.  Its generation is its epoch.
When the last member of the new protocol goes, the group has a `successor`, which is a classic group.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from trilogue.broker.groups.classic.group import MEMBER_ID_REQUIRED_SINCE, ClassicGroup, join_refusal
from trilogue.broker.groups.classic.state import CONSUMER
from trilogue.broker.groups.consumer.group import ConsumerGroup
from trilogue.broker.groups.consumer.member import ConsumerMember, MemberState
from trilogue.broker.groups.consumer.migration import (
    Heir,
    by_name,
    classic_metadata,
    downgrade,
    may_downgrade,
    partitions_by_id,
)
from trilogue.broker.groups.subscription import read_subscription, version_of, write_assignment
from trilogue.broker.groups.world import Caller, World
from trilogue.broker.machines.effects import Effect, Put, Reply, Store, effects
from trilogue.wire.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from trilogue.wire.apis.join_group import JoinGroupRequest, JoinGroupResponse
from trilogue.wire.apis.leave_group import LeaveGroupRequest, LeaveGroupResponse
from trilogue.wire.apis.sync_group import SyncGroupRequest, SyncGroupResponse
from trilogue.wire.errors import BrokerError, ErrorCode, MalformedMessage
from trilogue.wire.internal.consumer_protocol import ConsumerProtocolSubscription


class MixedGroup(ConsumerGroup):
    def __init__(self, group_id: str, world: World) -> None:
        super().__init__(group_id, world)
        self.successor: ClassicGroup | None = None
        """The classic group that this one has become."""
        self._join_by: dict[str, float] = {}
        """Until when classic members that were told to join again have to."""
        self._sync_by: dict[str, float] = {}
        """Until when classic members that have joined have to ask what they have."""

    # -- joining -------------------------------------------------------------------------------

    @effects
    def join(
        self, now: float, request: JoinGroupRequest, caller: Caller, fresh_id: str, ticket: Any
    ) -> Iterator[Effect]:
        """Raises what the asker hears."""
        member_id = request.member_id or fresh_id
        if member_id not in self.members:
            self._check_room()
        self._check_protocols(request)
        if not request.member_id and request.group_instance_id is None and caller.version >= MEMBER_ID_REQUIRED_SINCE:
            yield Reply(ticket, join_refusal(ErrorCode.MEMBER_ID_REQUIRED, member_id, caller.version))
            return
        subscription = subscription_in(request)
        puts: list[Put] = []
        before, holder = self._joining(request, member_id, puts)
        member = described(before, request, subscription, caller)
        epoch = self._subscribe(before, member, holder.id if holder else None, puts)
        owned = partitions_by_id(subscription.owned_partitions, self._world.image)
        if holder and may_downgrade([*self._others(holder), member], [holder], self._world):
            yield from self._hand_over(now, member, holder, stale=self.assignment_epoch < epoch, ticket=ticket)
            return
        after = self._advance(now, before, member, holder.id if holder else None, epoch, owned, puts)
        if puts:
            yield Store(tuple(puts))
        self._join_by.pop(after.id, None)
        self._begin_session(now, after)
        self._sync_by[after.id] = self._expect(now + after.rebalance_timeout_ms / 1000)
        yield Reply(ticket, joined(after, after.epoch))

    def _check_protocols(self, request: JoinGroupRequest) -> None:
        """One of its protocols must be known to all classic members."""
        names = {each.name for each in request.protocols}
        for each in self.members.values():
            if each.classic is not None:
                names &= {protocol.name for protocol in each.classic.supported_protocols}
        if request.protocol_type != CONSUMER or not names:
            raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

    def _joining(
        self, request: JoinGroupRequest, member_id: str, puts: list[Put]
    ) -> tuple[ConsumerMember, ConsumerMember | None]:
        """The member as it is so far; and as whom it was known, if it returns as a static member."""
        known = self.members.get(member_id, ConsumerMember(member_id))
        if request.group_instance_id is None:
            return known, None
        if request.member_id:
            return self._identified(request.member_id, request.group_instance_id), None
        holder = self.static_member(request.group_instance_id)
        return (self._return(holder, member_id, puts), holder) if holder else (known, None)

    def _others(self, holder: ConsumerMember) -> list[ConsumerMember]:
        return [each for each in self.members.values() if each.id != holder.id]

    def _hand_over(
        self, now: float, member: ConsumerMember, holder: ConsumerMember, *, stale: bool, ticket: Any
    ) -> Iterator[Effect]:
        """The last static member of the new protocol has come back as a classic one."""
        heirs = [Heir(each, self.target.get(each.id, ())) for each in self._others(holder)]
        heirs.append(Heir(member, self.target.get(holder.id, ())))
        generation = 0 if stale else self.epoch
        yield from self._succeed(now, heirs, rebalances=stale)
        yield Reply(ticket, joined(member, generation))

    # -- the assignment ------------------------------------------------------------------------

    @effects
    def sync(self, now: float, request: SyncGroupRequest, ticket: Any) -> Iterator[Effect]:
        """Raises what the asker hears."""
        member = self._classic(request.member_id, request.group_instance_id, request.generation_id)
        assert member.classic is not None
        protocol = member.classic.supported_protocols[0]
        for told, ours in ((request.protocol_type, CONSUMER), (request.protocol_name, protocol.name)):
            if told is not None and told != ours:
                raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if self._is_behind(member) and member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._await_join(now, member)
            raise BrokerError(ErrorCode.REBALANCE_IN_PROGRESS)
        self._sync_by.pop(member.id, None)
        self._begin_session(now, member)
        has = write_assignment(by_name(member.assigned, self._world.image), version_of(protocol.metadata))
        yield Reply(
            ticket,
            SyncGroupResponse(protocol_type=request.protocol_type, protocol_name=request.protocol_name, assignment=has),
        )

    # -- staying and leaving -------------------------------------------------------------------

    @effects
    def heartbeat(self, now: float, request: HeartbeatRequest, ticket: Any) -> Iterator[Effect]:
        """Raises what the asker hears, but for what is heard with every heartbeat."""
        member = self._classic(request.member_id, request.group_instance_id, request.generation_id)
        self._begin_session(now, member)
        code = ErrorCode.NONE
        if self._is_behind(member) or member.state is MemberState.UNREVOKED_PARTITIONS or self._may_take(member):
            self._await_join(now, member)
            code = ErrorCode.REBALANCE_IN_PROGRESS
        yield Reply(ticket, HeartbeatResponse(error_code=code))

    def _is_behind(self, member: ConsumerMember) -> bool:
        """Whether there is a newer assignment, or would be if it joined."""
        return member.epoch < self.assignment_epoch or (member.epoch < self.epoch and not self._assigned_lately)

    def _may_take(self, member: ConsumerMember) -> bool:
        """Whether nobody has any more what it waits for."""
        if member.state is not MemberState.UNRELEASED_PARTITIONS:
            return False
        lacks = self.target.get(member.id, frozenset()) - member.assigned.keys()
        return not any(self.owner(partition) for partition in lacks)

    def _await_join(self, now: float, member: ConsumerMember) -> None:
        if member.id not in self._join_by:
            self._join_by[member.id] = self._expect(now + member.rebalance_timeout_ms / 1000)

    @effects
    def leave(self, now: float, request: LeaveGroupRequest, ticket: Any) -> Iterator[Effect]:
        """Of members of either protocol: an administrator may put out any."""
        gone: dict[str, ConsumerMember] = {}
        answers = []
        for asked in request.members:
            answer = LeaveGroupResponse.Member(member_id=asked.member_id, group_instance_id=asked.group_instance_id)
            try:
                member = self._parting(asked)
                gone[member.id] = member
            except BrokerError as error:
                answer.error_code = error.code
            answers.append(answer)
        if gone:
            yield from self._fence(now, list(gone.values()))
        yield Reply(ticket, LeaveGroupResponse(members=answers))

    def _parting(self, asked: LeaveGroupRequest.Member) -> ConsumerMember:
        if asked.group_instance_id is not None and not asked.member_id:
            return self._static(asked.group_instance_id)
        return self._identified(asked.member_id, asked.group_instance_id)

    # -- who it is -----------------------------------------------------------------------------

    def _classic(self, member_id: str, instance_id: str | None, generation: int) -> ConsumerMember:
        member = self._identified(member_id, instance_id)
        if member.classic is None:
            raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} does not use the classic protocol.")
        if member.epoch != generation:
            raise BrokerError(ErrorCode.ILLEGAL_GENERATION)
        return member

    # -- the end -------------------------------------------------------------------------------

    def _fence(self, now: float, gone: Sequence[ConsumerMember]) -> Iterator[Effect]:
        parted = {each.id for each in gone}
        stay = [each for each in self.members.values() if each.id not in parted]
        if may_downgrade(stay, gone, self._world):
            heirs = [Heir(each, self.target.get(each.id, ())) for each in stay]
            yield from self._succeed(now, heirs, rebalances=True)
        else:
            yield from super()._fence(now, gone)

    def _succeed(self, now: float, heirs: Sequence[Heir], *, rebalances: bool) -> Iterator[Effect]:
        puts, self.successor = downgrade(self, heirs, self._world)
        yield Store(tuple(puts))
        yield from self.successor.loaded(now)
        if rebalances:
            yield from self.successor.rebalance(now)

    # -- time ----------------------------------------------------------------------------------

    def _late(self, now: float) -> set[str]:
        """Classic members first: whether others are the last of their kind is judged without them, at the next tick."""
        waiting = (*self._join_by.items(), *self._sync_by.items())
        late = super()._late(now) | {member_id for member_id, until in waiting if until <= now}
        return {each.id for each in self.members.values() if each.classic and each.id in late} or late

    def _deadlines(self) -> Iterator[float]:
        yield from super()._deadlines()
        yield from self._join_by.values()
        yield from self._sync_by.values()

    def _end_session(self, member_id: str) -> None:
        super()._end_session(member_id)
        self._join_by.pop(member_id, None)
        self._sync_by.pop(member_id, None)


def subscription_in(request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    """Of all protocols the same, so of the first."""
    try:
        return read_subscription(request.protocols[0].metadata)
    except MalformedMessage:
        raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, "The subscription is malformed.") from None


def described(
    member: ConsumerMember, request: JoinGroupRequest, told: ConsumerProtocolSubscription, caller: Caller
) -> ConsumerMember:
    """The member as it describes itself now.  Classic members have no patterns, and no word about assignors."""
    protocols = ((each.name, each.metadata) for each in request.protocols)
    return replace(
        member,
        instance_id=member.instance_id if request.group_instance_id is None else request.group_instance_id,
        rack_id=told.rack_id or member.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topics=frozenset(told.topics),
        regex="",
        client_id=caller.client_id,
        client_host=caller.host,
        classic=classic_metadata(request.session_timeout_ms, protocols),
    )


def joined(member: ConsumerMember, generation: int) -> JoinGroupResponse:
    """Nobody leads: there is nothing to assign."""
    assert member.classic is not None
    return JoinGroupResponse(
        generation_id=generation,
        protocol_type=CONSUMER,
        protocol_name=member.classic.supported_protocols[0].name,
        leader="",
        member_id=member.id,
        members=[],
    )
