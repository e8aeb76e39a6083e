"""DescribeProducers: who has written to a partition with sequence numbers, and whose transaction is open.

A partition we do not lead is refused by itself.  There is one version.
"""

from trilogue.broker.broker import Broker
from trilogue.broker.names import check_name
from trilogue.broker.requests.later import Later
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.broker.requests.seams import led_partition
from trilogue.broker.security.operations import Operation
from trilogue.storage.producers import Producer
from trilogue.wire.apis.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from trilogue.wire.errors import BrokerError, ErrorCode

Topic = DescribeProducersResponse.Topic
Answer = Topic.Partition


@handles(DescribeProducersRequest)
def describe_producers(
    broker: Broker, request: DescribeProducersRequest, peer: Peer
) -> DescribeProducersResponse | Later[DescribeProducersResponse]:
    topics = [Topic(name=topic.name, partitions=[]) for topic in request.topics]
    asked = (
        (topic, index)
        for topic, wanted in zip(topics, request.topics, strict=True)
        for index in wanted.partition_indexes
    )

    def answer(both: tuple[Topic, int]) -> None:
        topic, index = both
        topic.partitions.append(describe(broker, peer, topic.name, index))

    return broker.turns.each(asked, answer, lambda _: DescribeProducersResponse(topics=topics))


def describe(broker: Broker, peer: Peer, topic: str, index: int) -> Answer:
    answer = Answer(partition_index=index, active_producers=[])
    try:
        if topic not in broker.image.topics:
            check_name(topic)
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {topic}.")
        partition = led_partition(broker, peer, Operation.READ, topic, index)
        answer.active_producers = [active(each) for each in partition.log.producers()]
    except BrokerError as error:
        answer.error_code, answer.error_message = error.code, error.message
    return answer


def active(producer: Producer) -> Answer.ActiveProducer:
    return Answer.ActiveProducer(
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        last_sequence=producer.last_sequence,
        last_timestamp=producer.last_timestamp,
        coordinator_epoch=producer.coordinator_epoch,
        current_txn_start_offset=producer.transaction_start,
    )
