"""DeleteRecords: forget what lies before an offset.

-1 is the high watermark: everything.  A partition we do not lead, an offset past its end, or a topic that is only
compacted is refused by itself; the others proceed.  Of a partition named twice the last word counts.
v2: flexible.  Not done: waiting for followers to forget as well (KNOWN_GAPS.md).
"""

from trilogue.broker.broker import Broker
from trilogue.broker.requests.later import Later
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.broker.requests.seams import led_partition
from trilogue.broker.security.operations import Operation
from trilogue.wire.apis.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from trilogue.wire.errors import BrokerError, ErrorCode

Answer = DeleteRecordsResponse.Topic.Partition
NO_OFFSET = -1


@handles(DeleteRecordsRequest)
def delete_records(
    broker: Broker, request: DeleteRecordsRequest, peer: Peer
) -> DeleteRecordsResponse | Later[DeleteRecordsResponse]:
    asked = {(topic.name, each.partition_index): each.offset for topic in request.topics for each in topic.partitions}
    topics: dict[str, DeleteRecordsResponse.Topic] = {}

    def answer(each: tuple[tuple[str, int], int]) -> None:
        (name, index), offset = each
        topic = topics.setdefault(name, DeleteRecordsResponse.Topic(name=name, partitions=[]))
        topic.partitions.append(forget(broker, peer, name, index, offset))

    return broker.turns.each(asked.items(), answer, lambda _: DeleteRecordsResponse(topics=list(topics.values())))


def forget(broker: Broker, peer: Peer, topic: str, index: int, offset: int) -> Answer:
    answer = Answer(partition_index=index, low_watermark=NO_OFFSET)
    try:
        partition = led_partition(broker, peer, Operation.DELETE, topic, index)
        answer.low_watermark = partition.forget_before(offset)
    except BrokerError as error:
        answer.error_code = error.code
    except OSError:
        answer.error_code = ErrorCode.KAFKA_STORAGE_ERROR
    return answer
