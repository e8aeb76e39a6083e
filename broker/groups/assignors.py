"""Who should have which partitions: the assignors that consumer groups may choose from.

`range` gives everybody a run of every topic, so that equal numbers of topics with equally many partitions meet.
`uniform` gives everybody equally many, and moves as little as it can.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from trilogue.broker.names import TopicIdPartition

Shares = dict[str, set[TopicIdPartition]]
"""By member."""


class Subscriber(NamedTuple):
    id: str
    instance_id: str | None
    topics: frozenset[bytes]


class Task(NamedTuple):
    members: Sequence[Subscriber]
    partitions: Mapping[bytes, int]
    """How many partitions each topic has."""
    before: Mapping[str, frozenset[TopicIdPartition]]
    """What members were to have so far."""


def by_range(task: Task) -> Shares:
    # Static members first, by their names: they keep their ranges when they come back under another id.
    members = sorted(task.members, key=lambda each: (each.instance_id is None, each.instance_id or each.id))
    shares: Shares = {each.id: set() for each in members}
    for topic_id, count in task.partitions.items():
        subscribed = [each.id for each in members if topic_id in each.topics]
        if not subscribed:
            continue
        least, extra = divmod(count, len(subscribed))
        start = 0
        for number, member_id in enumerate(subscribed):
            end = start + least + (number < extra)
            shares[member_id] |= {(topic_id, index) for index in range(start, end)}
            start = end
    return shares


def uniformly(task: Task) -> Shares:
    shares, free = kept(task)
    if len({each.topics for each in task.members}) == 1:
        share_out_evenly(shares, free)
    else:
        share_out_fairly(task, shares, free)
    return shares


def kept(task: Task) -> tuple[Shares, list[TopicIdPartition]]:
    """What may stay where it is, and what is free."""
    shares: Shares = {}
    taken: set[TopicIdPartition] = set()
    for member in task.members:
        shares[member.id] = {
            partition
            for partition in task.before.get(member.id, ())
            if partition[0] in member.topics
            and partition[1] < task.partitions.get(partition[0], 0)
            and partition not in taken
        }
        taken |= shares[member.id]
    wanted = frozenset().union(*{each.topics for each in task.members})  # most have the same
    free = [
        (topic_id, index)
        for topic_id, count in sorted(task.partitions.items())
        if topic_id in wanted
        for index in range(count)
        if (topic_id, index) not in taken
    ]
    return shares, free


def share_out_evenly(shares: Shares, free: list[TopicIdPartition]) -> None:
    """Everybody wants everything: sizes differ by one at most, and whoever has more keeps more."""
    total = len(free) + sum(map(len, shares.values()))
    least, extra = divmod(total, len(shares))
    order = sorted(shares, key=lambda member_id: (-len(shares[member_id]), member_id))
    quota = {member_id: least + (number < extra) for number, member_id in enumerate(order)}
    for member_id in order:
        surplus = sorted(shares[member_id])[quota[member_id] :]
        shares[member_id].difference_update(surplus)
        free += surplus
    at = 0
    for member_id in order:
        missing = quota[member_id] - len(shares[member_id])
        shares[member_id].update(free[at : at + missing])
        at += missing


def share_out_fairly(task: Task, shares: Shares, free: list[TopicIdPartition]) -> None:
    """Not everybody wants everything: to the least laden who wants it, until no move makes it fairer."""
    wanting = {topic_id: [each.id for each in task.members if topic_id in each.topics] for topic_id in task.partitions}

    def least_laden(topic_id: bytes) -> str:
        return min(wanting[topic_id], key=lambda member_id: (len(shares[member_id]), member_id))

    for partition in sorted(free, key=lambda partition: (len(wanting[partition[0]]), partition)):
        shares[least_laden(partition[0])].add(partition)
    moved = True
    while moved:  # ends: every move makes the sum of the squares smaller
        moved = False
        for owner in sorted(shares):
            for partition in sorted(shares[owner], reverse=True):
                other = least_laden(partition[0])
                if len(shares[owner]) - len(shares[other]) >= 2:
                    shares[owner].remove(partition)
                    shares[other].add(partition)
                    moved = True


ASSIGNORS: dict[str, Callable[[Task], Shares]] = {"uniform": uniformly, "range": by_range}
