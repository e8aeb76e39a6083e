"""What is stored of a consumer group (KIP-848), and what follows from it.  Written by `replay` and by nothing else."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import ClassVar

from trilogue.broker.groups.consumer.member import (
    ConsumerMember,
    MemberState,
    from_records,
    put_target,
    removal,
)
from trilogue.broker.groups.offsets import Committed
from trilogue.broker.groups.patterns import shared
from trilogue.broker.groups.world import World
from trilogue.broker.machines.effects import Put
from trilogue.broker.names import TopicIdPartition
from trilogue.wire.errors import BrokerError, ErrorCode
from trilogue.wire.internal.consumer_groups import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from trilogue.wire.schema import Key

FIRST_EPOCH = 1
"""Of a group that nobody has subscribed anything in yet."""

MODERN_COMMIT = 9
"""The first OffsetCommit that knows member epochs."""


NOBODY = ("", None, -1)
"""What a producer says that knows no members: id, instance and epoch."""


class ConsumerState:
    kind: ClassVar[str] = "consumer"
    keys: ClassVar[tuple[type[Key], ...]] = (
        ConsumerGroupMetadataKey,
        ConsumerGroupPartitionMetadataKey,  # of Kafka before 4.1; says nothing that we use
        ConsumerGroupMemberMetadataKey,
        ConsumerGroupTargetAssignmentMetadataKey,
        ConsumerGroupTargetAssignmentMemberKey,
        ConsumerGroupCurrentMemberAssignmentKey,
        ConsumerGroupRegularExpressionKey,
    )
    protocol_type: str | None = "consumer"

    def __init__(self, group_id: str, world: World) -> None:
        self.id, self._world = group_id, world
        self.epoch = self.assignment_epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assigned_ms = 0
        """When the target assignment was made."""
        self.members: dict[str, ConsumerMember] = {}
        self.target: dict[str, frozenset[TopicIdPartition]] = {}
        self.patterns: dict[str, frozenset[str]] = {}
        """What each pattern of a member matched when we last looked."""
        self._statics: dict[str, str] = {}
        self._owners: dict[TopicIdPartition, str] = {}

    # -- facts ---------------------------------------------------------------------------------

    @property
    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        reconciled = all(each.is_reconciled_to(self.assignment_epoch) for each in self.members.values())
        return "Stable" if reconciled else "Reconciling"

    @property
    def is_empty(self) -> bool:
        return not self.members

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        return self.members.get(self._statics.get(instance_id, ""))

    def owner(self, partition: TopicIdPartition) -> str | None:
        """Who has a partition, or has still to give it back."""
        return self._owners.get(partition)

    def subscriptions(self, member: ConsumerMember) -> frozenset[str]:
        return member.topics | self.patterns.get(member.regex, frozenset())

    def is_subscribed_to(self, topic: str) -> bool:
        return any(topic in self.subscriptions(each) for each in self.members.values())

    def preferred_assignor(self, members: Iterable[ConsumerMember]) -> str:
        """What most members ask for; the first that is configured, if none does."""
        votes: dict[str, int] = {}
        for each in members:
            if each.assignor is not None:
                votes[each.assignor] = votes.get(each.assignor, 0) + 1
        default: str = self._world.config["group.consumer.assignors"][0]
        return max(votes, key=lambda name: votes[name]) if votes else default

    @property
    def assigned_lately(self) -> bool:
        """So lately that the assignment is not made anew yet.  Not if the clock has been put back since."""
        age_ms = self._world.clock() - self.assigned_ms
        return self.assigned_ms != 0 and 0 <= age_ms < self.setting("assignment.interval.ms")

    def setting(self, name: str) -> int:
        """The group's own, or the broker's."""
        own = self._world.image.config("groups", self.id).get(f"consumer.{name}")
        value: int = self._world.config[f"group.consumer.{name}"] if own is None else int(own)
        return value

    # -- checks --------------------------------------------------------------------------------

    def check_commit(self, member_id: str, instance_id: str | None, epoch: int, version: int) -> None:
        """An older epoch will do: see `may_commit`."""
        if epoch < 0 and not self.members:
            return
        member = self._known(member_id)
        if member.classic is None and version < MODERN_COMMIT:
            raise BrokerError(ErrorCode.UNSUPPORTED_VERSION)
        if epoch > member.epoch or (epoch < member.epoch and member.classic is not None):
            raise stale(member)

    def may_commit(self, member_id: str, epoch: int, partition: TopicIdPartition) -> ErrorCode:
        """Who has a partition since that epoch or longer may not have heard of the newer one yet (KIP-1251)."""
        member = self.members.get(member_id)
        if member is None or epoch == member.epoch:
            return ErrorCode.NONE
        since = member.assigned.get(partition)
        return ErrorCode.NONE if since is not None and since <= epoch else stale(member).code

    def check_commit_in_transaction(self, member_id: str, instance_id: str | None, epoch: int) -> None:
        """Producers of old say nothing about themselves, and may.  An older epoch will do: see `may_commit`."""
        if (epoch < 0 and not self.members) or (member_id, instance_id, epoch) == NOBODY:
            return
        member = self._known(member_id)
        if epoch > member.epoch or (epoch < member.epoch and member.classic is not None):
            raise stale(member)

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        if member_id is None and epoch < 0:
            return
        member = self._known(member_id or "")
        if member.epoch != epoch:
            raise stale(member)

    def check_offset_delete(self) -> None:
        """What members are subscribed to is refused by itself."""

    def check_delete(self) -> None:
        if self.members:
            raise BrokerError(ErrorCode.NON_EMPTY_GROUP)

    def idle_since_ms(self, committed: Committed) -> int | None:
        return committed.commit_ms

    def _known(self, member_id: str) -> ConsumerMember:
        member = self.members.get(member_id)
        if member is None:
            raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.id}.")
        return member

    def _static(self, instance_id: str) -> ConsumerMember:
        holder = self.static_member(instance_id)
        if holder is None:
            raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
        return holder

    def _identified(self, member_id: str, instance_id: str | None) -> ConsumerMember:
        """By its id, and by its name if it has told one."""
        if instance_id is None:
            return self._known(member_id)
        holder = self._static(instance_id)
        if holder.id != member_id:
            problem = f"Static member {member_id} with instance id {instance_id} was fenced by {holder.id}."
            raise BrokerError(ErrorCode.FENCED_INSTANCE_ID, problem)
        return holder

    # -- records -------------------------------------------------------------------------------

    def put_epoch(self, epoch: int, metadata_hash: int) -> Put:
        value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
        return Put(ConsumerGroupMetadataKey(group_id=self.id), value)

    def put_assignment_epoch(self, epoch: int, now_ms: int) -> Put:
        value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=now_ms)
        return Put(ConsumerGroupTargetAssignmentMetadataKey(group_id=self.id), value)

    def put_target(self, member_id: str, partitions: Iterable[TopicIdPartition]) -> Put:
        return put_target(self.id, member_id, partitions)

    def put_pattern(self, pattern: str, topics: Collection[str] | None, now_ms: int) -> Put:
        key = ConsumerGroupRegularExpressionKey(group_id=self.id, regular_expression=pattern)
        if topics is None:
            return Put(key, None)
        return Put(key, ConsumerGroupRegularExpressionValue(topics=sorted(topics), version=0, timestamp=now_ms))

    def tombstones(self) -> list[Put]:
        """Nothing is left of the group."""
        puts = [put for member_id in self.members for put in removal(self.id, member_id)]
        puts += [self.put_pattern(pattern, None, 0) for pattern in self.patterns]
        puts.append(Put(ConsumerGroupTargetAssignmentMetadataKey(group_id=self.id), None))
        puts.append(Put(ConsumerGroupMetadataKey(group_id=self.id), None))
        return puts

    # -- replay --------------------------------------------------------------------------------

    def replay(self, put: Put, *, live: bool) -> None:
        key, value = put.key, put.value
        match key:
            case ConsumerGroupMetadataKey():
                assert isinstance(value, ConsumerGroupMetadataValue)
                self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
            case ConsumerGroupTargetAssignmentMetadataKey():
                if isinstance(value, ConsumerGroupTargetAssignmentMetadataValue):
                    self.assignment_epoch, self.assigned_ms = value.assignment_epoch, value.assignment_timestamp
            case ConsumerGroupMemberMetadataKey():
                self._replay_member(key.member_id, value)  # type: ignore[arg-type]
            case ConsumerGroupTargetAssignmentMemberKey():
                if isinstance(value, ConsumerGroupTargetAssignmentMemberValue):
                    partitions = (
                        (each.topic_id, index) for each in value.topic_partitions for index in each.partitions
                    )
                    self.target[key.member_id] = frozenset(partitions)
                else:
                    self.target.pop(key.member_id, None)
            case ConsumerGroupCurrentMemberAssignmentKey():
                self._replay_assignment(key.member_id, value)  # type: ignore[arg-type]
            case ConsumerGroupRegularExpressionKey():
                if isinstance(value, ConsumerGroupRegularExpressionValue):
                    self.patterns[key.regular_expression] = shared(value.topics)
                else:
                    self.patterns.pop(key.regular_expression, None)

    def _replay_member(self, member_id: str, value: ConsumerGroupMemberMetadataValue | None) -> None:
        before = self.members.get(member_id, ConsumerMember(member_id))
        if before.instance_id is not None and self._statics.get(before.instance_id) == member_id:
            del self._statics[before.instance_id]
        if value is None:
            self._release(before)
            self.members.pop(member_id, None)
            return
        if value.instance_id is not None:
            self._statics[value.instance_id] = member_id
        self.members[member_id] = replace(
            before,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topics=frozenset(value.subscribed_topic_names),
            regex=value.subscribed_topic_regex or "",
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            assignor=value.server_assignor,
            classic=value.classic_member_metadata,
        )

    def _replay_assignment(self, member_id: str, value: ConsumerGroupCurrentMemberAssignmentValue | None) -> None:
        before = self.members.get(member_id)
        if before is None:
            if value is None:
                return
            before = ConsumerMember(member_id)
        self._release(before)
        if value is None:
            after = replace(before, epoch=-1, previous_epoch=-1, state=MemberState.STABLE, assigned={}, revoking={})
        else:
            after = replace(
                before,
                epoch=value.member_epoch,
                previous_epoch=value.previous_member_epoch,
                state=MemberState(value.state),
                assigned=from_records(value.assigned_partitions, value.member_epoch),
                revoking=from_records(value.partitions_pending_revocation, value.member_epoch),
            )
        self.members[member_id] = after
        for partition in (*after.assigned, *after.revoking):
            self._owners[partition] = member_id

    def _release(self, member: ConsumerMember) -> None:
        for partition in (*member.assigned, *member.revoking):
            if self._owners.get(partition) == member.id:
                del self._owners[partition]


def stale(member: ConsumerMember) -> BrokerError:
    if member.classic is not None:
        return BrokerError(ErrorCode.ILLEGAL_GENERATION)
    return BrokerError(ErrorCode.STALE_MEMBER_EPOCH, f"The member's epoch is {member.epoch}.")
