"""Whether batches that belong to a transaction may be written (KIP-890).

A partition where the producer's transaction is open needs no asking.  Otherwise the coordinator is asked: from
Produce v12 on to add the partition, before that whether the client has added it.  A batch that nobody vouches for could
outlive its transaction, and hang there for ever.
"""

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeGuard

import trio

from trilogue.broker.coordinators.ask_transaction import Verdicts, enlist, for_writers
from trilogue.broker.names import TopicPartition
from trilogue.broker.partitions.partition import Partition
from trilogue.broker.transactions.transaction import Identity
from trilogue.wire.errors import BrokerError, ErrorCode, MalformedMessage
from trilogue.wire.records import LOG_OVERHEAD, TRANSACTIONAL, read_header

if TYPE_CHECKING:
    from trilogue.broker.server import Broker

KNOWS_ABORTABLE = 11
ADDS = 12
"""From this version of Produce on, writing is adding."""

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


def is_transactional(records: memoryview | None) -> TypeGuard[memoryview]:
    return records is not None and len(records) > ATTRIBUTES_AT and records[ATTRIBUTES_AT] & TRANSACTIONAL != 0


def admit(
    broker: "Broker", transactional_id: str, batches: Batches, version: int
) -> Refusals | Coroutine[Any, Any, Refusals]:
    """Which of these may not be written, and why; if that takes time, something to wait for."""
    producers: set[Identity] = set()
    asked: set[TopicPartition] = set()
    for place, (partition, records) in batches.items():
        try:
            header = read_header(records)
        except MalformedMessage:
            continue  # whoever appends it will say so
        who = Identity(header.producer_id, header.producer_epoch)
        producers.add(who)
        known = partition.log.producer(who.producer_id)
        # Of a later epoch: fenced, which the log will say by itself.
        if known is None or known.epoch < who.epoch or (known.epoch == who.epoch and known.transaction_start < 0):
            asked.add(place)
    if len(producers) > 1:
        return dict.fromkeys(batches, BrokerError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, "more than one producer"))
    if not asked or (version < ADDS and not broker.config["transaction.partition.verification.enable"]):
        return {}
    (who,) = producers
    verdicts = enlist(broker, transactional_id, who, frozenset(asked), adding=version >= ADDS)
    if isinstance(verdicts, dict) and not (version >= ADDS and ErrorCode.CONCURRENT_TRANSACTIONS in verdicts.values()):
        return refusals(verdicts, version)
    return ask_again(broker, transactional_id, who, frozenset(asked), version, verdicts)


async def ask_again(
    broker: "Broker",
    transactional_id: str,
    who: Identity,
    places: frozenset[TopicPartition],
    version: int,
    verdicts: Verdicts | Coroutine[Any, Any, Verdicts],
) -> Refusals:
    """Wait for the answer, and for the transaction before to be complete: its markers take a moment."""
    pause = broker.config["add.partitions.to.txn.retry.backoff.ms"] / 1000
    until = trio.current_time() + broker.config["add.partitions.to.txn.retry.backoff.max.ms"] / 1000
    while True:
        found = verdicts if isinstance(verdicts, dict) else await verdicts
        busy = version >= ADDS and ErrorCode.CONCURRENT_TRANSACTIONS in found.values()
        if not busy or trio.current_time() + pause > until:
            return refusals(found, version)
        await trio.sleep(pause)
        verdicts = enlist(broker, transactional_id, who, places, adding=True)


def refusals(verdicts: Verdicts, version: int) -> Refusals:
    return {place: refusal(code, version) for place, code in verdicts.items() if code is not ErrorCode.NONE}


def refusal(code: ErrorCode, version: int) -> BrokerError:
    # Who writes by adding knows what to do about a transaction that is not complete.
    if code in WAITS or (code is ErrorCode.CONCURRENT_TRANSACTIONS and version < ADDS):
        problem = f"Unable to verify the partition has been added to the transaction. Underlying error: {code.name}"
        return BrokerError(ErrorCode.NOT_ENOUGH_REPLICAS, problem)
    said = for_writers(code, abortable=version >= KNOWS_ABORTABLE)
    if said is ErrorCode.INVALID_TXN_STATE:
        return BrokerError(said, "Partition was not added to the transaction")
    return BrokerError(said)
