"""Carries the ends of transactions to their partitions.

A coordinator decides; this writes the decision into every partition of the transaction and then tells the coordinator
so.  Where we lead the partition and are alone in it, that is done before the producer has its answer: it will not
be asked to wait when it begins the next transaction.  Everything else is a task that tries until it has succeeded, or
we are the coordinator no more: a decision that is stored is not given up.
"""

import logging
from collections import defaultdict
from collections.abc import Collection
from typing import NamedTuple

import trio

from trilogue.broker.broker import Broker
from trilogue.broker.machines.shard import Shard
from trilogue.broker.names import OFFSETS_TOPIC, TopicPartition
from trilogue.broker.partitions.partition import Partition
from trilogue.broker.requests.seams import led_partition
from trilogue.broker.security.operations import Operation
from trilogue.broker.transactions.coordinator import TransactionCoordinator, WriteMarkers
from trilogue.broker.transactions.records import by_topic
from trilogue.storage.producers import Origin
from trilogue.wire.apis.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from trilogue.wire.errors import BrokerError, ErrorCode
from trilogue.wire.records import end_transaction_marker

logger = logging.getLogger(__name__)

AT_ONCE = 100
"""Up to so many partitions are written to before the answer: 5 ms of everybody's time."""

FIRST_PAUSE, LONGEST_PAUSE = 0.02, 1.0
"""Seconds between two tries."""

SAFE_SECONDS = 30.0
"""How long a marker may take to be with all replicas before it is written again."""

REQUEST_VERSION = 2

Request = WriteTxnMarkersRequest
Coordinator = Shard[TransactionCoordinator]
DONE = (ErrorCode.NONE, ErrorCode.INVALID_PRODUCER_EPOCH)
"""Nothing is left to do: it is written, or the partition has seen a later epoch and so the end of this one."""


class Marker(NamedTuple):
    """The end of a transaction, as it is written into a partition."""

    producer_id: int
    epoch: int
    committed: bool
    coordinator_epoch: int
    version: int


def write(broker: Broker, key: TopicPartition, marker: Marker) -> tuple[Partition, int]:
    """Into a partition that we lead.  Answers it, and up to where it has to be safe."""
    topic, index = key
    partition = led_partition(broker, None, Operation.CLUSTER_ACTION, topic, index)
    offsets = topic == OFFSETS_TOPIC
    if offsets and not broker.groups.shard(index).active:
        # While offsets are loaded a marker would be passed over; whoever carries it comes again.
        raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{topic}-{index} is being loaded")
    now_ms = broker.clock()
    batch = end_transaction_marker(marker.committed, marker.coordinator_epoch, marker.producer_id, marker.epoch, now_ms)
    result = partition.append(memoryview(batch), now_ms, origin=Origin.COORDINATOR, transaction_version=marker.version)
    if offsets:
        broker.groups.ended(index, marker.producer_id, marker.committed)
    return partition, result.last_offset + 1


def carry_markers(broker: Broker, message: WriteMarkers) -> None:
    """Takes what transaction coordinators send."""
    shard = broker.transactions.shard(message.index)
    left = message.partitions
    if len(left) <= AT_ONCE:
        left = frozenset(key for key in left if not written(broker, shard, message, key))
    if left:
        broker.tasks.start_soon(carry, broker, shard, message, left)
    else:
        complete(shard, message)


def written(broker: Broker, shard: Coordinator, message: WriteMarkers, key: TopicPartition) -> bool:
    """Try it here and now.  False if a task has to try: what waits for replicas must not be written twice."""
    state = broker.image.partition(*key)
    if state is None:
        return True  # the topic has been deleted, and its transactions with it
    if state.leader != broker.node_id or len(state.replicas) > 1:
        return False
    try:
        write(broker, key, marker_of(shard, message))
        return True
    except BrokerError as error:
        return error.code in DONE
    except OSError:
        return False


async def carry(broker: Broker, shard: Coordinator, message: WriteMarkers, left: Collection[TopicPartition]) -> None:
    async with trio.open_nursery() as nursery:  # a leader that hangs holds up nobody else's partitions
        for partitions in by_leader(broker, left).values():
            nursery.start_soon(bring, broker, shard, message, partitions)
    if shard.active:
        complete(shard, message)


async def bring(broker: Broker, shard: Coordinator, message: WriteMarkers, left: list[TopicPartition]) -> None:
    """To partitions that one broker leads, or has led: until they have it, or we are the coordinator no more."""
    pause = FIRST_PAUSE
    while left and shard.active:
        again: list[TopicPartition] = []
        for leader, partitions in by_leader(broker, left).items():
            again += await deliver(broker, marker_of(shard, message), leader, partitions)
        left = again
        if left:
            logger.debug("%s: %d markers to be tried again", message.transactional_id, len(left))
            await trio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)


def by_leader(broker: Broker, partitions: Collection[TopicPartition]) -> dict[int, list[TopicPartition]]:
    """Those that there are: a topic may have been deleted, and its transactions with it."""
    found: dict[int, list[TopicPartition]] = defaultdict(list)
    for key in partitions:
        state = broker.image.partition(*key)
        if state is not None:
            found[state.leader].append(key)
    return found


async def deliver(broker: Broker, marker: Marker, leader: int, partitions: list[TopicPartition]) -> set[TopicPartition]:
    """To one broker.  What has to be tried again."""
    if leader == broker.node_id:
        return {key for key in partitions if not await write_safely(broker, key, marker)}
    try:
        response = await broker.inter_broker(
            leader, request_of(marker, frozenset(partitions)), REQUEST_VERSION, WriteTxnMarkersResponse
        )
    except BrokerError:
        return set(partitions)
    return set(partitions) - {
        (topic.name, each.partition_index)
        for answered in response.markers
        for topic in answered.topics
        for each in topic.partitions
        if each.error_code in DONE
    }


async def write_safely(broker: Broker, key: TopicPartition, marker: Marker) -> bool:
    await trio.lowlevel.checkpoint()  # there may be thousands
    try:
        partition, end = write(broker, key, marker)
        if not partition.is_committed(end):
            await partition.committed(end, trio.current_time() + SAFE_SECONDS)
    except BrokerError as error:
        return error.code in DONE
    except OSError:
        return False
    return True


def complete(shard: Coordinator, message: WriteMarkers) -> None:
    shard.carry_out(shard.machine.completed(shard.now(), message))


def marker_of(shard: Coordinator, message: WriteMarkers) -> Marker:
    return Marker(message.producer_id, message.epoch, message.committed, shard.epoch, message.version)


def request_of(marker: Marker, partitions: frozenset[TopicPartition]) -> WriteTxnMarkersRequest:
    topics = [Request.Marker.Topic(name=topic, partition_indexes=indexes) for topic, indexes in by_topic(partitions)]
    return Request(
        markers=[
            Request.Marker(
                producer_id=marker.producer_id,
                producer_epoch=marker.epoch,
                transaction_result=marker.committed,
                topics=topics,
                coordinator_epoch=marker.coordinator_epoch,
                transaction_version=marker.version,
            )
        ]
    )
