"""Whether what belongs to a transaction may be written (KIP-890).

A partition where the producer's transaction is open needs no asking.  Otherwise the coordinator is asked: to add the
partition if writing is adding, or else whether the client has added it.  A batch that nobody vouches for could
outlive its transaction, and hang there for ever.

So could one that was vouched for, if the transaction's marker is written while the answer is on its way.  A guard
(`storage/producers.py`) is put up before anybody is asked; whoever had to wait looks whether it still stands.
"""

from typing import NamedTuple, TypeGuard

import trio

from trilogue.broker.broker import Broker
from trilogue.broker.coordinators.ask_transaction import (
    Verdicts,
    add_partitions,
    ask_other_broker,
    transaction_shard,
    verify_partitions,
)
from trilogue.broker.names import TopicPartition
from trilogue.broker.partitions.partition import Partition
from trilogue.broker.requests.later import Later, settled
from trilogue.broker.requests.peer import Peer
from trilogue.broker.security.operations import Operation
from trilogue.broker.transactions.transaction import BUMPS, Identity
from trilogue.storage.producers import Guard
from trilogue.wire.errors import BrokerError, ErrorCode, MalformedMessage
from trilogue.wire.records import LOG_OVERHEAD, TRANSACTIONAL, read_header

ATTRIBUTES_AT = LOG_OVERHEAD + 10
"""Where the low byte of a batch's attributes is."""

WAITS = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""Nobody knows yet.  Producers hear NOT_ENOUGH_REPLICAS: they try again, and do not look for another leader."""

Refusals = dict[TopicPartition, BrokerError]
Batches = dict[TopicPartition, tuple[Partition, memoryview]]
Guards = dict[TopicPartition, tuple[Partition, Guard | None]]
"""None where the transaction is open already, and nobody has to be asked."""


class Writer(NamedTuple):
    """Who writes in a transaction, and what it knows by its version of the API."""

    transactional_id: str
    adds: bool
    """Writing is adding."""
    knows_abortable: bool
    """TRANSACTION_ABORTABLE, that is."""


def is_transactional(records: memoryview | None) -> TypeGuard[memoryview]:
    return records is not None and len(records) > ATTRIBUTES_AT and records[ATTRIBUTES_AT] & TRANSACTIONAL != 0


def admit(broker: Broker, peer: Peer, writer: Writer, batches: Batches) -> Refusals | Later[Refusals]:
    """Which of these may not be written, and why."""
    producers: set[Identity] = set()
    guards: Guards = {}
    for key, (partition, records) in batches.items():
        try:
            header = read_header(records)
        except MalformedMessage:
            continue  # whoever appends it will say so
        who = Identity(header.producer_id, header.producer_epoch)
        producers.add(who)
        standing = None if is_open(partition, who) else guard(broker, partition, writer, who, header.base_sequence)
        guards[key] = partition, standing
    if len(producers) > 1:
        return dict.fromkeys(batches, BrokerError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, "more than one producer"))
    if all(each is None for _, each in guards.values()):
        return {}
    (who,) = producers
    return vouch(broker, peer, writer, who, guards)


def guard(broker: Broker, partition: Partition, writer: Writer, who: Identity, sequence: int) -> Guard:
    """Put up where no transaction of this producer is open."""
    return partition.log.guard(*who, sequence, broker.clock(), BUMPS if writer.adds else 1)


def is_open(partition: Partition, who: Identity) -> bool:
    """Whether a transaction of this producer is open there; or it is fenced, which the log will say by itself."""
    known = partition.log.producer(who.producer_id)
    return known is not None and (
        known.epoch > who.epoch or (known.epoch == who.epoch and known.transaction_start >= 0)
    )


def vouch(broker: Broker, peer: Peer, writer: Writer, who: Identity, guards: Guards) -> Refusals | Later[Refusals]:
    """Ask the coordinator about partitions in which no transaction of this producer is open."""
    if not writer.adds and not broker.config["transaction.partition.verification.enable"]:
        return {}
    partitions = frozenset(key for key, (_, each) in guards.items() if each is not None)
    verdicts = ask(broker, peer, writer, who, partitions)
    if isinstance(verdicts, dict) and not (writer.adds and ErrorCode.CONCURRENT_TRANSACTIONS in verdicts.values()):
        return refusals(verdicts, writer)
    return vouch_later(broker, peer, writer, who, partitions, verdicts, guards)


def ask(
    broker: Broker, peer: Peer, writer: Writer, who: Identity, partitions: frozenset[TopicPartition]
) -> Verdicts | Later[Verdicts]:
    """Of the coordinator, wherever it is."""
    name = writer.transactional_id
    try:
        transaction_shard(broker, peer, Operation.WRITE, name)
    except BrokerError as error:
        if error.code is ErrorCode.NOT_COORDINATOR:
            return ask_other_broker(broker, name, who, partitions, adding=writer.adds)
        return dict.fromkeys(partitions, error.code)
    if writer.adds:
        return add_partitions(broker, peer, Operation.WRITE, name, who, partitions, BUMPS)
    return verify_partitions(broker, peer, Operation.WRITE, name, who, partitions)


async def vouch_later(
    broker: Broker,
    peer: Peer,
    writer: Writer,
    who: Identity,
    partitions: frozenset[TopicPartition],
    verdicts: Verdicts | Later[Verdicts],
    guards: Guards,
) -> Refusals:
    """Wait for the answer, and for the transaction before to be complete: its markers take a moment.

    What is not refused has to be written before anybody else has a turn."""
    pause = broker.config["add.partitions.to.txn.retry.backoff.ms"] / 1000
    until = trio.current_time() + broker.config["add.partitions.to.txn.retry.backoff.max.ms"] / 1000
    while True:
        found = await settled(verdicts)
        busy = writer.adds and ErrorCode.CONCURRENT_TRANSACTIONS in found.values()
        if not busy or trio.current_time() + pause > until:
            return outlived(who, guards) | refusals(found, writer)
        await trio.sleep(pause)
        verdicts = ask(broker, peer, writer, who, partitions)


def outlived(who: Identity, guards: Guards) -> Refusals:
    """What was vouched for in a transaction that has ended since."""
    return {
        key: BrokerError(ErrorCode.INVALID_TXN_STATE, "Record was not part of an ongoing transaction")
        for key, (partition, each) in guards.items()
        if not is_open(partition, who) and not partition.log.stands(who.producer_id, each)
    }


def refusals(verdicts: Verdicts, writer: Writer) -> Refusals:
    return {key: refusal(code, writer) for key, code in verdicts.items() if code is not ErrorCode.NONE}


def refusal(code: ErrorCode, writer: Writer) -> BrokerError:
    """What a writer hears of what the coordinator said."""
    # Who writes by adding knows what to do about a transaction that is not complete.
    if code in WAITS or (code is ErrorCode.CONCURRENT_TRANSACTIONS and not writer.adds):
        problem = f"Unable to verify the partition has been added to the transaction. Underlying error: {code.name}"
        return BrokerError(ErrorCode.NOT_ENOUGH_REPLICAS, problem)
    if code is ErrorCode.PRODUCER_FENCED:
        return BrokerError(ErrorCode.INVALID_PRODUCER_EPOCH)
    if code is ErrorCode.TRANSACTION_ABORTABLE and not writer.knows_abortable:
        code = ErrorCode.INVALID_TXN_STATE
    if code is ErrorCode.INVALID_TXN_STATE:
        return BrokerError(code, "Partition was not added to the transaction")
    return BrokerError(code)
