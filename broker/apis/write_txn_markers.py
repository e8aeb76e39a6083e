"""WriteTxnMarkers: a coordinator, or an administrator, ends a transaction in partitions that we lead.

`kafka-transactions abort` sends this for a transaction that its coordinator has forgotten.  Each partition is answered
by itself, when all replicas have the marker; the coordinator's next request does not wait for that.
v2+: the transaction's version; from 2 on a marker has to raise the epoch.
"""

import trio

from trilogue.broker.broker import Broker
from trilogue.broker.coordinators.markers import SAFE_SECONDS, Marker, write
from trilogue.broker.names import TopicPartition
from trilogue.broker.partitions.partition import Partition
from trilogue.broker.requests.later import Unconfirmed
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.broker.transactions.records import by_topic
from trilogue.wire.apis.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from trilogue.wire.errors import BrokerError, ErrorCode

Answer = WriteTxnMarkersResponse.Marker
Verdicts = dict[int, dict[TopicPartition, ErrorCode]]
"""By producer, as Kafka answers: several markers of one producer share an entry."""
Waiting = list[tuple[int, TopicPartition, Partition, int, int]]
"""What is written for a producer, up to which offset and in which leader epoch, but not safe yet."""


@handles(WriteTxnMarkersRequest)
def write_txn_markers(
    broker: Broker, request: WriteTxnMarkersRequest, peer: Peer
) -> WriteTxnMarkersResponse | Unconfirmed[WriteTxnMarkersResponse]:
    verdicts: Verdicts = {}
    waiting: Waiting = []
    for asked in request.markers:
        marker = Marker(
            asked.producer_id,
            asked.producer_epoch,
            asked.transaction_result,
            asked.coordinator_epoch,
            asked.transaction_version,
        )
        for topic in asked.topics:
            for index in topic.partition_indexes:
                place = (topic.name, index)
                try:
                    if marker.epoch < 0:
                        raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, "a marker without an epoch")
                    partition, end = write(broker, place, marker)
                    waiting.append((marker.producer_id, place, partition, end, partition.leader_epoch))
                    code = ErrorCode.NONE
                except BrokerError as error:
                    code = error.code
                except OSError:
                    code = ErrorCode.KAFKA_STORAGE_ERROR
                verdicts.setdefault(marker.producer_id, {})[place] = code
    if all(partition.is_committed(end) for _, _, partition, end, _ in waiting):
        return answer(verdicts)
    return Unconfirmed(wait(verdicts, waiting))


async def wait(verdicts: Verdicts, waiting: Waiting) -> WriteTxnMarkersResponse:
    deadline = trio.current_time() + SAFE_SECONDS
    for producer_id, place, partition, end, epoch in waiting:
        try:
            if partition.leader_epoch != epoch or not partition.is_committed(end):
                await partition.committed(end, deadline, epoch)
        except BrokerError as error:
            verdicts[producer_id][place] = error.code
    return answer(verdicts)


def answer(verdicts: Verdicts) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[Answer(producer_id=producer_id, topics=topics(found)) for producer_id, found in verdicts.items()]
    )


def topics(verdicts: dict[TopicPartition, ErrorCode]) -> list[Answer.Topic]:
    return [
        Answer.Topic(
            name=topic,
            partitions=[
                Answer.Topic.Partition(partition_index=index, error_code=verdicts[topic, index]) for index in indexes
            ],
        )
        for topic, indexes in by_topic(frozenset(verdicts))
    ]
