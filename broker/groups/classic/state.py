"""Who is in a classic group, in which state it is, and how that is stored.

`state` is written by `_enter`, and by `_load`, which has it from the log.  A group is Stable or Empty again when
that has been stored, not before; the other states, and who waits for what, nobody knows after a restart.
"""

from enum import Enum
from math import inf
from typing import ClassVar

from trilogue.broker.groups.classic.member import ClassicMember
from trilogue.broker.groups.offsets import Committed
from trilogue.broker.groups.subscription import read_subscription
from trilogue.broker.groups.world import World
from trilogue.broker.machines.effects import Put
from trilogue.wire.errors import BrokerError, ErrorCode, MalformedMessage
from trilogue.wire.internal.offsets import GroupMetadataKey, GroupMetadataValue
from trilogue.wire.schema import Key

CONSUMER = "consumer"
"""The protocol type whose metadata we can read."""

RECORD_VERSION = 3


class State(Enum):
    EMPTY = "Empty"
    """No members; offsets may linger.  Joins are welcome, all else hears UNKNOWN_MEMBER_ID."""
    PREPARING = "PreparingRebalance"
    """Collecting members.  Joins are parked; syncs and heartbeats hear REBALANCE_IN_PROGRESS."""
    COMPLETING = "CompletingRebalance"
    """Waiting for the leader's assignment.  Syncs are parked."""
    STABLE = "Stable"
    """Everybody may know their part.  Heartbeats are all it takes."""


NEXT = {
    State.EMPTY: {State.PREPARING},
    State.PREPARING: {State.COMPLETING, State.EMPTY},
    State.COMPLETING: {State.STABLE, State.PREPARING},
    State.STABLE: {State.PREPARING},
}
"""From each state, where a group may go.  Anything else is a bug."""


class ClassicState:
    kind: ClassVar[str] = "classic"
    keys: ClassVar[tuple[type[Key], ...]] = (GroupMetadataKey,)

    def __init__(self, group_id: str, world: World) -> None:
        self.id, self._world = group_id, world
        self.state = State.EMPTY
        self.state_since_ms = world.clock()
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self.subscribed: frozenset[str] | None = None
        """The topics of its members; None if we cannot tell."""
        self.deadline = inf
        """When `tick` may matter: never late, sometimes early."""
        self._statics: dict[str, str] = {}
        self._pending: dict[str, float] = {}
        """Those who were given an id and told to come back with it, and until when."""

    # -- facts ---------------------------------------------------------------------------------

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def is_empty(self) -> bool:
        return self.state is State.EMPTY

    @property
    def rebalance_seconds(self) -> float:
        """The most patient member's patience."""
        return max((each.rebalance_timeout_ms for each in self.members.values()), default=0) / 1000

    # -- checks --------------------------------------------------------------------------------

    def check_member(self, member_id: str, instance_id: str | None) -> None:
        if instance_id is not None:
            holder = self._statics.get(instance_id)
            if holder is None:
                raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID)
            if holder != member_id:
                raise BrokerError(ErrorCode.FENCED_INSTANCE_ID)
        if member_id not in self.members:
            raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID)

    def check_generation(self, generation: int) -> None:
        if generation != self.generation:
            raise BrokerError(ErrorCode.ILLEGAL_GENERATION)

    def check_commit(self, member_id: str, instance_id: str | None, generation: int, version: int) -> None:
        """May these offsets be committed?  Whoever is no member may commit only while there are none."""
        if generation < 0 and self.state is State.EMPTY:
            return
        if generation < 0 and not member_id and instance_id is None:
            raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID)
        self.check_member(member_id, instance_id)
        self.check_generation(generation)
        if self.state is State.COMPLETING:
            raise BrokerError(ErrorCode.REBALANCE_IN_PROGRESS)

    def check_commit_in_transaction(self, member_id: str, instance_id: str | None, generation: int) -> None:
        """Producers of old say nothing about themselves, and may."""
        if generation >= 0 or (self.state is not State.EMPTY and (member_id or instance_id is not None)):
            self.check_member(member_id, instance_id)
            self.check_generation(generation)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Anybody may know the offsets of a classic group."""

    def check_offset_delete(self) -> None:
        if self.state is not State.EMPTY and self.protocol_type != CONSUMER:
            raise BrokerError(ErrorCode.NON_EMPTY_GROUP)

    def check_delete(self) -> None:
        if self.state is not State.EMPTY:
            raise BrokerError(ErrorCode.NON_EMPTY_GROUP)

    def is_subscribed_to(self, topic: str) -> bool:
        """If in doubt, a group of consumers is."""
        if self.subscribed is None:
            return self.protocol_type == CONSUMER and self.state is not State.EMPTY
        return topic in self.subscribed

    def idle_since_ms(self, committed: Committed) -> int | None:
        """When the retention of this offset began; None while it is in use (KIP-211)."""
        if self.protocol_type is None:
            return committed.commit_ms
        if self.state is State.EMPTY:
            return self.state_since_ms if self.state_since_ms != -1 else committed.commit_ms
        if self.state is State.STABLE and self.protocol_type == CONSUMER and self.subscribed is not None:
            return committed.commit_ms
        return None

    # -- changes -------------------------------------------------------------------------------

    def _add(self, member: ClassicMember, protocol_type: str) -> None:
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader is None:
            self.leader = member.id
        if member.instance_id is not None:
            self._statics[member.instance_id] = member.id
        self.members[member.id] = member
        self._expect(member.deadline)

    def _drop(self, member_id: str) -> None:
        self._pending.pop(member_id, None)
        member = self.members.pop(member_id, None)
        if member is None:
            return
        if member.instance_id is not None:
            del self._statics[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)

    def _expect(self, deadline: float) -> None:
        self.deadline = min(self.deadline, deadline)

    def _enter(self, state: State) -> None:
        assert state in NEXT[self.state], f"{self.id}: {self.state} -> {state}"
        self.state, self.state_since_ms = state, self._world.clock()

    def _subscriptions(self) -> frozenset[str] | None:
        if self.protocol_type != CONSUMER:
            return None
        try:
            told = [read_subscription(each.protocols[self.protocol or ""]) for each in self.members.values()]
        except (MalformedMessage, KeyError):
            return None
        return frozenset(topic for each in told for topic in each.topics)

    # -- the log -------------------------------------------------------------------------------

    def tombstones(self) -> list[Put]:
        return [Put(GroupMetadataKey(group=self.id), None)]

    def first_record(self) -> Put:
        """That there is such a group."""
        value = GroupMetadataValue(
            protocol_type="", generation=0, protocol=None, leader=None, current_state_timestamp=self.state_since_ms,
            members=[],
        )  # fmt: skip
        return Put(GroupMetadataKey(group=self.id), value, RECORD_VERSION)

    def _record(self, generation: int, assignments: dict[str, bytes]) -> Put:
        """A generation with its assignment, or without members."""
        members = list(self.members.values())
        value = GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=generation,
            protocol=self.protocol if members else None,
            leader=self.leader if members else None,
            current_state_timestamp=self._world.clock(),
            members=[each.to_record(self.protocol, assignments.get(each.id, b"")) for each in members],
        )
        return Put(GroupMetadataKey(group=self.id), value, RECORD_VERSION)

    def replay(self, put: Put, *, live: bool) -> None:
        assert isinstance(put.value, GroupMetadataValue)
        if live:
            self._settle(put.value)
        else:
            self._load(put.value)

    def _settle(self, value: GroupMetadataValue) -> None:
        """A generation of ours is stored.  Of its members we know more than the record says."""
        if bool(value.members) != bool(self.members) or (value.members and self.state is State.PREPARING):
            return  # that there is such a group; we are further than that already
        self.generation, self.protocol, self.leader = value.generation, value.protocol, value.leader
        for each in value.members:
            self.members[each.member_id].assignment = each.assignment
        state = State.STABLE if value.members else State.EMPTY
        if self.state is not state:
            self._enter(state)
        self.subscribed = self._subscriptions()
        self.state_since_ms = value.current_state_timestamp

    def _load(self, value: GroupMetadataValue) -> None:
        """The record is all there is to know."""
        self.members, self._statics = {}, {}
        for each in value.members:
            self._add(ClassicMember.from_record(each, value.protocol), value.protocol_type)
        self.state = State.STABLE if value.members else State.EMPTY
        self.state_since_ms = value.current_state_timestamp
        self.generation, self.protocol, self.leader = value.generation, value.protocol, value.leader
        self.protocol_type = value.protocol_type or None
        self.subscribed = self._subscriptions()
