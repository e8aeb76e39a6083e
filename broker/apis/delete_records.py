"""DeleteRecords: forget what lies before an offset.

-1 is the high watermark: everything.  A partition we do not lead, an offset past its end, or a topic that is only
compacted is refused by itself; the others proceed.  Of a partition named twice the last word counts.
Answered when every replica whose broker is there has forgotten as well, or with REQUEST_TIMED_OUT; `low_watermark` is
where the log begins on the one that has forgotten least.  v2: flexible.
"""

import trio

from trilogue.broker.broker import Broker
from trilogue.broker.partitions.partition import Partition
from trilogue.broker.partitions.waiting import TaskBell
from trilogue.broker.requests.later import Later
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.broker.requests.seams import led_partition
from trilogue.broker.security.operations import Operation
from trilogue.wire.apis.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from trilogue.wire.errors import BrokerError, ErrorCode

Answer = DeleteRecordsResponse.Topic.Partition
Waiting = list[tuple[Answer, Partition, int]]
"""What followers have not forgotten yet, and up to where."""
NO_OFFSET = -1


@handles(DeleteRecordsRequest)
def delete_records(
    broker: Broker, request: DeleteRecordsRequest, peer: Peer
) -> DeleteRecordsResponse | Later[DeleteRecordsResponse]:
    asked = {(topic.name, each.partition_index): each.offset for topic in request.topics for each in topic.partitions}
    topics: dict[str, DeleteRecordsResponse.Topic] = {}
    waiting: Waiting = []

    def answer(each: tuple[tuple[str, int], int]) -> None:
        (name, index), offset = each
        topic = topics.setdefault(name, DeleteRecordsResponse.Topic(name=name, partitions=[]))
        topic.partitions.append(forget(broker, peer, name, index, offset, waiting))

    def respond(_: list[None]) -> DeleteRecordsResponse | Later[DeleteRecordsResponse]:
        response = DeleteRecordsResponse(topics=list(topics.values()))
        return wait(broker, response, waiting, request.timeout_ms / 1000) if waiting else response

    return broker.turns.each(asked.items(), answer, respond)


def forget(broker: Broker, peer: Peer, topic: str, index: int, offset: int, waiting: Waiting) -> Answer:
    answer = Answer(partition_index=index, low_watermark=NO_OFFSET)
    try:
        partition = led_partition(broker, peer, Operation.DELETE, topic, index)
        wanted = partition.forget_before(offset)
        answer.low_watermark = partition.low_watermark(broker.image.brokers)
        if answer.low_watermark < wanted:
            waiting.append((answer, partition, wanted))
    except BrokerError as error:
        answer.error_code = error.code
    except OSError:
        answer.error_code = ErrorCode.KAFKA_STORAGE_ERROR
    return answer


async def wait(
    broker: Broker, response: DeleteRecordsResponse, waiting: Waiting, seconds: float
) -> DeleteRecordsResponse:
    deadline = trio.current_time() + seconds
    for answer, partition, wanted in waiting:
        try:
            answer.low_watermark = await forgotten(broker, partition, wanted, deadline)
        except BrokerError as error:
            answer.error_code = error.code
            if error.code != ErrorCode.REQUEST_TIMED_OUT:
                answer.low_watermark = NO_OFFSET
    return response


async def forgotten(broker: Broker, partition: Partition, wanted: int, deadline: float) -> int:
    """The low watermark, as soon as it is there."""
    bell = TaskBell()
    partition.watch(bell)
    try:
        with trio.move_on_at(deadline):
            while True:
                partition.check_leader()
                low = partition.low_watermark(broker.image.brokers)
                if low >= wanted:
                    return low
                await bell.wait()
    finally:
        partition.unwatch(bell)
    raise partition.too_slow()
