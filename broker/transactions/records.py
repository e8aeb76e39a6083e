"""Transactions as they stand in __transaction_state: Kafka's TransactionLogKey and TransactionLogValue."""

from collections import defaultdict

from trilogue.broker.machines.effects import Put
from trilogue.broker.names import TopicPartition
from trilogue.broker.transactions.states import BY_NUMBER, State
from trilogue.broker.transactions.transaction import Transaction
from trilogue.wire.internal.transactions import TransactionLogKey, TransactionLogValue

VERSION = 1
"""With tagged fields: what Kafka writes from transaction.version 1 on."""


def by_topic(partitions: frozenset[TopicPartition]) -> list[tuple[str, list[int]]]:
    """Partitions under the names of their topics, in order."""
    found: dict[str, list[int]] = defaultdict(list)
    for topic, index in sorted(partitions):
        found[topic].append(index)
    return list(found.items())


def to_put(transactional_id: str, transaction: Transaction | None) -> Put:
    """What is to be stored; None removes it."""
    key = TransactionLogKey(transactional_id=transactional_id)
    if transaction is None:
        return Put(key, None)
    topics = [
        TransactionLogValue.TopicPartitions(topic=topic, partition_ids=indexes)
        for topic, indexes in by_topic(transaction.partitions)
    ]
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state.number,
        transaction_partitions=None if transaction.state is State.EMPTY else topics,
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
        client_transaction_version=transaction.version,
    )
    return Put(key, value, VERSION)


def from_value(value: TransactionLogValue, last_epoch: int) -> Transaction:
    return Transaction(
        producer_id=value.producer_id,
        epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        updated_ms=value.transaction_last_update_timestamp_ms,
        state=BY_NUMBER[value.transaction_status],
        partitions=frozenset(
            (topic.topic, index) for topic in value.transaction_partitions or () for index in topic.partition_ids
        ),
        started_ms=value.transaction_start_timestamp_ms,
        version=value.client_transaction_version,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        last_epoch=last_epoch,
    )
