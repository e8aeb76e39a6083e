"""What the controller decides: topics, replicas, leaders.  Pure: an image and a request go in, ops come out.

Every change is tied to the version it was decided on, and to the controller's epoch by whoever commits it: a
decision that has become old does nothing.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from trilogue.broker.cluster.image import (
    NO_LEADER,
    Image,
    PartitionState,
    Topic,
    config_path,
    state_path,
    to_json,
    topic_path,
)
from trilogue.broker.cluster.placement import place, racks_of
from trilogue.broker.cluster.store import Create, Delete, Op, Update
from trilogue.broker.names import METADATA_TOPIC, check_name
from trilogue.wire.errors import BrokerError, ErrorCode

PARTITIONS_PER_REQUEST_MAX = 10_000
"""Of one request; Kafka draws the same line."""


class NewTopic(NamedTuple):
    name: str
    num_partitions: int
    replication_factor: int
    assignments: Mapping[int, Sequence[int]]
    """Replicas by partition, if the client wants to say; then the two numbers are -1."""
    configs: Mapping[str, str]


class Change(NamedTuple):
    """A partition that becomes something else."""

    topic: str
    partition: int
    state: PartitionState

    def op(self, controller_epoch: int) -> Op:
        return Update(state_path(self.topic, self.partition), self.state.to_json(controller_epoch), self.state.version)


# -- topics ----------------------------------------------------------------------------------------


def plan_topic(image: Image, new: NewTopic, topic_id: bytes, defaults: tuple[int, int], start: int) -> Topic:
    """The topic asked for, or a refusal.  `defaults` are partitions and replication; `start` spreads leaders."""
    check_name(new.name)
    if new.name == METADATA_TOPIC:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {new.name} is prohibited.")
    if new.name in image.topics:
        raise BrokerError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{new.name}' already exists.")
    check_collision(image, new.name)
    if new.assignments:
        replicas = assigned(image, new)
    else:
        count, factor = checked_numbers(image, new, defaults)
        replicas = placed(image, count, factor, start)
    return Topic(new.name, topic_id, tuple(first_state(image, each) for each in replicas))


def check_collision(image: Image, name: str) -> None:
    """Metrics write '.' and '_' alike, so two topics must not differ in nothing else."""
    if "." in name or "_" in name:
        alike = name.replace(".", "_")
        for other in image.topics:
            if other.replace(".", "_") == alike:
                problem = f"Topic '{name}' collides with existing topic: {other}"
                raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)


def checked_numbers(image: Image, new: NewTopic, defaults: tuple[int, int]) -> tuple[int, int]:
    count = defaults[0] if new.num_partitions == -1 else new.num_partitions
    factor = defaults[1] if new.replication_factor == -1 else new.replication_factor
    if factor < 1:
        problem = "Replication factor must be larger than 0, or -1 to use the default value."
        raise BrokerError(ErrorCode.INVALID_REPLICATION_FACTOR, problem)
    if count < 1:
        problem = "Number of partitions was set to an invalid non-positive value."
        raise BrokerError(ErrorCode.INVALID_PARTITIONS, problem)
    if count > PARTITIONS_PER_REQUEST_MAX:
        problem = f"Excessively large number of partitions per request: {count}; {PARTITIONS_PER_REQUEST_MAX} at most."
        raise BrokerError(ErrorCode.POLICY_VIOLATION, problem)
    check_enough_brokers(image, factor)
    return count, factor


def check_enough_brokers(image: Image, factor: int) -> None:
    registered = len(image.brokers) + len(image.gone)
    if factor > registered:
        problem = (
            f"Unable to replicate the partition {factor} time(s): The target replication factor of {factor} cannot be "
            f"reached because only {registered} broker(s) are registered."
        )
        raise BrokerError(ErrorCode.INVALID_REPLICATION_FACTOR, problem)


def assigned(image: Image, new: NewTopic) -> list[tuple[int, ...]]:
    if new.num_partitions != -1:
        problem = "A manual partition assignment was specified, but numPartitions was not set to -1."
        raise BrokerError(ErrorCode.INVALID_REQUEST, problem)
    if new.replication_factor != -1:
        problem = "A manual partition assignment was specified, but replication factor was not set to -1."
        raise BrokerError(ErrorCode.INVALID_REQUEST, problem)
    if sorted(new.assignments) != list(range(len(new.assignments))):
        problem = "partitions should be a consecutive 0-based integer sequence"
        raise BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
    replicas = [tuple(new.assignments[i]) for i in range(len(new.assignments))]
    for each in replicas:
        check_new_replicas(image, each, len(replicas[0]))
    return replicas


def check_new_replicas(image: Image, replicas: tuple[int, ...], factor: int) -> None:
    check_replicas({*image.brokers, *image.gone}, replicas, factor)
    if not any(each in image.brokers for each in replicas):
        problem = f"Nobody of {replicas} is there: the partition would have no leader."
        raise BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)


def check_replicas(known: Collection[int], replicas: tuple[int, ...], factor: int | None) -> None:
    """Refuse replicas that are nobody, twice the same, or not as many as the other partitions have."""
    if not replicas:
        raise BrokerError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "The manual partition assignment includes an empty replica list."
        )
    for broker in sorted(replicas):
        if broker not in known:
            problem = f"The manual partition assignment includes broker {broker}, but no such broker is registered."
            raise BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
        if replicas.count(broker) > 1:
            problem = f"The manual partition assignment includes the broker {broker} more than once."
            raise BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
    if factor is not None and len(replicas) != factor:
        problem = (
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is not "
            f"consistent with previous partitions, which have {factor} replica(s)."
        )
        raise BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)


def placed(image: Image, count: int, factor: int, start: int) -> list[tuple[int, ...]]:
    """Who is not there, or about to go, has replicas only where there are not enough others."""
    gone = {*image.gone, *(each for each, info in image.brokers.items() if info.stopping)}
    if gone.issuperset(image.brokers):
        gone -= image.brokers.keys()  # somebody has to lead
    return place(racks_of([*image.brokers.values(), *image.gone.values()]), count, factor, start, gone)


def first_state(image: Image, replicas: tuple[int, ...]) -> PartitionState:
    alive = tuple(each for each in replicas if each in image.brokers)
    leader = alive[0] if alive else NO_LEADER
    isr = alive or replicas
    epochs = tuple(broker_epoch_of(image, each) for each in isr)
    return PartitionState(replicas, leader, 0, isr, broker_epoch_of(image, leader), isr_epochs=epochs)


def create_ops(topic: Topic, configs: Mapping[str, str], controller_epoch: int) -> list[Op]:
    states = [
        Create(state_path(topic.name, i), each.to_json(controller_epoch)) for i, each in enumerate(topic.partitions)
    ]
    ops: list[Op] = [Create(topic_path(topic.name), topic.to_json()), *states]
    if configs:
        ops.append(Create(config_path("topics", topic.name), to_json(version=1, config=dict(configs))))
    return ops


def delete_ops(image: Image, name: str) -> list[Op]:
    ops: list[Op] = [Delete(topic_path(name), image.topics[name].version)]
    if ("topics", name) in image.configs:
        ops.append(Delete(config_path("topics", name)))
    return ops


def plan_partitions(
    image: Image, name: str, count: int, assignments: Sequence[Sequence[int]] | None, start: int
) -> Topic:
    """The topic with more partitions than it had."""
    topic = image.topics.get(name)
    if topic is None:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    had = len(topic.partitions)
    if count == had:
        raise BrokerError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {had} partition(s).")
    if count < had:
        problem = f"The topic {name} currently has {had} partition(s); {count} would not be an increase."
        raise BrokerError(ErrorCode.INVALID_PARTITIONS, problem)
    if count - had > PARTITIONS_PER_REQUEST_MAX:
        problem = f"Excessively large number of partitions per request: {count - had}."
        raise BrokerError(ErrorCode.POLICY_VIOLATION, problem)
    factor = len(topic.partitions[0].replicas)
    if assignments is None:
        check_enough_brokers(image, factor)
        replicas = placed(image, count - had, factor, start)
    else:
        replicas = [tuple(each) for each in assignments]
        if len(replicas) != count - had:
            problem = (
                f"Attempted to add {count - had} additional partition(s), but only {len(replicas)} assignment(s) "
                "were specified."
            )
            raise BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
        for each in replicas:
            check_new_replicas(image, each, factor)
    return topic._replace(partitions=topic.partitions + tuple(first_state(image, each) for each in replicas))


def grow_ops(before: Topic, after: Topic, controller_epoch: int) -> list[Op]:
    added = list(enumerate(after.partitions))[len(before.partitions) :]
    return [
        Update(topic_path(after.name), after.to_json(), before.version),
        *(Create(state_path(after.name, i), each.to_json(controller_epoch)) for i, each in added),
    ]


# -- leaders ---------------------------------------------------------------------------------------


def broker_epoch_of(image: Image, broker: int) -> int:
    return image.brokers[broker].epoch if broker in image.brokers else -1


def never(topic: str) -> bool:
    return False


def one(topic: str) -> int:
    return 1


def elections(
    image: Image, seen: Image | None = None, unclean: Callable[[str], bool] = never, min_isr: Callable[[str], int] = one
) -> list[Change]:
    """Every partition that brokers have left or come back to: its next state.

    `seen` is the image that was looked at last: what is the same in both needs no second look.  `unclean` knows the
    topics that would rather lose data than wait for a replica that has all of it.
    """
    changes = []
    for topic in news(image, seen):
        name = topic.name
        for index, state in enumerate(topic.partitions):
            here = seen_from(image, name, index)
            if leads(here, state):
                left = those_left(here, state)
                # What a topic sets takes longer to find than everything else here: only for whom it matters.
                after = None if left == state.isr else with_isr(here, state, left, min_isr(name))
            else:
                after = elect(here, state, unclean(name), min_isr(name))
            if after is not None:
                changes.append(Change(name, index, after))
    return changes


def news(image: Image, seen: Image | None) -> Iterator[Topic]:
    """The topics that have to be looked at, if `seen` was the last time."""
    if seen is None or seen.brokers != image.brokers or broker_settings(seen) != broker_settings(image):
        yield from image.topics.values()
        return
    for name, topic in image.topics.items():
        if seen.topics.get(name) is not topic or seen.config("topics", name) is not image.config("topics", name):
            yield topic


def broker_settings(image: Image) -> dict[tuple[str, str], Mapping[str, str]]:
    return {key: config for key, config in image.configs.items() if key[0] == "brokers"}


def lossy(image: Image, changes: Sequence[Change]) -> list[Change]:
    """Those that elect a leader of whom it is not known that he has everything."""
    return [
        each
        for each in changes
        if (before := image.partition(each.topic, each.partition)) is not None
        and each.state.leader not in (NO_LEADER, *before.isr, *before.elr)
    ]


def seen_from(image: Image, topic: str, index: int) -> Image:
    """The image for decisions about this partition: who cannot write to it is as one that is about to end.  He leads
    only if nobody else can, and is not waited for; but what he has can still be read."""
    unable = {
        each.id: each._replace(stopping=True) for each in image.brokers.values() if (topic, index) in each.offline
    }
    return replace(image, brokers={**image.brokers, **unable}) if unable else image


def leads(image: Image, state: PartitionState) -> bool:
    """Whether the leader is there, still the same, and not about to end while another could lead."""
    info = image.brokers.get(state.leader)
    if info is None or info.epoch != state.leader_broker_epoch:
        return False
    return not info.stopping or not any(in_sync(image, state, each) for each in state.isr if each != state.leader)


def in_sync(image: Image, state: PartitionState, member: int) -> bool:
    """Whether a member of the ISR is there, in the life in which it joined, and means to stay."""
    info = image.brokers.get(member)
    return info is not None and info.epoch == state.epoch_of(member) and not info.stopping


def those_left(image: Image, state: PartitionState) -> tuple[int, ...]:
    """The ISR without those who are gone, who need not be waited for: they come back by catching up."""
    return tuple(each for each in state.isr if each == state.leader or in_sync(image, state, each))


def with_isr(image: Image, state: PartitionState, isr: tuple[int, ...], min_isr: int) -> PartitionState:
    """Another ISR under the same leader.  Who leaves when there are too few stays eligible to lead (KIP-966): nothing
    is committed without him until there are enough again."""
    eligible: tuple[int, ...] = ()
    if len(isr) < min(min_isr, len(state.replicas)):
        eligible = tuple(each for each in state.replicas if each not in isr and each in (*state.isr, *state.elr))
    epochs = tuple(state.epoch_of(each) if each in state.isr else broker_epoch_of(image, each) for each in isr)
    return state._replace(isr=isr, isr_epochs=epochs, elr=eligible)


def elect(image: Image, state: PartitionState, unclean: bool = False, min_isr: int = 1) -> PartitionState | None:
    """The state under the next leader; None if there is none to be had and that is known already.

    Best is a member of the ISR that has been there all the time, then one that ended cleanly and is back, in the ISR or
    eligible (KIP-966), and then one that was killed and is back: what it had written, the system has.  The ISR never
    becomes empty: its last member stays, gone or not.
    """
    steady = [each for each in state.isr if in_sync(image, state, each)]
    there = [each for each in state.replicas if each in image.brokers]
    staying = [each for each in there if not image.brokers[each].stopping]
    back = [each for each in staying if each in state.isr and image.brokers[each].clean_epoch == state.epoch_of(each)]
    orders = [
        steady,
        back,
        [each for each in staying if each in state.elr and image.brokers[each].clean_epoch >= 0],
        [each for each in staying if each in state.isr],
        [each for each in staying if each in state.elr],
        [each for each in there if each in state.isr],
        staying if unclean else [],
    ]
    leader = next((each for order in orders for each in state.replicas if each in order), NO_LEADER)
    if leader == NO_LEADER:
        if state.leader == NO_LEADER:
            return None
        return state._replace(leader=leader, leader_epoch=state.leader_epoch + 1, leader_broker_epoch=-1)
    isr = tuple(each for each in state.replicas if each == leader or each in steady)
    after = with_isr(image, state, isr, min_isr)
    epochs = tuple(
        broker_epoch_of(image, each) if each == leader else epoch
        for each, epoch in zip(isr, after.isr_epochs, strict=True)
    )
    return after._replace(
        leader=leader,
        leader_epoch=state.leader_epoch + 1,
        leader_broker_epoch=broker_epoch_of(image, leader),
        isr_epochs=epochs,
        elr=tuple(each for each in after.elr if each != leader),
    )


def prefer(image: Image, state: PartitionState) -> PartitionState:
    """The state under its first replica, if that is alive, in sync, and not the leader yet."""
    preferred = state.replicas[0]
    if state.leader == preferred:
        raise BrokerError(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
    if not may_lead(image, state, preferred):
        raise BrokerError(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available.")
    return led_by(image, state, preferred)


def preferences(image: Image) -> list[Change]:
    """Every partition whose first replica could lead and does not: with that as its leader."""
    return [
        Change(topic.name, index, led_by(image, state, state.replicas[0]))
        for topic in image.topics.values()
        for index, state in enumerate(topic.partitions)
        if state.replicas
        and state.leader != state.replicas[0]
        and may_lead(seen_from(image, topic.name, index), state, state.replicas[0])
    ]


def may_lead(image: Image, state: PartitionState, member: int) -> bool:
    return member in state.isr and in_sync(image, state, member)


def led_by(image: Image, state: PartitionState, member: int) -> PartitionState:
    return state._replace(
        leader=member, leader_epoch=state.leader_epoch + 1, leader_broker_epoch=broker_epoch_of(image, member)
    )


def rescue(image: Image, state: PartitionState) -> PartitionState:
    """The state under any living replica, data lost or not; only if nobody leads."""
    if state.leader != NO_LEADER:
        raise BrokerError(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
    after = elect(image, state, unclean=True)
    if after is None:
        raise BrokerError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)
    return after


ELECTIONS = {0: prefer, 1: rescue}
"""By their number in ElectLeaders."""
