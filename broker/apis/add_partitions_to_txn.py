"""AddPartitionsToTxn: a transaction is going to write to these partitions.

All of them are added, or none: if one is not there, the others hear OPERATION_NOT_ATTEMPTED.  v2+: fenced producers
hear PRODUCER_FENCED.  v4+ is for brokers: several transactions at once, and `verify_only` to ask whether partitions
were added.  Kafka never answers a request for no transactions; we do.
"""

from trilogue.broker.broker import Broker
from trilogue.broker.coordinators.ask_transaction import Verdicts, add_partitions, fenced_code, verify_partitions
from trilogue.broker.names import is_internal
from trilogue.broker.requests.later import Later, settled, then
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.broker.security.operations import Operation
from trilogue.broker.transactions.records import by_topic
from trilogue.broker.transactions.transaction import BUMPS, Identity
from trilogue.wire.apis.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    PartitionResult,
    Topic,
    TopicResult,
)
from trilogue.wire.errors import ErrorCode

Asked = AddPartitionsToTxnRequest.Transaction
KNOWS_FENCED = 2
FROM_BROKERS = 4


@handles(AddPartitionsToTxnRequest)
def add_partitions_to_txn(
    broker: Broker, request: AddPartitionsToTxnRequest, peer: Peer
) -> AddPartitionsToTxnResponse | Later[AddPartitionsToTxnResponse]:
    version = peer.version
    if version < FROM_BROKERS:
        asked = Asked(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            verify_only=False,
            topics=request.v3_and_below_topics,
        )
        return then(
            decide(broker, asked, peer),
            lambda verdicts: AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results(verdicts, version)),
        )
    return several(broker, request.transactions, peer)


async def several(broker: Broker, transactions: list[Asked], peer: Peer) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResponse.Transaction(
                transactional_id=asked.transactional_id,
                topic_results=results(await settled(decide(broker, asked, peer)), peer.version),
            )
            for asked in transactions
        ]
    )


def decide(broker: Broker, asked: Asked, peer: Peer) -> Verdicts | Later[Verdicts]:
    partitions = frozenset((topic.name, index) for topic in asked.topics for index in topic.partitions)
    refused = obstacles(broker, asked.topics, peer.version)
    if refused:
        return dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED) | refused
    whose, who = asked.transactional_id, Identity(asked.producer_id, asked.producer_epoch)
    by_broker = peer.version >= FROM_BROKERS
    operation = Operation.CLUSTER_ACTION if by_broker else Operation.WRITE
    if asked.verify_only:
        return verify_partitions(broker, peer, operation, whose, who, partitions)
    return add_partitions(broker, peer, operation, whose, who, partitions, BUMPS if by_broker else 0)


def obstacles(broker: Broker, topics: list[Topic], version: int) -> Verdicts:
    """What stands in the way, partition by partition."""
    found: Verdicts = {}
    for topic in topics:
        for index in topic.partitions:
            if version < FROM_BROKERS and is_internal(topic.name):
                found[topic.name, index] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif broker.image.partition(topic.name, index) is None:
                found[topic.name, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return found


def results(verdicts: Verdicts, version: int) -> list[TopicResult]:
    return [
        TopicResult(
            name=topic,
            results_by_partition=[
                PartitionResult(
                    partition_index=index,
                    partition_error_code=fenced_code(verdicts[topic, index], version, KNOWS_FENCED),
                )
                for index in indexes
            ],
        )
        for topic, indexes in by_topic(frozenset(verdicts))
    ]
