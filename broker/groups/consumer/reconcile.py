"""From what a member has to what it should have: give back first, take then, and wait for others in between.

No partition is given to a member before nobody else has it.  That is the law of this file; all else is progress.
"""

from collections.abc import Callable, Collection
from dataclasses import replace

from trilogue.broker.groups.consumer.member import ConsumerMember, Epochs, MemberState
from trilogue.broker.names import TopicIdPartition
from trilogue.wire.errors import BrokerError, ErrorCode


def reconcile(
    member: ConsumerMember,
    target_epoch: int,
    target: Collection[TopicIdPartition],
    owned: Collection[TopicIdPartition] | None,
    is_taken: Callable[[TopicIdPartition], bool],
    unwanted: Collection[bytes] = (),
) -> ConsumerMember:
    """The member after its next step.  `owned` is what it says it still has, if it says so; `is_taken`, by others.

    `unwanted` are topics that it has just unsubscribed from: it gives them back whatever the target says."""
    epoch = member.epoch
    match member.state:
        case MemberState.STABLE if epoch == target_epoch:
            return without(member, unwanted, owned)
        case MemberState.UNREVOKED_PARTITIONS if still_owns(owned, member.revoking):
            return without(member, unwanted, owned)
        case MemberState.UNKNOWN:
            if owned is None or owned:
                raise BrokerError(ErrorCode.FENCED_MEMBER_EPOCH, "The member is in a state that nobody knows.")
            epoch = target_epoch
    wanted = {partition for partition in target if partition[0] not in unwanted}
    return step(member, epoch, target_epoch, wanted, owned, is_taken)


def without(
    member: ConsumerMember, unwanted: Collection[bytes], owned: Collection[TopicIdPartition] | None
) -> ConsumerMember:
    """As it is, but for these topics."""
    dropped = {partition: since for partition, since in member.assigned.items() if partition[0] in unwanted}
    if not dropped:
        return member
    keeps = {partition: since for partition, since in member.assigned.items() if partition not in dropped}
    gives = {**member.revoking, **dropped}
    if still_owns(owned, gives):
        return moved(member, MemberState.UNREVOKED_PARTITIONS, member.epoch, keeps, gives)
    return moved(member, member.state, member.epoch, keeps, member.revoking)


def step(
    member: ConsumerMember,
    epoch: int,
    target_epoch: int,
    target: Collection[TopicIdPartition],
    owned: Collection[TopicIdPartition] | None,
    is_taken: Callable[[TopicIdPartition], bool],
) -> ConsumerMember:
    wanted = set(target)
    keeps = {partition: since for partition, since in member.assigned.items() if partition in wanted}
    gives = {partition: since for partition, since in member.assigned.items() if partition not in wanted}
    if gives and still_owns(owned, gives):
        return moved(member, MemberState.UNREVOKED_PARTITIONS, epoch, keeps, gives)
    lacks = wanted - keeps.keys()
    takes = {partition: target_epoch for partition in lacks if not is_taken(partition)}
    waits = len(takes) < len(lacks)
    state = MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE
    return moved(member, state, target_epoch, {**keeps, **takes}, {})


def moved(member: ConsumerMember, state: MemberState, epoch: int, assigned: Epochs, revoking: Epochs) -> ConsumerMember:
    return replace(member, state=state, previous_epoch=member.epoch, epoch=epoch, assigned=assigned, revoking=revoking)


def still_owns(owned: Collection[TopicIdPartition] | None, partitions: Epochs) -> bool:
    """Who does not say, may."""
    return owned is None or any(partition in partitions for partition in owned)
