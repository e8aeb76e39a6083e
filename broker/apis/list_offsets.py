"""ListOffsets: the offset at the beginning, at the end, or at a point in time.

Special timestamps: -1 the end (of what is committed, for read_committed), -2 the beginning, -3 the largest timestamp
(v7+), -4 the earliest local (v8+), -5 the latest tiered (v9+), -6 the earliest pending upload (v11+).  Nothing that
late: -1, and no error.  v0 answers a list of offsets.  v4+: leader epochs.  A partition named twice is refused.
Records that make no sense are INVALID_RECORD.  A batch of very many is searched in a thread.
"""

from collections import Counter

from trilogue.broker.broker import Broker
from trilogue.broker.partitions.partition import Partition
from trilogue.broker.requests.later import Later, together
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.broker.requests.seams import led_partition
from trilogue.broker.security.operations import Operation
from trilogue.storage.lookup import NOTHING, Found
from trilogue.storage.validation import TakesLong
from trilogue.wire.apis.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from trilogue.wire.errors import BrokerError, ErrorCode, MalformedMessage
from trilogue.wire.records import Batch

Topic = ListOffsetsResponse.Topic
Answer = Topic.Partition
READ_UNCOMMITTED, READ_COMMITTED = ISOLATION_LEVELS = (0, 1)
LATEST = -1
REFUSED = (BrokerError, MalformedMessage, OSError)
SINCE = {-1: 0, -2: 0, -3: 7, -4: 8, -5: 9, -6: 11}
"""The version from which on a special timestamp may be asked for."""


Asked = ListOffsetsRequest.Topic.Partition


@handles(ListOffsetsRequest)
def list_offsets(
    broker: Broker, request: ListOffsetsRequest, peer: Peer
) -> ListOffsetsResponse | Later[ListOffsetsResponse]:
    asked = [(topic.name, each) for topic in request.topics for each in topic.partitions]
    times = Counter((name, each.partition_index) for name, each in asked)
    committed_only = request.isolation_level == READ_COMMITTED and request.replica_id < 0
    once = list({(name, each.partition_index): (name, each) for name, each in asked}.values())
    answers: list[Answer | Later[Answer]] = []
    for name, each in once:
        if request.isolation_level not in ISOLATION_LEVELS:
            answers.append(nothing(each.partition_index, ErrorCode.UNKNOWN_SERVER_ERROR))
        elif times[name, each.partition_index] > 1:
            answers.append(nothing(each.partition_index, ErrorCode.INVALID_REQUEST))
        else:
            answers.append(look_up(broker, name, each, peer, committed_only))

    def shape(found: list[Answer]) -> ListOffsetsResponse:
        topics: dict[str, Topic] = {}
        for (name, _), answer in zip(once, found, strict=True):
            topics.setdefault(name, Topic(name=name, partitions=[])).partitions.append(answer)
        return ListOffsetsResponse(topics=list(topics.values()))

    return together(answers, shape)


def nothing(partition: int, code: ErrorCode) -> Answer:
    return Answer(partition_index=partition, error_code=code)


def look_up(broker: Broker, topic: str, asked: Asked, peer: Peer, committed_only: bool) -> Answer | Later[Answer]:
    try:
        if asked.timestamp < 0 and peer.version < SINCE.get(asked.timestamp, 32767):
            raise BrokerError(ErrorCode.UNSUPPORTED_VERSION)
        partition = led_partition(broker, peer, Operation.DESCRIBE, topic, asked.partition_index)
        partition.check_leader(asked.current_leader_epoch)
        # Another broker asks where its own log has to end.
        end = partition.log.end_offset if peer.broker else visible_end(partition, committed_only, peer.version)
        try:
            return shaped(partition, asked, end, peer, partition.log.list_offset(asked.timestamp, end, in_loop=True))
        except TakesLong:
            return look_long(broker, partition, asked, end, peer)
    except REFUSED as error:
        return refused(asked, error)


async def look_long(broker: Broker, partition: Partition, asked: Asked, end: int, peer: Peer) -> Answer:
    """Batch by batch, each in a thread."""
    found = NOTHING
    try:
        searched = partition.log.searched(asked.timestamp, end)
        assert searched is not None, "nothing else takes long"
        for batch in searched.batches():
            own = Batch(batch.header, memoryview(bytes(batch.view)))
            within = await broker.turns.in_thread(searched.within, own)
            if within is not None:
                found = within if within.offset < searched.end else NOTHING
                break
        partition.check_leader(asked.current_leader_epoch)
        return shaped(partition, asked, end, peer, found)
    except REFUSED as error:
        return refused(asked, error)


def refused(asked: Asked, error: Exception) -> Answer:
    if isinstance(error, BrokerError):
        return nothing(asked.partition_index, error.code)
    code = ErrorCode.KAFKA_STORAGE_ERROR if isinstance(error, OSError) else ErrorCode.INVALID_RECORD
    return nothing(asked.partition_index, code)


def shaped(partition: Partition, asked: Asked, end: int, peer: Peer, found: Found) -> Answer:
    if peer.version == 0:
        return old_style(partition, asked, end, found)
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


def old_style(partition: Partition, asked: Asked, end: int, found: Found) -> Answer:
    """v0: offsets of segments that begin before the time asked for, newest first, the end before them."""
    bases = [segment.base_offset for segment in partition.log.segments]
    if asked.timestamp == -2:
        offsets = [partition.log.start_offset]
    elif asked.timestamp == LATEST:
        offsets = [end, *(base for base in reversed(bases) if base != end)]
    else:
        offsets = [found.offset] if found.offset >= 0 else []
    return Answer(partition_index=asked.partition_index, old_style_offsets=offsets[: max(0, asked.max_num_offsets)])
