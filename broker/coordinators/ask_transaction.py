"""Transactional ids, for handlers: who coordinates them, and whether a write belongs to a transaction."""

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from trilogue.broker.coordinators.lookup import partition_of
from trilogue.broker.machines.runner import Shard
from trilogue.broker.names import TRANSACTIONS_TOPIC, TopicPartition
from trilogue.broker.requests.later import then
from trilogue.broker.transactions.coordinator import Outcome, TransactionCoordinator
from trilogue.broker.transactions.records import by_topic
from trilogue.broker.transactions.transaction import BUMPS, Identity
from trilogue.wire.apis.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, Topic
from trilogue.wire.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from trilogue.broker.server import Broker

REQUEST_VERSION = 5

Verdicts = dict[TopicPartition, ErrorCode]
"""For each partition whether it may be written to."""


def coordinator(broker: "Broker", transactional_id: str) -> tuple[Shard, TransactionCoordinator]:
    """Who looks after this id here.  Raises NOT_COORDINATOR, or what else a client has to hear."""
    shard = broker.transactions.shard(partition_of(broker, TRANSACTIONS_TOPIC, transactional_id))
    machine = shard.machine
    assert isinstance(machine, TransactionCoordinator)
    return shard, machine


def heard(code: ErrorCode, version: int, since: int) -> ErrorCode:
    """PRODUCER_FENCED, to clients that know it: older ones have another word for it."""
    return ErrorCode.INVALID_PRODUCER_EPOCH if code is ErrorCode.PRODUCER_FENCED and version < since else code


def enlist(
    broker: "Broker", transactional_id: str, who: Identity, places: frozenset[TopicPartition], *, adding: bool
) -> Verdicts | Coroutine[Any, Any, Verdicts]:
    """Before something is written in a transaction: have the coordinator add these partitions, or only look.

    What it says is for coordinators: see `for_writers`.
    """
    try:
        shard, machine = coordinator(broker, transactional_id)
    except BrokerError as error:
        if error.code is ErrorCode.NOT_COORDINATOR:
            return _ask_other_broker(broker, transactional_id, who, places, adding)
        return dict.fromkeys(places, error.code)
    if adding:
        outcome = shard.ask(machine.add, transactional_id, who, places, BUMPS, refuse=Outcome)
        return then(outcome, lambda answer: dict.fromkeys(places, answer.error))
    return shard.ask(machine.verify, transactional_id, who, places, refuse=lambda code: dict.fromkeys(places, code))


async def _ask_other_broker(
    broker: "Broker", transactional_id: str, who: Identity, places: frozenset[TopicPartition], adding: bool
) -> Verdicts:
    state = broker.image.partition(TRANSACTIONS_TOPIC, partition_of(broker, TRANSACTIONS_TOPIC, transactional_id))
    request = AddPartitionsToTxnRequest(
        transactions=[
            AddPartitionsToTxnRequest.Transaction(
                transactional_id=transactional_id,
                producer_id=who.producer_id,
                producer_epoch=who.epoch,
                verify_only=not adding,
                topics=[Topic(name=topic, partitions=indexes) for topic, indexes in by_topic(places)],
            )
        ]
    )
    try:
        if state is None or state.leader in (-1, broker.node_id):
            raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        answer = await broker.inter_broker(state.leader, request, REQUEST_VERSION, AddPartitionsToTxnResponse)
    except BrokerError:
        return dict.fromkeys(places, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    if answer.error_code:
        return dict.fromkeys(places, ErrorCode(answer.error_code))  # type: ignore[call-arg]
    return {
        (topic.name, each.partition_index): ErrorCode(each.partition_error_code)  # type: ignore[call-arg]
        for transaction in answer.results_by_transaction
        for topic in transaction.topic_results
        for each in topic.results_by_partition
    }


def for_writers(code: ErrorCode, *, abortable: bool) -> ErrorCode:
    """What a writer hears of what the coordinator said.  `abortable`: it knows TRANSACTION_ABORTABLE."""
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and not abortable:
        return ErrorCode.INVALID_TXN_STATE
    return code
