"""What the controller decides: topics, replicas, leaders.  Pure: an image and a request go in, ops come out.

Every change is tied to the version it was decided on, and to the controller's epoch by whoever commits it: a
decision that has become old does nothing.
"""

from collections.abc import Callable, Mapping, Sequence
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
        replicas = place(sorted(image.brokers), count, factor, start)
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
    if factor > len(image.brokers):
        problem = (
            f"Unable to replicate the partition {factor} time(s): The target replication factor of {factor} cannot be "
            f"reached because only {len(image.brokers)} broker(s) are registered."
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
        check_replicas(image, each, len(replicas[0]))
    return replicas


def check_replicas(image: Image, replicas: tuple[int, ...], factor: int | None) -> None:
    """Refuse replicas that are nobody, twice the same, or not as many as the other partitions have."""
    if not replicas:
        raise BrokerError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "The manual partition assignment includes an empty replica list."
        )
    for broker in sorted(replicas):
        if broker not in image.brokers:
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


def place(brokers: Sequence[int], count: int, factor: int, start: int) -> list[tuple[int, ...]]:
    """Leaders in turn; followers at a distance that grows by one with every round, so that pairs differ."""
    n = len(brokers)
    placed = []
    for index in range(count):
        leader, shift = (start + index) % n, (start + index) // n
        followers = [(leader + 1 + (shift + i) % (n - 1)) % n for i in range(factor - 1)]
        placed.append(tuple(brokers[i] for i in (leader, *followers)))
    return placed


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
        replicas = place(sorted(image.brokers), count - had, factor, start)
    else:
        replicas = [tuple(each) for each in assignments]
        if len(replicas) != count - had:
            problem = (
                f"Attempted to add {count - had} additional partition(s), but only {len(replicas)} assignment(s) "
                "were specified."
            )
            raise BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
        for each in replicas:
            check_replicas(image, each, factor)
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
    known = {} if seen is None or seen.brokers != image.brokers or seen.configs is not image.configs else seen.topics
    changes = []
    for topic in image.topics.values():
        if known.get(topic.name) is topic:
            continue
        needed = min_isr(topic.name)
        for index, state in enumerate(topic.partitions):
            here = seen_from(image, topic.name, index)
            after = without_the_gone(here, state, needed) if leads(here, state) else None
            if not leads(here, state):
                after = elect(here, state, unclean(topic.name), needed)
            if after is not None:
                changes.append(Change(topic.name, index, after))
    return changes


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


def without_the_gone(image: Image, state: PartitionState, min_isr: int) -> PartitionState | None:
    """Whoever is gone need not be waited for: it comes back by catching up.  None if nobody is."""
    left = tuple(each for each in state.isr if each == state.leader or in_sync(image, state, each))
    return None if left == state.isr else with_isr(image, state, left, min_isr)


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
    if preferred not in state.isr or not in_sync(image, state, preferred):
        raise BrokerError(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available.")
    return state._replace(
        leader=preferred, leader_epoch=state.leader_epoch + 1, leader_broker_epoch=broker_epoch_of(image, preferred)
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


# -- moves between brokers -------------------------------------------------------------------------


def plan_reassignment(image: Image, name: str, index: int, wanted: tuple[int, ...] | None, may_resize: bool) -> Topic:
    """The topic with a partition on other replicas, or in another order; None stops what is under way."""
    topic = image.topics.get(name)
    if topic is None:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    state = image.partition(name, index)
    if state is None:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}.")
    if wanted is None:
        raise BrokerError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    check_replicas(image, wanted, None if may_resize else len(state.replicas))
    if set(wanted) != set(state.replicas):
        problem = f"{name}-{index} is on {state.replicas}; moves to other brokers are not possible yet."
        raise BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
    partitions = list(topic.partitions)
    partitions[index] = state._replace(replicas=wanted)
    return topic._replace(partitions=tuple(partitions))
