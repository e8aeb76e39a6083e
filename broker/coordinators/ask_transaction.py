"""How handlers put questions to the coordinators of transactions."""

from collections.abc import Callable
from typing import Any, TypeVar

from trilogue.broker.broker import Broker
from trilogue.broker.coordinators.lookup import partition_of
from trilogue.broker.machines.effects import Effect
from trilogue.broker.machines.shard import Shard
from trilogue.broker.names import TRANSACTIONS_TOPIC, TopicPartition
from trilogue.broker.requests.later import Later, settled, then
from trilogue.broker.requests.peer import Peer
from trilogue.broker.security.operations import Operation
from trilogue.broker.transactions.coordinator import Outcome, TransactionCoordinator
from trilogue.broker.transactions.records import by_topic
from trilogue.broker.transactions.transaction import NOBODY, Identity
from trilogue.wire.apis.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, Topic
from trilogue.wire.errors import BrokerError, ErrorCode

REQUEST_VERSION = 5

R = TypeVar("R")
Verdicts = dict[TopicPartition, ErrorCode]
"""For each partition whether it may be written to."""


def transaction_shard(
    broker: Broker, peer: Peer, operation: Operation, transactional_id: str
) -> Shard[TransactionCoordinator]:
    """Whoever looks after this id here.  Raises NOT_COORDINATOR, or what else a client has to hear."""
    if not transactional_id:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "an empty transactional id")
    return broker.transactions.shard(partition_of(broker, TRANSACTIONS_TOPIC, transactional_id))


def ask_transaction(
    broker: Broker,
    peer: Peer,
    operation: Operation,
    transactional_id: str,
    act: Callable[..., list[Effect]],
    *arguments: Any,
    refuse: Callable[[ErrorCode], R],
) -> R | Later[R]:
    """Put something to the coordinator of an id: `act(machine, now, transactional_id, *arguments, ticket)`."""
    try:
        shard = transaction_shard(broker, peer, operation, transactional_id)
    except BrokerError as error:
        return refuse(error.code)
    return shard.ask(act, transactional_id, *arguments, refuse=refuse)


def ask_with_new_id(
    broker: Broker,
    peer: Peer,
    operation: Operation,
    transactional_id: str,
    act: Callable[..., list[Effect]],
    *arguments: Any,
) -> Outcome | Later[Outcome]:
    """The same for what may use up the epochs of a producer: the last argument is an id that nobody has had, if it is
    going to be needed."""
    try:
        shard = transaction_shard(broker, peer, operation, transactional_id)
    except BrokerError as error:
        return Outcome(error.code)
    if shard.active and shard.machine.wants_new_id(transactional_id):
        return _draw_and_ask(broker, peer, operation, transactional_id, act, *arguments)
    return shard.ask(act, transactional_id, *arguments, NOBODY, refuse=Outcome)


async def _draw_and_ask(
    broker: Broker,
    peer: Peer,
    operation: Operation,
    transactional_id: str,
    act: Callable[..., list[Effect]],
    *arguments: Any,
) -> Outcome:
    try:
        new_id = await broker.controller.producer_id()
    except BrokerError as error:
        return Outcome(error.code)
    answer = ask_transaction(
        broker, peer, operation, transactional_id, act, *arguments, new_id, refuse=Outcome
    )  # whoever looks after it may be another shard by now
    return await settled(answer)


def add_partitions(
    broker: Broker,
    peer: Peer,
    operation: Operation,
    transactional_id: str,
    who: Identity,
    partitions: frozenset[TopicPartition],
    version: int,
) -> Verdicts | Later[Verdicts]:
    """Have the coordinator add them to the transaction, all or none; the version is the client's (KIP-890)."""
    outcome = ask_transaction(
        broker, peer, operation, transactional_id, TransactionCoordinator.add, who, partitions, version, refuse=Outcome
    )
    return then(outcome, lambda answer: dict.fromkeys(partitions, answer.error))


def verify_partitions(
    broker: Broker,
    peer: Peer,
    operation: Operation,
    transactional_id: str,
    who: Identity,
    partitions: frozenset[TopicPartition],
) -> Verdicts | Later[Verdicts]:
    """Ask the coordinator whether they have been added."""
    return ask_transaction(
        broker,
        peer,
        operation,
        transactional_id,
        TransactionCoordinator.verify,
        who,
        partitions,
        refuse=lambda code: dict.fromkeys(partitions, code),
    )


async def ask_other_broker(
    broker: Broker, transactional_id: str, who: Identity, partitions: frozenset[TopicPartition], *, adding: bool
) -> Verdicts:
    """The same, of the broker that looks after the id."""
    state = broker.image.partition(TRANSACTIONS_TOPIC, partition_of(broker, TRANSACTIONS_TOPIC, transactional_id))
    request = AddPartitionsToTxnRequest(
        transactions=[
            AddPartitionsToTxnRequest.Transaction(
                transactional_id=transactional_id,
                producer_id=who.producer_id,
                producer_epoch=who.epoch,
                verify_only=not adding,
                topics=[Topic(name=topic, partitions=indexes) for topic, indexes in by_topic(partitions)],
            )
        ]
    )
    try:
        if state is None or state.leader in (-1, broker.node_id):
            raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        answer = await broker.inter_broker(state.leader, request, REQUEST_VERSION, AddPartitionsToTxnResponse)
    except BrokerError:
        return dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    if answer.error_code:
        return dict.fromkeys(partitions, ErrorCode(answer.error_code))  # type: ignore[call-arg]
    return {
        (topic.name, each.partition_index): ErrorCode(each.partition_error_code)  # type: ignore[call-arg]
        for transaction in answer.results_by_transaction
        for topic in transaction.topic_results
        for each in topic.results_by_partition
    }


def fenced_code(code: ErrorCode, version: int, since: int) -> ErrorCode:
    """PRODUCER_FENCED, to clients that know it: older ones have another word for it."""
    return ErrorCode.INVALID_PRODUCER_EPOCH if code is ErrorCode.PRODUCER_FENCED and version < since else code
