"""A consumer group's epoch, and who should have what in it: here a rebalance is decided.

A change of members, of what they subscribe to or of their topics raises the epoch, and a new epoch wants a target
assignment of its own.  Nothing is changed in this file; what is decided is put into records.
"""

from collections.abc import Collection, Iterable, Mapping
from hashlib import blake2b

from trilogue.broker.cluster.image import Image
from trilogue.broker.groups.assignors import ASSIGNORS, Subscriber, Task
from trilogue.broker.groups.consumer.member import ConsumerMember
from trilogue.broker.groups.consumer.state import ConsumerState
from trilogue.broker.groups.patterns import matching
from trilogue.broker.groups.world import World
from trilogue.broker.machines.effects import Put
from trilogue.broker.names import TopicIdPartition

Members = Mapping[str, ConsumerMember]
NOTHING: frozenset[str] = frozenset()


def next_epoch(group: ConsumerState, members: Members, world: World, *, changed: bool, puts: list[Put]) -> int:
    """The group's epoch once it has these members: a new one if they have `changed`, or if their topics have."""
    image, now_ms = world.image, world.clock()
    patterns = matched(members, image)
    for pattern, found in patterns.items():
        if (before := group.patterns.get(pattern)) is not found and before != found:  # as a rule they share one set
            puts.append(group.put_pattern(pattern, found, now_ms))
    puts += [group.put_pattern(each, None, now_ms) for each in group.patterns if each not in patterns]
    metadata_hash = fingerprint(set().union(*subscriptions(members, patterns).values()), image)
    if not changed and metadata_hash == group.metadata_hash:
        return group.epoch
    puts.append(group.put_epoch(group.epoch + 1, metadata_hash))
    return group.epoch + 1


def shares(
    members: Members, before: Mapping[str, frozenset[TopicIdPartition]], assignor: str, image: Image
) -> Mapping[str, Collection[TopicIdPartition]]:
    """The target assignment, by member.  `before` is the one so far."""
    patterns = matched(members, image)
    wanted = subscriptions(members, patterns)
    ids = {both: frozenset(partition_counts(topics, image)) for both, topics in wanted.items()}
    subscribers = [
        Subscriber(each.id, each.instance_id, ids[each.topics, patterns.get(each.regex, NOTHING)])
        for each in members.values()
    ]
    partitions = partition_counts(sorted(set().union(*wanted.values())), image)
    return ASSIGNORS[assignor](Task(subscribers, partitions, before))


def subscriptions(
    members: Members, patterns: Mapping[str, frozenset[str]]
) -> dict[tuple[frozenset[str], frozenset[str]], frozenset[str]]:
    """All topics, for every two of names and of what a pattern matches: once for all members that have the same."""
    both = {(each.topics, patterns.get(each.regex, NOTHING)) for each in members.values()}
    return {(names, found): names | found for names, found in both}


def matched(members: Members, image: Image) -> dict[str, frozenset[str]]:
    """The topics of every pattern that a member subscribes by."""
    return {each.regex: matching(each.regex, image.topics) for each in members.values() if each.regex}


def fingerprint(topics: Iterable[str], image: Image) -> int:
    """Of what a group's assignment depends on: its topics that there are, and their partitions.  0 for none.

    Kafka takes another function.  Whoever takes a group over from the other finds it changed, and assigns once more.
    """
    known = [image.topics[name] for name in sorted(topics) if name in image.topics]
    if not known:
        return 0
    told = b"".join(each.id + len(each.partitions).to_bytes(4, "big") for each in known)
    return int.from_bytes(blake2b(told, digest_size=8).digest(), "big", signed=True)


def partition_counts(topics: Iterable[str], image: Image) -> Mapping[bytes, int]:
    return {image.topics[name].id: len(image.topics[name].partitions) for name in topics if name in image.topics}
