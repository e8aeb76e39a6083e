"""A consumer group (KIP-848): the coordinator shares out the work, and every heartbeat carries it one step further.

A change of members, of what they subscribe to or of the topics raises the group's epoch; for every epoch there is a
target assignment; and every member moves towards it by itself, giving back before others take.  A heartbeat that
changes nothing stores nothing.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any

from trilogue.broker.groups.assignors import ASSIGNORS, Subscriber, Task
from trilogue.broker.groups.consumer.member import (
    TEMPORARILY_GONE,
    ConsumerMember,
    MemberState,
    by_topic,
    removal,
)
from trilogue.broker.groups.consumer.reconcile import reconcile
from trilogue.broker.groups.consumer.state import ConsumerState, fingerprint, partition_counts
from trilogue.broker.groups.patterns import matching
from trilogue.broker.groups.world import Caller, World
from trilogue.broker.machines.effects import Effect, Put, Reply, Store, effects
from trilogue.broker.names import TopicIdPartition
from trilogue.wire.apis.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from trilogue.wire.errors import BrokerError, ErrorCode

LEAVES = -1

Request = ConsumerGroupHeartbeatRequest
Response = ConsumerGroupHeartbeatResponse
Members = dict[str, ConsumerMember]


class ConsumerGroup(ConsumerState):
    def __init__(self, group_id: str, world: World) -> None:
        super().__init__(group_id, world)
        self.deadline = inf
        """When `tick` may matter: never late, sometimes early."""
        self._sessions: dict[str, float] = {}
        self._revocations: dict[str, float] = {}
        """Until when a member has to have given back what it was asked for."""
        self._seen: object = None
        """The topics that the group's epoch is up to date with."""

    # -- heartbeats ----------------------------------------------------------------------------

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
        member = told(before, request, caller)
        epoch = self._subscribe(before, member, replaced, puts)
        owned = None if request.topic_partitions is None else set(partitions_in(request.topic_partitions))
        after = self._advance(now, before, member, replaced, epoch, owned, puts)
        if puts:
            yield Store(tuple(puts))
        self._begin_session(now, after)
        yield Reply(ticket, self._answer(after, is_full(request) or after.assigned.keys() != before.assigned.keys()))

    def _advance(
        self,
        now: float,
        before: ConsumerMember,
        member: ConsumerMember,
        replaced: str | None,
        epoch: int,
        owned: Collection[TopicIdPartition] | None,
        puts: list[Put],
    ) -> ConsumerMember:
        """One step towards the target assignment of the group's epoch, which is made if there is none yet."""
        assignment_epoch, target = self._assign(epoch, member, replaced, puts)
        after = self._reconcile(before, member, replaced, assignment_epoch, target, owned)
        if after != member:
            puts.append(after.put_assignment(self.id))
            self._await_revocation(now, after)
        return after

    def _entering(self, request: Request, member_id: str, puts: list[Put]) -> tuple[ConsumerMember, str | None]:
        """The member as it is so far; and the id under which it was known, if it returns as a static member."""
        known = self.members.get(member_id)
        if request.instance_id is not None:
            return self._entering_static(request, member_id, puts)
        if known is None:
            if request.member_epoch != 0:
                raise self._unknown(member_id)
            self._check_room()
            return ConsumerMember(member_id), None
        check_epoch(known, request)
        return known, None

    def _entering_static(self, request: Request, member_id: str, puts: list[Put]) -> tuple[ConsumerMember, str | None]:
        assert request.instance_id is not None
        if request.member_epoch != 0:
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

    def _return(self, holder: ConsumerMember, member_id: str, puts: list[Put]) -> ConsumerMember:
        """A static member is back under another id: it has what it had, and starts over from epoch 0."""
        returned = replace(holder, id=member_id, epoch=0, previous_epoch=0)
        puts += removal(self.id, holder.id)
        puts.append(returned.put_metadata(self.id))
        puts.append(self.put_target(member_id, self.target.get(holder.id, ())))
        puts.append(returned.put_assignment(self.id))
        return returned

    def _check_room(self) -> None:
        room: int = self._world.config["group.consumer.max.size"]
        if len(self.members) >= room:
            problem = f"The group has reached its maximum capacity of {room} members."
            raise BrokerError(ErrorCode.GROUP_MAX_SIZE_REACHED, problem)

    # -- the group's epoch ---------------------------------------------------------------------

    def _subscribe(self, before: ConsumerMember, member: ConsumerMember, replaced: str | None, puts: list[Put]) -> int:
        """Note what the member says about itself.  The group's epoch, raised if the assignment may have to change."""
        is_new = member.id not in self.members and replaced is None
        if is_new or not member.says_the_same(before):
            puts.append(member.put_metadata(self.id))
        topics = self._world.image.topics
        if member.topics == before.topics and member.regex == before.regex and self._seen is topics:
            return self.epoch
        matched = matching(member.regex, topics) if member.regex else frozenset()  # raises for what is no pattern
        changed = member.topics != before.topics or matched != self.patterns.get(before.regex, frozenset())
        self._seen = topics
        return self._refresh(self._with(member, replaced), changed, puts)

    def _refresh(self, members: Members, changed: bool, puts: list[Put]) -> int:
        """Look at the topics again, on behalf of these members.  The group's epoch."""
        image, now_ms = self._world.image, self._world.clock()
        patterns = {each.regex: matching(each.regex, image.topics) for each in members.values() if each.regex}
        for pattern, found in patterns.items():
            if self.patterns.get(pattern) != found:
                puts.append(self.put_pattern(pattern, found, now_ms))
        puts += [self.put_pattern(each, None, now_ms) for each in self.patterns if each not in patterns]
        topics = set().union(*(each.topics | patterns.get(each.regex, frozenset()) for each in members.values()))
        metadata_hash = fingerprint(topics, image)
        if not changed and metadata_hash == self.metadata_hash:
            return self.epoch
        puts.append(self.put_epoch(self.epoch + 1, metadata_hash))
        return self.epoch + 1

    def _with(self, member: ConsumerMember, replaced: str | None) -> Members:
        return {each.id: each for each in self.members.values() if each.id != replaced} | {member.id: member}

    # -- the target assignment -----------------------------------------------------------------

    def _assign(
        self, epoch: int, member: ConsumerMember, replaced: str | None, puts: list[Put]
    ) -> tuple[int, Collection[TopicIdPartition]]:
        """The target assignment's epoch, and what it has for this member.  It is made anew for a new epoch, but not
        more often than once in an interval: many members may be coming."""
        now_ms = self._world.clock()
        former = self.target.get(replaced or member.id, frozenset())
        if epoch == self.assignment_epoch or self._assigned_lately:
            return self.assignment_epoch, former
        members = self._with(member, replaced)
        shares = self._shares(members, {**self.target, member.id: former})
        for member_id, share in sorted(shares.items()):
            known = former if member_id == member.id and replaced else self.target.get(member_id)
            if known is None or known != share:
                puts.append(self.put_target(member_id, share))
        puts.append(self.put_assignment_epoch(epoch, now_ms))
        return epoch, shares[member.id]

    @property
    def _assigned_lately(self) -> bool:
        """So lately that the assignment is not made anew yet."""
        age_ms = self._world.clock() - self.assigned_ms
        return self.assigned_ms != 0 and age_ms < self._setting("assignment.interval.ms")

    def _shares(
        self, members: Members, before: Mapping[str, frozenset[TopicIdPartition]]
    ) -> Mapping[str, Collection[TopicIdPartition]]:
        image = self._world.image
        patterns = {each.regex: matching(each.regex, image.topics) for each in members.values() if each.regex}
        wanted = {each.id: each.topics | patterns.get(each.regex, frozenset()) for each in members.values()}
        subscribers = [
            Subscriber(each.id, each.instance_id, frozenset(partition_counts(wanted[each.id], image)))
            for each in members.values()
        ]
        partitions = partition_counts(sorted(set().union(*wanted.values())), image)
        assignor = ASSIGNORS[self.preferred_assignor(members.values())]
        return assignor(Task(subscribers, partitions, before))

    # -- the member's assignment ---------------------------------------------------------------

    def _reconcile(
        self,
        before: ConsumerMember,
        member: ConsumerMember,
        replaced: str | None,
        epoch: int,
        target: Collection[TopicIdPartition],
        owned: Collection[TopicIdPartition] | None,
    ) -> ConsumerMember:
        mine = (None, member.id, replaced)
        unwanted: set[bytes] = set()
        if (member.topics, member.regex) != (before.topics, before.regex):
            image = self._world.image
            names = member.topics | (matching(member.regex, image.topics) if member.regex else frozenset())
            told = {partition[0] for partition in (*member.assigned, *target)}
            unwanted = {each for each in told if image.topic_names.get(each) not in names}
        return reconcile(member, epoch, target, owned, lambda partition: self.owner(partition) not in mine, unwanted)

    def _answer(self, member: ConsumerMember, with_assignment: bool) -> Response:
        assignment = None
        if with_assignment:
            assignment = Response.Assignment(
                topic_partitions=[
                    TopicPartitions(topic_id=topic_id, partitions=indexes)
                    for topic_id, indexes in by_topic(member.assigned).items()
                ]
            )
        return Response(
            member_id=member.id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=self._setting("heartbeat.interval.ms"),
            assignment=assignment,
        )

    # -- leaving -------------------------------------------------------------------------------

    def _depart(self, now: float, request: Request, ticket: Any) -> Iterator[Effect]:
        member = self._identified(request.member_id, request.instance_id)
        if request.member_epoch == TEMPORARILY_GONE:
            gone = replace(member, epoch=TEMPORARILY_GONE, revoking={}, assigned=dict.fromkeys(member.assigned, 0))
            self._revocations.pop(member.id, None)
            yield Store((gone.put_assignment(self.id),))
        else:
            yield from self._fence(now, [member])
        yield Reply(ticket, Response(member_id=member.id, member_epoch=request.member_epoch, heartbeat_interval_ms=0))

    def _fence(self, now: float, gone: Sequence[ConsumerMember]) -> Iterator[Effect]:
        """These are members no more: what they had is for others."""
        puts: list[Put] = []
        members = dict(self.members)
        for member in gone:
            puts += removal(self.id, member.id)
            del members[member.id]
            self._end_session(member.id)
        self._refresh(members, True, puts)
        yield Store(tuple(puts))

    # -- time ----------------------------------------------------------------------------------

    def _begin_session(self, now: float, member: ConsumerMember) -> None:
        classic = member.classic
        timeout_ms = self._setting("session.timeout.ms") if classic is None else classic.session_timeout_ms
        self._sessions[member.id] = self._expect(now + timeout_ms / 1000)

    def _await_revocation(self, now: float, member: ConsumerMember) -> None:
        """Classic members are given their time by other means: see `classic_members.py`."""
        if member.state is MemberState.UNREVOKED_PARTITIONS and member.classic is None:
            self._revocations[member.id] = self._expect(now + member.rebalance_timeout_ms / 1000)
        else:
            self._revocations.pop(member.id, None)

    def _end_session(self, member_id: str) -> None:
        """Nothing is expected of this member any more."""
        self._sessions.pop(member_id, None)
        self._revocations.pop(member_id, None)

    def _expect(self, until: float) -> float:
        self.deadline = min(self.deadline, until)
        return until

    @effects
    def tick(self, now: float) -> Iterator[Effect]:
        """Who has been silent for too long, or keeps what it should give back, is put out."""
        late = self._late(now)
        if gone := [self.members[member_id] for member_id in sorted(late) if member_id in self.members]:
            yield from self._fence(now, gone)
        for member_id in late:
            self._end_session(member_id)  # a static member may have come back under another id
        self.deadline = min(self._deadlines(), default=inf)

    def _late(self, now: float) -> set[str]:
        waiting = (*self._sessions.items(), *self._revocations.items())
        return {member_id for member_id, until in waiting if until <= now}

    def _deadlines(self) -> Iterator[float]:
        yield from self._sessions.values()
        yield from self._revocations.values()

    def loaded(self, now: float) -> list[Effect]:
        for member in self.members.values():
            self._begin_session(now, member)
            self._await_revocation(now, member)
        return []

    def touch(self, now: float, member_id: str) -> None:
        """Of these members only a heartbeat is a sign of life."""

    # -- small things --------------------------------------------------------------------------

    def _setting(self, name: str) -> int:
        """The group's own, or the broker's."""
        own = self._world.image.config("groups", self.id).get(f"consumer.{name}")
        value: int = self._world.config[f"group.consumer.{name}"] if own is None else int(own)
        return value

    def _unknown(self, member_id: str) -> BrokerError:
        return BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.id}.")


def told(member: ConsumerMember, request: Request, caller: Caller) -> ConsumerMember:
    """The member as it describes itself now; what it does not mention is as before."""
    names = request.subscribed_topic_names
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms
        if request.rebalance_timeout_ms == -1
        else request.rebalance_timeout_ms,
        topics=member.topics if names is None else frozenset(names),
        regex=member.regex if request.subscribed_topic_regex is None else request.subscribed_topic_regex,
        assignor=member.assignor if request.server_assignor is None else request.server_assignor,
        client_id=caller.client_id,
        client_host=caller.host,
        classic=None,
    )


def check_epoch(member: ConsumerMember, request: Request) -> None:
    """An older epoch will do if it is the last one and the answer with the newer may have been lost.  0 starts over."""
    epoch = request.member_epoch
    if epoch in (0, member.epoch):
        return
    owned = request.topic_partitions
    lost = owned is not None and all(partition in member.assigned for partition in partitions_in(owned))
    if epoch != member.previous_epoch or not lost:
        problem = f"The member's epoch is {member.epoch}, not {epoch}.  It must abandon its partitions and rejoin."
        raise BrokerError(ErrorCode.FENCED_MEMBER_EPOCH, problem)


def is_full(request: Request) -> bool:
    """Whether the member tells everything, and so may know nothing."""
    subscribes = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    return request.member_epoch == 0 or (
        request.rebalance_timeout_ms != -1 and subscribes and request.topic_partitions is not None
    )


def partitions_in(topics: Iterable[Request.TopicPartitions]) -> Iterator[TopicIdPartition]:
    return ((topic.topic_id, index) for topic in topics for index in topic.partitions)
