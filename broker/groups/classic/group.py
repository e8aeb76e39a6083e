"""A classic group: one of its members shares out the work (JoinGroup, SyncGroup, Heartbeat, LeaveGroup).

The group is told what happened and when, and answers with what to do.  A generation that has its assignment, or has
no members, is stored, and only then is the group Stable or Empty.  Everything before is forgotten when the
coordinator moves: members join again, as in Kafka.
"""

from collections.abc import Iterable, Iterator
from math import inf
from typing import Any, NamedTuple

from trilogue.broker.groups.classic.member import (
    NEW_MEMBER_SECONDS,
    ClassicMember,
    Parked,
    chosen,
    common,
    protocols_of,
)
from trilogue.broker.groups.classic.state import ClassicState, State
from trilogue.broker.groups.group import Group
from trilogue.broker.groups.world import Caller, World
from trilogue.broker.machines.effects import Effect, Reply, Store, effects
from trilogue.wire.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from trilogue.wire.apis.join_group import JoinGroupRequest, JoinGroupResponse
from trilogue.wire.apis.leave_group import LeaveGroupRequest, LeaveGroupResponse
from trilogue.wire.apis.sync_group import SyncGroupRequest, SyncGroupResponse
from trilogue.wire.errors import BrokerError, ErrorCode

MEMBER_ID_REQUIRED_SINCE = 4
SKIP_ASSIGNMENT_SINCE = 9
NULL_PROTOCOL_SINCE = 7

AGAIN_SECONDS = 1.0
"""How often we look at least whether one of the static members, all of them away, has come back."""


class Opening(NamedTuple):
    """The first rebalance of an empty group: it waits a little for more, and again as long as more come."""

    delay_ms: int
    remaining_ms: int
    more: bool = False


class ClassicGroup(ClassicState, Group):
    def __init__(self, group_id: str, world: World) -> None:
        super().__init__(group_id, world)
        self._opening: Opening | None = None
        self._join_deadline = self._sync_deadline = inf

    # -- joining -------------------------------------------------------------------------------

    @effects
    def join(
        self, now: float, request: JoinGroupRequest, caller: Caller, fresh_id: str, ticket: Any
    ) -> Iterator[Effect]:
        """Raises what the asker hears at once."""
        member_id, instance_id = request.member_id, request.group_instance_id
        if not self._has_room(member_id):
            self._drop(member_id)
            yield Reply(ticket, join_refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, "", caller.version))
            yield from self._complete_if_ready(now)
            return
        self._check_protocols(request)
        if member_id in self._pending and instance_id is None:
            yield from self._admit(now, request, caller, member_id, ticket)
        elif member_id:
            self.check_member(member_id, instance_id)
            yield from self._rejoin(now, request, caller, ticket)
        elif instance_id is not None:
            new_id = f"{instance_id}-{fresh_id}"
            if instance_id in self._statics:
                yield from self._replace(now, request, caller, new_id, ticket)
            else:
                yield from self._admit(now, request, caller, new_id, ticket)
        elif caller.version >= MEMBER_ID_REQUIRED_SINCE:
            new_id = f"{caller.client_id}-{fresh_id}"
            self._pending[new_id] = now + request.session_timeout_ms / 1000
            self._expect(self._pending[new_id])
            yield Reply(ticket, join_refusal(ErrorCode.MEMBER_ID_REQUIRED, new_id, caller.version))
        else:
            yield from self._admit(now, request, caller, f"{caller.client_id}-{fresh_id}", ticket)

    def _has_room(self, member_id: str) -> bool:
        room: int = self._world.config["group.max.size"]
        known = self.members.get(member_id)
        match self.state:
            case State.EMPTY:
                return True
            case State.PREPARING:
                waiting = sum(each.joining is not None for each in self.members.values())
                return waiting < room or (known is not None and known.joining is not None)
            case _:
                return known is not None or len(self.members) < room

    def _check_protocols(self, request: JoinGroupRequest) -> None:
        names = {each.name for each in request.protocols}
        if self.state is State.EMPTY:
            fitting = bool(request.protocol_type and names)
        else:
            possible = not self.members or names & common(list(self.members.values()))
            fitting = request.protocol_type == self.protocol_type and bool(names and possible)
        if not fitting:
            raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

    def _admit(
        self, now: float, request: JoinGroupRequest, caller: Caller, member_id: str, ticket: Any
    ) -> Iterator[Effect]:
        """Somebody new.  It counts as new until its first generation."""
        member = ClassicMember(
            member_id,
            request.group_instance_id,
            caller.client_id,
            caller.host,
            request.session_timeout_ms,
            request.rebalance_timeout_ms,
            protocols_of(request),
            deadline=now + NEW_MEMBER_SECONDS,
            is_new=True,
            joining=Parked(ticket, caller.version),
        )
        if self._opening:
            self._opening = self._opening._replace(more=True)
        self._pending.pop(member_id, None)
        self._add(member, request.protocol_type)
        yield from self._rebalance_or_complete(now)

    def _rejoin(self, now: float, request: JoinGroupRequest, caller: Caller, ticket: Any) -> Iterator[Effect]:
        member = self.members[request.member_id]
        leads = member.id == self.leader
        if self.state is State.COMPLETING and member.matches(request):
            yield Reply(ticket, self._joined(member, shows_members=leads))  # our first answer was lost
        elif self.state is State.STABLE and member.matches(request) and not leads:
            yield Reply(ticket, self._joined(member, shows_members=False))
        else:
            yield from self._park(member, request, caller, ticket)
            yield from self._rebalance_or_complete(now)

    def _park(self, member: ClassicMember, request: JoinGroupRequest, caller: Caller, ticket: Any) -> Iterator[Effect]:
        if member.joining:  # on another connection; Kafka would never answer it
            yield Reply(
                member.joining.ticket,
                join_refusal(ErrorCode.REBALANCE_IN_PROGRESS, member.id, member.joining.version),
            )
        member.update(request)
        member.joining = Parked(ticket, caller.version)
        if not member.is_new:
            member.deadline = inf

    def _replace(
        self, now: float, request: JoinGroupRequest, caller: Caller, new_id: str, ticket: Any
    ) -> Iterator[Effect]:
        """A static member has started anew: it takes its own place, under a new id; whoever uses the old is fenced."""
        assert request.group_instance_id is not None
        old_leader = self.leader
        member = self.members.pop(self._statics[request.group_instance_id])
        yield from self._fence(member)
        if self.leader == member.id:
            self.leader = new_id
        member.id = self._statics[request.group_instance_id] = new_id
        member.is_new = False
        self.members[new_id] = member
        yield from self._park(member, request, caller, ticket)
        if self.state is State.STABLE and chosen(list(self.members.values())) == self.protocol:
            member.joining = None
            member.touch(now)
            self._expect(member.deadline)
            yield Store((self._record(self.generation, {m.id: m.assignment for m in self.members.values()}),))
            yield Reply(ticket, self._returned(member, caller, old_leader))
        elif self.state is State.PREPARING:
            yield from self._complete_if_ready(now)
        else:
            yield from self._prepare(now)

    def _fence(self, member: ClassicMember) -> Iterator[Effect]:
        code = ErrorCode.FENCED_INSTANCE_ID
        if member.joining:
            yield Reply(member.joining.ticket, join_refusal(code, member.id, member.joining.version))
        if member.syncing:
            yield Reply(member.syncing, SyncGroupResponse(error_code=code, assignment=b""))
        member.joining = member.syncing = None

    def _returned(self, member: ClassicMember, caller: Caller, old_leader: str | None) -> JoinGroupResponse:
        """A static member is back and nothing changes.  v9+: the leader hears who is here, but assigns nothing.

        Before v9 the leader must not learn that it leads, lest it hand in an assignment: it is told its old id."""
        leads = member.id == self.leader
        if caller.version >= SKIP_ASSIGNMENT_SINCE:
            answer = self._joined(member, shows_members=leads)
            answer.skip_assignment = leads
            return answer
        answer = self._joined(member, shows_members=False)
        answer.leader = old_leader or ""
        return answer

    def _joined(self, member: ClassicMember, *, shows_members: bool) -> JoinGroupResponse:
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol,
            leader=self.leader or "",
            member_id=member.id,
            members=[
                JoinGroupResponse.Member(
                    member_id=each.id,
                    group_instance_id=each.instance_id,
                    metadata=each.protocols.get(self.protocol or "", b""),
                )
                for each in (self.members.values() if shows_members else ())
            ],
        )

    # -- rebalancing ---------------------------------------------------------------------------

    def _rebalance_or_complete(self, now: float) -> Iterator[Effect]:
        if self.state is State.PREPARING:
            yield from self._complete_if_ready(now)
        else:
            yield from self._prepare(now)

    @effects
    def rebalance(self, now: float) -> Iterator[Effect]:
        """Everybody is to join again."""
        yield from self._prepare(now)

    def _prepare(self, now: float) -> Iterator[Effect]:
        for member in self.members.values():
            member.synced = True
            if self.state is State.COMPLETING:
                member.assignment = b""
                if member.syncing:
                    yield Reply(member.syncing, sync_refusal(ErrorCode.REBALANCE_IN_PROGRESS))
                    member.syncing = None
                    member.touch(now)
                    self._expect(member.deadline)
        self._sync_deadline = inf
        opening = self.state is State.EMPTY
        self._enter(State.PREPARING)
        if opening:
            delay_ms: int = self._world.config["group.initial.rebalance.delay.ms"]
            self._opening = Opening(delay_ms, max(int(self.rebalance_seconds * 1000) - delay_ms, 0))
            if delay_ms <= 0:
                yield from self._complete_join(now)
            else:
                self._await_joins(now + delay_ms / 1000)
        elif self._all_joined():
            yield from self._complete_join(now)
        else:
            self._await_joins(now + self.rebalance_seconds)

    def _await_joins(self, until: float) -> None:
        self._join_deadline = until
        self._expect(until)

    def _all_joined(self) -> bool:
        return not self._pending and all(each.joining for each in self.members.values())

    def _complete_if_ready(self, now: float) -> Iterator[Effect]:
        if self.state is State.PREPARING and self._opening is None and self._all_joined():
            yield from self._complete_join(now)

    def _complete_join(self, now: float) -> Iterator[Effect]:
        """The next generation begins, with those who are here.  Static members may be absent and stay."""
        self._join_deadline, self._opening = inf, None
        for member in list(self.members.values()):
            if member.joining is None and not member.is_static:
                self._drop(member.id)
        if not self.members:
            yield Store((self._record(self.generation + 1, {}),))
            return
        if not self._elect():
            self._await_joins(now + max(self.rebalance_seconds, AGAIN_SECONDS))
            return
        self.generation += 1
        self.protocol = chosen(list(self.members.values()))
        self.subscribed = self._subscriptions()
        self._enter(State.COMPLETING)
        for member in self.members.values():
            if member.joining:
                leads = member.id == self.leader
                yield Reply(member.joining.ticket, self._joined(member, shows_members=leads))
            member.joining, member.is_new, member.synced = None, False, False
            member.touch(now)
            self._expect(member.deadline)
        self._sync_deadline = now + self.rebalance_seconds
        self._expect(self._sync_deadline)

    def _elect(self) -> bool:
        """A leader who is here.  False if nobody is: all are static, and away."""
        if self.leader in self.members and self.members[self.leader].joining:
            return True
        present = next((each.id for each in self.members.values() if each.joining), None)
        self.leader = present or self.leader
        return present is not None

    # -- the assignment ------------------------------------------------------------------------

    @effects
    def sync(self, now: float, request: SyncGroupRequest, ticket: Any) -> Iterator[Effect]:
        """Raises what the asker hears at once."""
        self.check_member(request.member_id, request.group_instance_id)
        self.check_generation(request.generation_id)
        for told, ours in ((request.protocol_type, self.protocol_type), (request.protocol_name, self.protocol)):
            if told is not None and ours is not None and told != ours:
                raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if self.state is State.PREPARING:
            raise BrokerError(ErrorCode.REBALANCE_IN_PROGRESS)
        member = self.members[request.member_id]
        member.synced = True
        if all(each.synced for each in self.members.values()):
            self._sync_deadline = inf
        if self.state is State.STABLE:
            yield Reply(ticket, self._synced(member.assignment))
            return
        if member.syncing:  # on another connection; Kafka would never answer it
            yield Reply(member.syncing, sync_refusal(ErrorCode.REBALANCE_IN_PROGRESS))
        member.syncing, member.deadline = ticket, inf
        if member.id == self.leader:
            yield from self._share_out(now, request.assignments)

    def _share_out(self, now: float, given: Iterable[SyncGroupRequest.Assignment]) -> Iterator[Effect]:
        assignments = {each.member_id: each.assignment for each in given}
        yield Store((self._record(self.generation, assignments),))
        for member in self.members.values():
            if member.syncing:
                yield Reply(member.syncing, self._synced(assignments.get(member.id, b"")))
                member.syncing = None
                member.touch(now)
                self._expect(member.deadline)

    def _synced(self, assignment: bytes) -> SyncGroupResponse:
        return SyncGroupResponse(protocol_type=self.protocol_type, protocol_name=self.protocol, assignment=assignment)

    # -- staying and leaving -------------------------------------------------------------------

    @effects
    def heartbeat(self, now: float, request: HeartbeatRequest, ticket: Any) -> Iterator[Effect]:
        self.check_member(request.member_id, request.group_instance_id)
        self.check_generation(request.generation_id)
        self.touch(now, request.member_id)
        waiting = self.state is State.PREPARING
        yield Reply(
            ticket, HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS if waiting else ErrorCode.NONE)
        )

    def touch(self, now: float, member_id: str) -> None:
        """The member has been heard from: a heartbeat, or a commit.  Its deadline can only move away."""
        if member := self.members.get(member_id):
            member.touch(now)

    @effects
    def leave(self, now: float, request: LeaveGroupRequest, ticket: Any) -> Iterator[Effect]:
        answers = []
        for asked in request.members:
            answer = LeaveGroupResponse.Member(member_id=asked.member_id, group_instance_id=asked.group_instance_id)
            try:
                yield from self._part(asked)
            except BrokerError as error:
                answer.error_code = error.code
            answers.append(answer)
        if any(each.error_code == ErrorCode.NONE for each in answers) and self.state is not State.EMPTY:
            yield from self._rebalance_or_complete(now)
        yield Reply(ticket, LeaveGroupResponse(members=answers))

    def _part(self, asked: LeaveGroupRequest.Member) -> Iterator[Effect]:
        member_id = asked.member_id
        if not member_id and asked.group_instance_id is not None:  # an administrator puts it out by its name
            member_id = self._statics.get(asked.group_instance_id, "")
        elif member_id in self._pending:
            del self._pending[member_id]
            return
        self.check_member(member_id, asked.group_instance_id)
        yield from self._remove(self.members[member_id])

    def _remove(self, member: ClassicMember) -> Iterator[Effect]:
        if member.joining:
            yield Reply(member.joining.ticket, join_refusal(ErrorCode.UNKNOWN_MEMBER_ID, "", member.joining.version))
        if member.syncing:
            yield Reply(member.syncing, sync_refusal(ErrorCode.UNKNOWN_MEMBER_ID))
        self._drop(member.id)

    @effects
    def turn_away(self) -> Iterator[Effect]:
        """The group is to be another: whoever waits has to ask again."""
        for member in self.members.values():
            if member.joining:
                refusal = join_refusal(ErrorCode.REBALANCE_IN_PROGRESS, member.id, member.joining.version)
                yield Reply(member.joining.ticket, refusal)
            if member.syncing:
                yield Reply(member.syncing, sync_refusal(ErrorCode.REBALANCE_IN_PROGRESS))

    # -- time ----------------------------------------------------------------------------------

    @effects
    def tick(self, now: float) -> Iterator[Effect]:
        """Time has passed: drop who is late, and stop waiting for the absent."""
        for member_id, deadline in list(self._pending.items()):
            if deadline <= now:
                del self._pending[member_id]
                yield from self._complete_after_loss(now)
        for member in [each for each in self.members.values() if each.deadline <= now]:
            yield from self._remove(member)
            if self.state is State.PREPARING:
                yield from self._complete_after_loss(now)
            else:
                yield from self._prepare(now)
        if self._join_deadline <= now:
            yield from self._end_of_patience(now)
        if self._sync_deadline <= now:
            for member in [each for each in self.members.values() if not each.synced]:
                self._drop(member.id)
            yield from self._prepare(now)
        waiting = (self._join_deadline, self._sync_deadline, *self._pending.values())
        self.deadline = min([*waiting, *(each.deadline for each in self.members.values())])

    def _complete_after_loss(self, now: float) -> Iterator[Effect]:
        """Unlike in `_complete_if_ready`, nobody is coming whom an opening group should wait for."""
        if self.state is State.PREPARING and self._join_deadline < inf and self._all_joined():
            yield from self._complete_join(now)

    def _end_of_patience(self, now: float) -> Iterator[Effect]:
        opening = self._opening
        if opening is None or not opening.more or opening.remaining_ms <= 0:
            yield from self._complete_join(now)
            return
        configured: int = self._world.config["group.initial.rebalance.delay.ms"]
        delay_ms = min(configured, opening.remaining_ms)
        self._opening = Opening(delay_ms, max(opening.remaining_ms - opening.delay_ms, 0))
        self._await_joins(now + delay_ms / 1000)

    @effects
    def loaded(self, now: float) -> Iterator[Effect]:
        """The group has been read from the log: its members have a session from now on."""
        for member in self.members.values():
            member.touch(now)
            self._expect(member.deadline)
        if len(self.members) > self._world.config["group.max.size"]:
            yield from self._prepare(now)  # the limit was lowered: who comes first stays


def join_refusal(code: ErrorCode, member_id: str, version: int) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=code,
        protocol_name=None if version >= NULL_PROTOCOL_SINCE else "",
        leader="",
        member_id=member_id,
        members=[],
    )


def sync_refusal(code: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code, assignment=b"")
