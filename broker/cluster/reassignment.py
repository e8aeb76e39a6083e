"""Moves of partitions between brokers (KIP-455).  Pure, as `decisions.py` is.

A move begins with its target beside the replicas that there are: `adding` and `removing` in the topic's node say who
comes and who is to go.  Who comes follows and catches up like anybody else.  As soon as the whole target is in sync the
move is completed, in one commit: the others are no replicas any more, and a leader among them is replaced.  All of it
is in the store, so that the next controller goes on where the last one was.

Whenever somebody leaves, the partition's state is written too, under another leader epoch: what was decided for the
replicas that there were then comes too late.
"""

from collections.abc import Callable, Container, Iterator, Sequence

from trilogue.broker.cluster.decisions import (
    Change,
    check_replicas,
    elect,
    in_sync,
    leads,
    news,
    one,
    seen_from,
    with_isr,
)
from trilogue.broker.cluster.image import Image, PartitionState, Topic, topic_path
from trilogue.broker.cluster.store import Op, Update
from trilogue.wire.errors import BrokerError, ErrorCode

COMPLETED_AT_ONCE = 1000
"""Partitions of a topic: a store may bound the size of one commit.  The others are next."""

Asked = tuple[int, tuple[int, ...] | None]
"""A partition and its target; None to stop what is under way."""


def plan_moves(
    image: Image, name: str, asked: Sequence[Asked], *, may_resize: bool, unclean: bool = False, min_isr: int = 1
) -> tuple[Topic | None, list[BrokerError | None]]:
    """The topic with its partitions on their way, and why each of them is not."""
    topic = image.topics.get(name)
    if topic is None:
        problem = f"Unable to find a topic named {name}."
        return None, [BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, problem) for _ in asked]
    partitions, refusals = list(topic.partitions), list[BrokerError | None]()
    for index, target in asked:
        try:
            if not 0 <= index < len(partitions):
                problem = f"Unable to find partition {name}:{index}."
                raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, problem)
            here = seen_from(image, name, index)
            if target is None:
                partitions[index] = cancelled(here, partitions[index], unclean=unclean, min_isr=min_isr)
            else:
                partitions[index] = moving(here, partitions[index], target, may_resize=may_resize, min_isr=min_isr)
        except BrokerError as refusal:
            refusals.append(refusal)
        else:
            refusals.append(None)
    return topic._replace(partitions=tuple(partitions)), refusals


def moving(
    image: Image, state: PartitionState, target: tuple[int, ...], *, may_resize: bool = True, min_isr: int = 1
) -> PartitionState:
    """On its way to other replicas, in place of any other way it is on; or there already."""
    # Who is known may be gone: then the move waits for him.
    check_replicas({*image.brokers, *image.gone, *state.replicas}, target, None)
    if not may_resize and len(target) != len(target_of(state)):
        problem = f"The partition has {len(target_of(state))} replica(s), and {len(target)} would be another number."
        raise BrokerError(ErrorCode.INVALID_REPLICATION_FACTOR, problem)
    leaving = tuple(sorted(set(state.replicas) - set(target)))
    # Kafka forgets here who had come with an earlier move; then nobody could go back to where the first one began.
    coming = {*target, *leaving} - set(before_moving(state))
    under_way = state._replace(replicas=(*target, *leaving), adding=tuple(sorted(coming)), removing=leaving)
    return completed(image, under_way, min_isr) or under_way


def cancelled(image: Image, state: PartitionState, *, unclean: bool = False, min_isr: int = 1) -> PartitionState:
    """Back where it was."""
    if not state.moves:
        raise BrokerError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    back = before_moving(state)
    if not any(each in back for each in state.isr):
        if not unclean:
            problem = "Nobody of those who were replicas before is in sync: to go back would lose data."
            raise BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
        state = with_isr(image, state, back[:1], min_isr=1)
    return left_to(image, state, back, unclean=unclean, min_isr=min_isr)


def completed(image: Image, state: PartitionState, min_isr: int = 1) -> PartitionState | None:
    """At the end of its move; None if it is on none, or some of the target are not in sync."""
    target = target_of(state)
    if not state.moves or not target:
        return None
    if not all(each in state.isr and in_sync(image, state, each) for each in target):
        return None
    return left_to(image, state, target, unclean=False, min_isr=min_isr)


def target_of(state: PartitionState) -> tuple[int, ...]:
    return tuple(each for each in state.replicas if each not in state.removing)


def before_moving(state: PartitionState) -> tuple[int, ...]:
    return tuple(each for each in state.replicas if each not in state.adding)


def left_to(
    image: Image, state: PartitionState, replicas: tuple[int, ...], *, unclean: bool, min_isr: int
) -> PartitionState:
    """With these of its replicas and no others: the leader stays if he is one of them."""
    isr = tuple(each for each in state.isr if each in replicas)
    after = with_isr(image, state._replace(replicas=replicas, adding=(), removing=()), isr, min_isr)
    if len(replicas) == len(state.replicas):
        return after
    if after.leader in replicas and leads(image, after):
        return after._replace(leader_epoch=after.leader_epoch + 1)
    return elect(image, after, unclean, min_isr) or after


def move_ops(before: Topic, after: Topic, controller_epoch: int) -> list[Op]:
    """Whoever moves is written in the topic's node, and who has left in the partition's state as well."""
    if after == before:
        return []
    return [
        Update(topic_path(after.name), after.to_json(), before.version),
        *(each.op(controller_epoch) for each in changes(before, after)),
    ]


def changes(before: Topic, after: Topic) -> list[Change]:
    """The partitions with another state, which says that it belongs to the topic's node as it will be."""
    return [
        Change(after.name, index, now._replace(topic_version=before.version + 1))
        for index, (then, now) in enumerate(zip(before.partitions, after.partitions, strict=True))
        if now.to_json(0) != then.to_json(0)
    ]


def completions(
    image: Image,
    seen: Image | None = None,
    without: Container[str] = (),
    min_isr: Callable[[str], int] = one,
) -> Iterator[Topic]:
    """Every topic with moves that have come to their end: as it is then.

    `seen` is the image that was looked at last; `without` are topics that are to be left alone this time.
    """
    for topic in news(image, seen):
        if topic.name in without or not any(each.moves for each in topic.partitions):
            continue
        partitions, ended, needed = list(topic.partitions), 0, min_isr(topic.name)
        for index, state in enumerate(partitions):
            here = seen_from(image, topic.name, index)
            if ended < COMPLETED_AT_ONCE and (after := completed(here, state, needed)) is not None:
                partitions[index] = after
                ended += 1
        if ended:
            yield topic._replace(partitions=tuple(partitions))
