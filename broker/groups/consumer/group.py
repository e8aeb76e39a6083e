"""A consumer group (KIP-848): the coordinator shares out the work, and every heartbeat carries it one step further.

A change of members, of what they subscribe to or of the topics raises the group's epoch; the target assignment is made
anew for the newest epoch; and every member moves towards it by itself, giving back before others take.  A heartbeat
that changes nothing stores nothing.

Classic members are served as well (`classic_members.py`), while the group goes from one protocol to the other.  When
the last member of the new protocol goes and others stay, the group has a `successor`, which is a classic group.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from math import inf
from typing import Any

from trilogue.broker.groups.classic.group import MEMBER_ID_REQUIRED_SINCE, ClassicGroup, join_refusal
from trilogue.broker.groups.classic.state import CONSUMER
from trilogue.broker.groups.consumer import classic_members, heartbeat
from trilogue.broker.groups.consumer.heartbeat import JOINS, LEAVES, check_epoch, is_full, owned_by
from trilogue.broker.groups.consumer.member import TEMPORARILY_GONE, ConsumerMember, MemberState, removal
from trilogue.broker.groups.consumer.migration import Heir, by_name, downgrade, may_downgrade, partitions_by_id
from trilogue.broker.groups.consumer.state import ConsumerState
from trilogue.broker.groups.consumer.step import Step
from trilogue.broker.groups.consumer.target import next_epoch
from trilogue.broker.groups.group import Group
from trilogue.broker.groups.subscription import version_of, write_assignment
from trilogue.broker.groups.world import Caller, World
from trilogue.broker.machines.effects import Effect, Put, Reply, Store, effects
from trilogue.broker.names import TopicIdPartition
from trilogue.wire.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from trilogue.wire.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from trilogue.wire.apis.join_group import JoinGroupRequest
from trilogue.wire.apis.leave_group import LeaveGroupRequest, LeaveGroupResponse
from trilogue.wire.apis.sync_group import SyncGroupRequest, SyncGroupResponse
from trilogue.wire.errors import BrokerError, ErrorCode

Request = ConsumerGroupHeartbeatRequest


class ConsumerGroup(ConsumerState, Group):
    def __init__(self, group_id: str, world: World) -> None:
        super().__init__(group_id, world)
        self.deadline = inf
        """When `tick` may matter: never late, sometimes early."""
        self.successor: ClassicGroup | None = None
        self._seen: object = None
        """The topics that the group's epoch is up to date with."""
        self._sessions: dict[str, float] = {}
        self._revocations: dict[str, float] = {}
        """Until when a member has to have given back what it was asked for."""
        self._joins: dict[str, float] = {}
        """Until when classic members that were told to join again have to."""
        self._syncs: dict[str, float] = {}
        """Until when classic members that have joined have to ask what they have."""
        self._timers = (self._sessions, self._revocations, self._joins, self._syncs)

    # -- members of the new protocol -----------------------------------------------------------

    @effects
    def consumer_heartbeat(
        self, now: float, request: Request, caller: Caller, fresh_id: str, ticket: Any
    ) -> Iterator[Effect]:
        """Raises what the asker hears."""
        if request.member_epoch in (LEAVES, TEMPORARILY_GONE):
            yield from self._depart(now, request, ticket)
            return
        puts: list[Put] = []
        before, replaced = self._entering(request, request.member_id or fresh_id, puts)
        member = heartbeat.described(before, request, caller)
        step = Step(self, self._world, before, member, replaced, puts)
        after = self._advance(now, step, self._subscribe(step), owned_by(request))
        if puts:
            yield Store(tuple(puts))
        self._begin_session(now, after)
        interval_ms = self.setting("heartbeat.interval.ms")
        news = is_full(request) or after.assigned.keys() != before.assigned.keys()
        yield Reply(ticket, heartbeat.answer(after, interval_ms, with_assignment=news))

    def _entering(self, request: Request, member_id: str, puts: list[Put]) -> tuple[ConsumerMember, str | None]:
        """The member as it is so far; and the id under which it was known, if it returns as a static member."""
        if request.instance_id is not None:
            return self._entering_static(request, member_id, puts)
        if request.member_epoch == JOINS and member_id not in self.members:
            self._check_room()
            return ConsumerMember(member_id), None
        known = self._known(member_id)
        check_epoch(known, request)
        return known, None

    def _entering_static(self, request: Request, member_id: str, puts: list[Put]) -> tuple[ConsumerMember, str | None]:
        assert request.instance_id is not None
        if request.member_epoch != JOINS:
            known = self._identified(member_id, request.instance_id)
            check_epoch(known, request)
            return known, None
        holder = self.static_member(request.instance_id)
        if holder is None:
            if member_id not in self.members:
                self._check_room()
            return self.members.get(member_id, ConsumerMember(member_id)), None
        if holder.classic is None and holder.epoch != TEMPORARILY_GONE:
            problem = f"Instance id {request.instance_id} is owned by member {holder.id}."
            raise BrokerError(ErrorCode.UNRELEASED_INSTANCE_ID, problem)
        return self._return(holder, member_id, puts), holder.id

    def _depart(self, now: float, request: Request, ticket: Any) -> Iterator[Effect]:
        member = self._identified(request.member_id, request.instance_id)
        if request.member_epoch == TEMPORARILY_GONE:
            gone = replace(member, epoch=TEMPORARILY_GONE, revoking={}, assigned=dict.fromkeys(member.assigned, 0))
            self._revocations.pop(member.id, None)
            yield Store((gone.put_assignment(self.id),))
        else:
            yield from self._fence(now, [member])
        yield Reply(ticket, heartbeat.farewell(member, request.member_epoch))

    # -- members of the classic protocol -------------------------------------------------------

    @effects
    def join(
        self, now: float, request: JoinGroupRequest, caller: Caller, fresh_id: str, ticket: Any
    ) -> Iterator[Effect]:
        """Raises what the asker hears."""
        member_id = request.member_id or fresh_id
        if member_id not in self.members:
            self._check_room()
        classic_members.check_protocols(request, self.members.values())
        if not request.member_id and request.group_instance_id is None and caller.version >= MEMBER_ID_REQUIRED_SINCE:
            yield Reply(ticket, join_refusal(ErrorCode.MEMBER_ID_REQUIRED, member_id, caller.version))
            return
        subscription = classic_members.subscription_in(request)
        puts: list[Put] = []
        before, holder = self._joining(request, member_id, puts)
        member = classic_members.described(before, request, subscription, caller)
        step = Step(self, self._world, before, member, holder.id if holder else None, puts)
        epoch = self._subscribe(step)
        owned = partitions_by_id(subscription.owned_partitions, self._world.image)
        if holder and may_downgrade([*self._others(holder), member], [holder], self._world):
            yield from self._hand_over(now, member, holder, stale=self.assignment_epoch < epoch, ticket=ticket)
            return
        after = self._advance(now, step, epoch, owned)
        if puts:
            yield Store(tuple(puts))
        self._joins.pop(after.id, None)
        self._begin_session(now, after)
        self._syncs[after.id] = self._expect(now + after.rebalance_timeout_ms / 1000)
        yield Reply(ticket, classic_members.joined(after, after.epoch))

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

    @effects
    def sync(self, now: float, request: SyncGroupRequest, ticket: Any) -> Iterator[Effect]:
        """Raises what the asker hears."""
        member = self._classic_member(request.member_id, request.group_instance_id, request.generation_id)
        assert member.classic is not None
        protocol = member.classic.supported_protocols[0]
        for told, ours in ((request.protocol_type, CONSUMER), (request.protocol_name, protocol.name)):
            if told is not None and told != ours:
                raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if self._is_behind(member) and member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._await_join(now, member)
            raise BrokerError(ErrorCode.REBALANCE_IN_PROGRESS)
        self._syncs.pop(member.id, None)
        self._begin_session(now, member)
        has = write_assignment(by_name(member.assigned, self._world.image), version_of(protocol.metadata))
        yield Reply(
            ticket,
            SyncGroupResponse(protocol_type=request.protocol_type, protocol_name=request.protocol_name, assignment=has),
        )

    @effects
    def heartbeat(self, now: float, request: HeartbeatRequest, ticket: Any) -> Iterator[Effect]:
        """Raises what the asker hears, but for the news that it has to join again."""
        member = self._classic_member(request.member_id, request.group_instance_id, request.generation_id)
        self._begin_session(now, member)
        code = ErrorCode.NONE
        if self._is_behind(member) or member.state is MemberState.UNREVOKED_PARTITIONS or self._may_take(member):
            self._await_join(now, member)
            code = ErrorCode.REBALANCE_IN_PROGRESS
        yield Reply(ticket, HeartbeatResponse(error_code=code))

    @effects
    def leave(self, now: float, request: LeaveGroupRequest, ticket: Any) -> Iterator[Effect]:
        """Of members of either protocol: an administrator may put out any."""
        gone: dict[str, ConsumerMember] = {}
        answers = []
        for asked in request.members:
            answer = LeaveGroupResponse.Member(member_id=asked.member_id, group_instance_id=asked.group_instance_id)
            try:
                member = self._leaving(asked)
                gone[member.id] = member
            except BrokerError as error:
                answer.error_code = error.code
            answers.append(answer)
        if gone:
            yield from self._fence(now, list(gone.values()))
        yield Reply(ticket, LeaveGroupResponse(members=answers))

    def _leaving(self, asked: LeaveGroupRequest.Member) -> ConsumerMember:
        if asked.group_instance_id is not None and not asked.member_id:
            return self._static(asked.group_instance_id)
        return self._identified(asked.member_id, asked.group_instance_id)

    def _classic_member(self, member_id: str, instance_id: str | None, generation: int) -> ConsumerMember:
        member = self._identified(member_id, instance_id)
        if member.classic is None:
            raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} does not use the classic protocol.")
        if member.epoch != generation:
            raise BrokerError(ErrorCode.ILLEGAL_GENERATION)
        return member

    def _is_behind(self, member: ConsumerMember) -> bool:
        """Whether there is a newer assignment, or would be if it joined."""
        return member.epoch < self.assignment_epoch or (member.epoch < self.epoch and not self.assigned_lately)

    def _may_take(self, member: ConsumerMember) -> bool:
        """Whether nobody has any more what it waits for."""
        if member.state is not MemberState.UNRELEASED_PARTITIONS:
            return False
        lacks = self.target.get(member.id, frozenset()) - member.assigned.keys()
        return not any(self.owner(partition) for partition in lacks)

    # -- one step of a member, of either protocol ----------------------------------------------

    def _check_room(self) -> None:
        room: int = self._world.config["group.consumer.max.size"]
        if len(self.members) >= room:
            problem = f"The group has reached its maximum capacity of {room} members."
            raise BrokerError(ErrorCode.GROUP_MAX_SIZE_REACHED, problem)

    def _return(self, holder: ConsumerMember, member_id: str, puts: list[Put]) -> ConsumerMember:
        """A static member is back under another id: it has what it had, and starts over from epoch 0."""
        returned = replace(holder, id=member_id, epoch=0, previous_epoch=0)
        puts += removal(self.id, holder.id)
        puts.append(returned.put_metadata(self.id))
        puts.append(self.put_target(member_id, self.target.get(holder.id, ())))
        puts.append(returned.put_assignment(self.id))
        return returned

    def _subscribe(self, step: Step) -> int:
        topics = self._world.image.topics
        epoch = step.subscribe(topics_changed=self._seen is not topics)
        self._seen = topics
        return epoch

    def _advance(
        self, now: float, step: Step, epoch: int, owned: Collection[TopicIdPartition] | None
    ) -> ConsumerMember:
        after = step.advance(epoch, owned)
        if step.moved:
            self._await_revocation(now, after)
        return after

    def _others(self, member: ConsumerMember) -> list[ConsumerMember]:
        return [each for each in self.members.values() if each.id != member.id]

    # -- who goes, and when the group is classic again -----------------------------------------

    def _fence(self, now: float, gone: Sequence[ConsumerMember]) -> Iterator[Effect]:
        """These are members no more: what they had is for others."""
        parted = {each.id for each in gone}
        stay = {each.id: each for each in self.members.values() if each.id not in parted}
        if may_downgrade(list(stay.values()), gone, self._world):
            heirs = [Heir(each, self.target.get(each.id, ())) for each in stay.values()]
            yield from self._succeed(now, heirs, rebalances=True)
            return
        puts: list[Put] = []
        for member in gone:
            puts += removal(self.id, member.id)
            self._forget(member.id)
        next_epoch(self, stay, self._world, changed=True, puts=puts)
        yield Store(tuple(puts))

    def _hand_over(
        self, now: float, member: ConsumerMember, holder: ConsumerMember, *, stale: bool, ticket: Any
    ) -> Iterator[Effect]:
        """The last static member of the new protocol has come back as a classic one."""
        heirs = [Heir(each, self.target.get(each.id, ())) for each in self._others(holder)]
        heirs.append(Heir(member, self.target.get(holder.id, ())))
        generation = 0 if stale else self.epoch
        yield from self._succeed(now, heirs, rebalances=stale)
        yield Reply(ticket, classic_members.joined(member, generation))

    def _succeed(self, now: float, heirs: Sequence[Heir], *, rebalances: bool) -> Iterator[Effect]:
        puts, self.successor = downgrade(self, heirs, self._world)
        yield Store(tuple(puts))
        yield from self.successor.loaded(now)
        if rebalances:
            yield from self.successor.rebalance(now)

    # -- time ----------------------------------------------------------------------------------

    def _begin_session(self, now: float, member: ConsumerMember) -> None:
        classic = member.classic
        timeout_ms = self.setting("session.timeout.ms") if classic is None else classic.session_timeout_ms
        self._sessions[member.id] = self._expect(now + timeout_ms / 1000)

    def _await_revocation(self, now: float, member: ConsumerMember) -> None:
        """Classic members give back by joining again: see `_await_join`."""
        if member.state is MemberState.UNREVOKED_PARTITIONS and member.classic is None:
            self._revocations[member.id] = self._expect(now + member.rebalance_timeout_ms / 1000)
        else:
            self._revocations.pop(member.id, None)

    def _await_join(self, now: float, member: ConsumerMember) -> None:
        if member.id not in self._joins:
            self._joins[member.id] = self._expect(now + member.rebalance_timeout_ms / 1000)

    def _expect(self, until: float) -> float:
        self.deadline = min(self.deadline, until)
        return until

    def _forget(self, member_id: str) -> None:
        """Nothing is expected of this member any more."""
        for timer in self._timers:
            timer.pop(member_id, None)

    @effects
    def tick(self, now: float) -> Iterator[Effect]:
        """Who has been silent for too long, or keeps what it should give back, is put out."""
        late = self._late(now)
        if gone := [self.members[member_id] for member_id in sorted(late) if member_id in self.members]:
            yield from self._fence(now, gone)
        for member_id in late:
            self._forget(member_id)  # a static member may have come back under another id
        self.deadline = min((until for timer in self._timers for until in timer.values()), default=inf)

    def _late(self, now: float) -> set[str]:
        """Classic members first: whether others are the last of their kind is judged without them, at the next tick."""
        late = {member_id for timer in self._timers for member_id, until in timer.items() if until <= now}
        return {each.id for each in self.members.values() if each.classic and each.id in late} or late

    def loaded(self, now: float) -> list[Effect]:
        for member in self.members.values():
            self._begin_session(now, member)
            self._await_revocation(now, member)
        return []

    def touch(self, now: float, member_id: str) -> None:
        """In these groups only a heartbeat is a sign of life."""
