"""From a classic group to a consumer group and back, while its members live (KIP-848, online migration).

A consumer that heartbeats into a classic group of consumers makes it a consumer group; when the last such member goes
and others stay, the group is classic again.  Epochs continue generations, and the other way round.  These are the
conversions and whether they may be made; `group.py` serves groups that are in between.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from trilogue.broker.cluster.image import Image
from trilogue.broker.groups.classic.group import ClassicGroup
from trilogue.broker.groups.classic.member import ClassicMember, chosen
from trilogue.broker.groups.classic.state import CONSUMER, RECORD_VERSION
from trilogue.broker.groups.consumer.member import ClassicMetadata, ConsumerMember, by_topic
from trilogue.broker.groups.consumer.state import ConsumerState
from trilogue.broker.groups.consumer.target import fingerprint
from trilogue.broker.groups.group import Group
from trilogue.broker.groups.subscription import read_assignment, read_subscription, version_of, write_assignment
from trilogue.broker.groups.world import World
from trilogue.broker.machines.effects import Put
from trilogue.broker.names import TopicIdPartition
from trilogue.wire.errors import BrokerError, ErrorCode, MalformedMessage
from trilogue.wire.internal.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from trilogue.wire.internal.offsets import GroupMetadataKey, GroupMetadataValue

OwnedPartition = ConsumerProtocolSubscription.OwnedPartition
AssignedPartition = ConsumerProtocolAssignment.AssignedPartition

POLICY = "group.consumer.migration.policy"

AT_ONCE_MS = 0
"""When the assignment of a group that has just been converted was made: so long ago that it may be made anew."""

# -- upgrades --------------------------------------------------------------------------------------


def upgrade(group: Group, into: ConsumerState, world: World) -> list[Put]:
    """What makes a classic group this consumer group, in Kafka's order.  Raises if that cannot be."""
    if not isinstance(group, ClassicGroup):
        raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group.id} is not a consumer group.")
    check_upgrade(group, world)
    try:
        members = [to_consumer(each, group, world.image) for each in group.members.values()]
    except MalformedMessage:
        raise refused(group.id, "the embedded consumer protocol is malformed") from None
    subscribed = frozenset(topic for each in members for topic in each.topics)
    return [
        *group.tombstones(),
        *(each.put_metadata(group.id) for each in members),
        into.put_epoch(group.generation, fingerprint(subscribed, world.image)),
        *(into.put_target(each.id, each.assigned) for each in members),
        into.put_assignment_epoch(group.generation, AT_ONCE_MS),
        *(each.put_assignment(group.id) for each in members),
    ]


def check_upgrade(group: ClassicGroup, world: World) -> None:
    if world.config[POLICY].lower() not in ("upgrade", "bidirectional"):
        raise refused(group.id, "online upgrade is disabled")
    if group.protocol_type != CONSUMER:
        raise refused(group.id, "the group does not use the consumer embedded protocol")
    if len(group.members) > world.config["group.consumer.max.size"]:
        raise refused(group.id, "the group size exceeds the consumer group maximum size")


def refused(group_id: str, why: str) -> BrokerError:
    problem = f"Cannot upgrade classic group {group_id} to consumer group because {why}."
    return BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, problem)


def to_consumer(it: ClassicMember, group: ClassicGroup, image: Image) -> ConsumerMember:
    """It has what it was last assigned, and has to join again if it was about to.  Raises MalformedMessage."""
    protocol = group.protocol or chosen(list(group.members.values()))
    told = read_subscription(it.protocols[protocol])
    given = read_assignment(it.assignment)
    if given.user_data:
        raise refused(group.id, "an unsupported custom assignor is in use")  # what it wrote there would be lost
    return ConsumerMember(
        it.id,
        it.instance_id,
        told.rack_id or None,
        it.client_id,
        it.client_host,
        frozenset(told.topics),
        rebalance_timeout_ms=it.rebalance_timeout_ms,
        classic=classic_metadata(it.session_timeout_ms, it.protocols.items()),
        epoch=group.generation,
        previous_epoch=group.generation,
        assigned=dict.fromkeys(partitions_by_id(given.assigned_partitions, image), group.generation),
    )


def classic_metadata(session_timeout_ms: int, protocols: Iterable[tuple[str, bytes]]) -> ClassicMetadata:
    supported = [ClassicMetadata.SupportedProtocol(name=name, metadata=told) for name, told in protocols]
    return ClassicMetadata(session_timeout_ms=session_timeout_ms, supported_protocols=supported)


def partitions_by_id(topics: Iterable[OwnedPartition | AssignedPartition], image: Image) -> set[TopicIdPartition]:
    """Partitions by name, by id.  Topics that are gone are left out."""
    return {
        (image.topics[each.topic].id, index)
        for each in topics
        if each.topic in image.topics
        for index in each.partitions
    }


# -- downgrades ------------------------------------------------------------------------------------


class Heir(NamedTuple):
    """A member of the classic group to come, and what it is to have."""

    member: ConsumerMember
    target: Collection[TopicIdPartition]


def may_downgrade(stay: Sequence[ConsumerMember], go: Iterable[ConsumerMember], world: World) -> bool:
    """Whether these may go on by themselves: the last one that was not classic is going."""
    return (
        0 < len(stay) <= world.config["group.max.size"]
        and all(each.classic is not None for each in stay)
        and all(each.classic is None for each in go)
        and world.config[POLICY].lower() in ("downgrade", "bidirectional")
    )


def downgrade(group: ConsumerState, heirs: Sequence[Heir], world: World) -> tuple[list[Put], ClassicGroup]:
    """What makes a consumer group a classic one of these members, and that group as it will be then."""
    members = {each.member.id: to_classic(each.member) for each in heirs}
    protocol = chosen(list(members.values()))
    assignments = {each.member.id: assignment(each, protocol, world.image) for each in heirs}
    value = GroupMetadataValue(
        protocol_type=CONSUMER,
        generation=group.epoch,
        protocol=protocol,
        leader=heirs[0].member.id,
        current_state_timestamp=world.clock(),
        members=[each.to_record(protocol, assignments[each.id]) for each in members.values()],
    )
    put = Put(GroupMetadataKey(group=group.id), value, RECORD_VERSION)
    heir = ClassicGroup(group.id, world)
    heir.replay(put, live=False)
    for member in heir.members.values():
        member.protocols = members[member.id].protocols  # a record has but the chosen one
    return [*group.tombstones(), put], heir


def to_classic(it: ConsumerMember) -> ClassicMember:
    assert it.classic is not None
    return ClassicMember(
        it.id,
        it.instance_id,
        it.client_id,
        it.client_host,
        it.classic.session_timeout_ms,
        it.rebalance_timeout_ms,
        {each.name: each.metadata for each in it.classic.supported_protocols},
    )


def assignment(heir: Heir, protocol: str, image: Image) -> bytes:
    classic = heir.member.classic
    assert classic is not None
    told = next(each.metadata for each in classic.supported_protocols if each.name == protocol)
    return write_assignment(by_name(heir.target, image), version_of(told))


def by_name(partitions: Iterable[TopicIdPartition], image: Image) -> dict[str, list[int]]:
    return {
        image.topic_names[topic_id]: indexes
        for topic_id, indexes in by_topic(partitions).items()
        if topic_id in image.topic_names
    }
