"""WriteTxnMarkers: a coordinator, or an administrator, ends a transaction in partitions that we lead.

`kafka-transactions abort` sends this for a transaction that its coordinator has forgotten.  Each partition is answered
by itself.  v2+: the transaction's version; from 2 on a marker has to raise the epoch.
"""

import trio

from trilogue.broker.broker import Broker
from trilogue.broker.coordinators.markers import SAFE_SECONDS, Marker, write
from trilogue.broker.names import TopicPartition
from trilogue.broker.partitions.partition import Partition
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.broker.transactions.records import by_topic
from trilogue.wire.apis.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from trilogue.wire.errors import BrokerError, ErrorCode

Answer = WriteTxnMarkersResponse.Marker


@handles(WriteTxnMarkersRequest)
async def write_txn_markers(broker: Broker, request: WriteTxnMarkersRequest, peer: Peer) -> WriteTxnMarkersResponse:
    # By producer, as Kafka answers: several markers of one producer share an entry.
    verdicts: dict[int, dict[TopicPartition, ErrorCode]] = {}
    waiting: list[tuple[int, TopicPartition, Partition, int]] = []
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
                    waiting.append((marker.producer_id, place, *write(broker, place, marker)))
                    code = ErrorCode.NONE
                except BrokerError as error:
                    code = error.code
                except OSError:
                    code = ErrorCode.KAFKA_STORAGE_ERROR
                verdicts.setdefault(marker.producer_id, {})[place] = code
    deadline = trio.current_time() + SAFE_SECONDS
    for producer_id, place, partition, end in waiting:
        try:
            if not partition.is_committed(end):
                await partition.committed(end, deadline)
        except BrokerError as error:
            verdicts[producer_id][place] = error.code
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
