"""One member of a consumer group (KIP-848), and its records.  Members do not change: there is a newer one instead."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from trilogue.broker.machines.effects import Put
from trilogue.broker.names import TopicIdPartition
from trilogue.wire.internal.consumer_groups import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    TopicPartitions,
)

Epochs = Mapping[TopicIdPartition, int]
"""Partitions, and since which epoch a member has each."""

ClassicMetadata = ConsumerGroupMemberMetadataValue.ClassicMemberMetadata
TargetPartitions = ConsumerGroupTargetAssignmentMemberValue.TopicPartitions

TEMPORARILY_GONE = -2
"""The epoch of a static member that will be back."""


class MemberState(IntEnum):
    STABLE = 0
    """Has what it should have."""
    UNREVOKED_PARTITIONS = 1
    """Has to give back something first."""
    UNRELEASED_PARTITIONS = 2
    """Waits for something that another has to give back first."""
    UNKNOWN = 127
    """Of a newer Kafka."""

    @classmethod
    def _missing_(cls, value: object) -> "MemberState":
        return cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    regex: str = ""
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    classic: ClassicMetadata | None = None
    """Of a member that speaks the classic protocol (KIP-848: migration)."""
    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: Epochs = field(default_factory=dict)
    revoking: Epochs = field(default_factory=dict)

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == epoch

    def says_the_same(self, other: "ConsumerMember") -> bool:
        """About itself; what it has been given is another record."""
        return self.metadata() == other.metadata()

    # -- records -------------------------------------------------------------------------------

    def metadata(self) -> ConsumerGroupMemberMetadataValue:
        return ConsumerGroupMemberMetadataValue(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=sorted(self.topics),
            subscribed_topic_regex=self.regex,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            server_assignor=self.assignor,
            classic_member_metadata=self.classic,
        )

    def put_metadata(self, group_id: str) -> Put:
        return Put(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=self.id), self.metadata())

    def put_assignment(self, group_id: str) -> Put:
        value = ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=self.epoch,
            previous_member_epoch=self.previous_epoch,
            state=self.state,
            assigned_partitions=with_epochs(self.assigned),
            partitions_pending_revocation=with_epochs(self.revoking),
        )
        return Put(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=self.id), value)


def with_epochs(partitions: Epochs) -> list[TopicPartitions]:
    return [
        TopicPartitions(
            topic_id=topic_id,
            partitions=indexes,
            assignment_epochs=[partitions[topic_id, index] for index in indexes],
        )
        for topic_id, indexes in by_topic(partitions).items()
    ]


def from_records(topics: Iterable[TopicPartitions], epoch: int) -> dict[TopicIdPartition, int]:
    """`epoch` is for records of brokers that did not write since when."""
    found = {}
    for topic in topics:
        epochs = topic.assignment_epochs or [epoch] * len(topic.partitions)
        for index, since in zip(topic.partitions, epochs, strict=False):
            found[topic.topic_id, index] = since
    return found


def by_topic(partitions: Iterable[TopicIdPartition]) -> dict[bytes, list[int]]:
    found: dict[bytes, list[int]] = {}
    for topic_id, index in sorted(partitions):
        found.setdefault(topic_id, []).append(index)
    return found


def put_target(group_id: str, member_id: str, partitions: Iterable[TopicIdPartition]) -> Put:
    topics = [TargetPartitions(topic_id=each, partitions=indexes) for each, indexes in by_topic(partitions).items()]
    return Put(
        ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        ConsumerGroupTargetAssignmentMemberValue(topic_partitions=topics),
    )


def removal(group_id: str, member_id: str) -> list[Put]:
    """In the order in which Kafka forgets a member."""
    return [
        Put(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        Put(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        Put(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]
