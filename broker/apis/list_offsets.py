"""ListOffsets: the offset at the beginning, at the end, or at a point in time.

Special timestamps: -1 the end (of what is committed, for read_committed), -2 the beginning, -3 the largest timestamp
(v7+), -4 the earliest local (v8+), -5 the latest tiered (v9+), -6 the earliest pending upload (v11+).  Nothing that
late: -1, and no error.  v0 answers a list of offsets.  v4+: leader epochs.  A partition named twice is refused.
"""

from collections import Counter

from trilogue.broker.broker import Broker
from trilogue.broker.partitions.partition import Partition
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.broker.requests.seams import led_partition
from trilogue.broker.security.operations import Operation
from trilogue.wire.apis.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from trilogue.wire.errors import BrokerError, ErrorCode

Topic = ListOffsetsResponse.Topic
Answer = Topic.Partition
READ_UNCOMMITTED, READ_COMMITTED = ISOLATION_LEVELS = (0, 1)
LATEST = -1
SINCE = {-1: 0, -2: 0, -3: 7, -4: 8, -5: 9, -6: 11}
"""The version from which on a special timestamp may be asked for."""


@handles(ListOffsetsRequest)
def list_offsets(broker: Broker, request: ListOffsetsRequest, peer: Peer) -> ListOffsetsResponse:
    asked = [(topic.name, each) for topic in request.topics for each in topic.partitions]
    times = Counter((name, each.partition_index) for name, each in asked)
    committed_only = request.isolation_level == READ_COMMITTED and request.replica_id < 0
    topics: dict[str, Topic] = {}
    for name, each in {(name, each.partition_index): (name, each) for name, each in asked}.values():
        if request.isolation_level not in ISOLATION_LEVELS:
            answer = nothing(each.partition_index, ErrorCode.UNKNOWN_SERVER_ERROR)
        elif times[name, each.partition_index] > 1:
            answer = nothing(each.partition_index, ErrorCode.INVALID_REQUEST)
        else:
            answer = look_up(broker, name, each, peer, committed_only)
        topics.setdefault(name, Topic(name=name, partitions=[])).partitions.append(answer)
    return ListOffsetsResponse(topics=list(topics.values()))


def nothing(partition: int, code: ErrorCode) -> Answer:
    return Answer(partition_index=partition, error_code=code)


def look_up(
    broker: Broker, topic: str, asked: ListOffsetsRequest.Topic.Partition, peer: Peer, committed_only: bool
) -> Answer:
    try:
        if asked.timestamp < 0 and peer.version < SINCE.get(asked.timestamp, 32767):
            raise BrokerError(ErrorCode.UNSUPPORTED_VERSION)
        partition = led_partition(broker, peer, Operation.DESCRIBE, topic, asked.partition_index)
        partition.check_leader(asked.current_leader_epoch)
        end = visible_end(partition, committed_only, peer.version)
        if peer.version == 0:
            return old_style(partition, asked, end)
        found = partition.log.list_offset(asked.timestamp, end)
    except BrokerError as error:
        return nothing(asked.partition_index, error.code)
    except OSError:
        return nothing(asked.partition_index, ErrorCode.KAFKA_STORAGE_ERROR)
    epoch = partition.leader_epoch if asked.timestamp == LATEST else found.leader_epoch
    return Answer(
        partition_index=asked.partition_index, timestamp=found.timestamp, offset=found.offset, leader_epoch=epoch
    )


def visible_end(partition: Partition, committed_only: bool, version: int) -> int:
    try:
        return partition.visible_end(committed_only)
    except BrokerError as error:
        if error.code == ErrorCode.OFFSET_NOT_AVAILABLE and version < 5:
            raise BrokerError(ErrorCode.LEADER_NOT_AVAILABLE) from None
        raise


def old_style(partition: Partition, asked: ListOffsetsRequest.Topic.Partition, end: int) -> Answer:
    """v0: offsets of segments that begin before the time asked for, newest first, the end before them."""
    bases = [segment.base_offset for segment in partition.log.segments]
    if asked.timestamp == -2:
        offsets = [partition.log.start_offset]
    elif asked.timestamp == LATEST:
        offsets = [end, *(base for base in reversed(bases) if base != end)]
    else:
        found = partition.log.list_offset(asked.timestamp, end)
        offsets = [found.offset] if found.offset >= 0 else []
    return Answer(partition_index=asked.partition_index, old_style_offsets=offsets[: max(0, asked.max_num_offsets)])
