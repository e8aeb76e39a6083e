"""AddPartitionsToTxn: a transaction is going to write to these partitions.

All of them are added, or none: if one is not there, the others hear OPERATION_NOT_ATTEMPTED.  v2+: fenced producers
hear PRODUCER_FENCED.  v4+ is for brokers: several transactions at once, and `verify_only` to ask whether partitions
were added.  Kafka never answers a request for no transactions; we do.
"""

from collections.abc import Coroutine
from typing import Any

from trilogue.broker.coordinators.ask_transaction import Verdicts, coordinator, heard
from trilogue.broker.names import TopicPartition, is_internal
from trilogue.broker.requests.later import then
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.broker.server import Broker
from trilogue.broker.transactions.coordinator import Outcome
from trilogue.broker.transactions.records import by_topic
from trilogue.broker.transactions.transaction import BUMPS, Identity
from trilogue.wire.apis.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    PartitionResult,
    Topic,
    TopicResult,
)
from trilogue.wire.errors import BrokerError, ErrorCode

Asked = AddPartitionsToTxnRequest.Transaction
KNOWS_FENCED = 2
FROM_BROKERS = 4


@handles(AddPartitionsToTxnRequest)
def add_partitions_to_txn(
    broker: Broker, request: AddPartitionsToTxnRequest, peer: Peer
) -> AddPartitionsToTxnResponse | Coroutine[Any, Any, AddPartitionsToTxnResponse]:
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
            decide(broker, asked, version),
            lambda verdicts: AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results(verdicts, version)),
        )
    return several(broker, request.transactions, version)


async def several(broker: Broker, transactions: list[Asked], version: int) -> AddPartitionsToTxnResponse:
    answers = []
    for asked in transactions:
        verdicts = decide(broker, asked, version)
        if not isinstance(verdicts, dict):
            verdicts = await verdicts
        answers.append(
            AddPartitionsToTxnResponse.Transaction(
                transactional_id=asked.transactional_id, topic_results=results(verdicts, version)
            )
        )
    return AddPartitionsToTxnResponse(results_by_transaction=answers)


def decide(broker: Broker, asked: Asked, version: int) -> Verdicts | Coroutine[Any, Any, Verdicts]:
    places = frozenset((topic.name, index) for topic in asked.topics for index in topic.partitions)
    refused = obstacles(broker, asked.topics, version)
    if refused:
        return dict.fromkeys(places, ErrorCode.OPERATION_NOT_ATTEMPTED) | refused
    who = Identity(asked.producer_id, asked.producer_epoch)
    try:
        if not asked.transactional_id:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "an empty transactional id")
        shard, machine = coordinator(broker, asked.transactional_id)
    except BrokerError as error:
        return dict.fromkeys(places, error.code)
    if asked.verify_only:
        return shard.ask(
            machine.verify, asked.transactional_id, who, places, refuse=lambda code: dict.fromkeys(places, code)
        )
    generation = BUMPS if version >= FROM_BROKERS else 0
    outcome = shard.ask(machine.add, asked.transactional_id, who, places, generation, refuse=Outcome)
    return then(outcome, lambda answer: dict.fromkeys(places, answer.error))


def obstacles(broker: Broker, topics: list[Topic], version: int) -> dict[TopicPartition, ErrorCode]:
    """What stands in the way, partition by partition."""
    found: dict[TopicPartition, ErrorCode] = {}
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
                    partition_index=index, partition_error_code=heard(verdicts[topic, index], version, KNOWS_FENCED)
                )
                for index in indexes
            ],
        )
        for topic, indexes in by_topic(frozenset(verdicts))
    ]
