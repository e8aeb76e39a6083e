"""AddOffsetsToTxn: a transaction is going to commit offsets of a group.

To its coordinator that is one more partition: the one of __consumer_offsets where the group lives.  The topic is made
if it is not there.  v2+: fenced producers hear PRODUCER_FENCED.  Clients of transaction.version 2 do not send this.
"""

from trilogue.broker.broker import Broker
from trilogue.broker.coordinators.ask_transaction import ask_transaction, fenced_code
from trilogue.broker.coordinators.lookup import ensure_topic, partition_of
from trilogue.broker.names import OFFSETS_TOPIC
from trilogue.broker.requests.later import Later, settled, then
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.broker.security.operations import Operation
from trilogue.broker.transactions.coordinator import Outcome, TransactionCoordinator
from trilogue.broker.transactions.transaction import Identity
from trilogue.wire.apis.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from trilogue.wire.errors import BrokerError, ErrorCode

KNOWS_FENCED = 2


@handles(AddOffsetsToTxnRequest)
def add_offsets_to_txn(
    broker: Broker, request: AddOffsetsToTxnRequest, peer: Peer
) -> AddOffsetsToTxnResponse | Later[AddOffsetsToTxnResponse]:
    version = peer.version

    def shape(outcome: Outcome) -> AddOffsetsToTxnResponse:
        return AddOffsetsToTxnResponse(error_code=fenced_code(outcome.error, version, KNOWS_FENCED))

    if not request.transactional_id:
        return shape(Outcome(ErrorCode.INVALID_REQUEST))
    there = OFFSETS_TOPIC in broker.image.topics
    return then(add(broker, request, peer) if there else make_and_add(broker, request, peer), shape)


async def make_and_add(broker: Broker, request: AddOffsetsToTxnRequest, peer: Peer) -> Outcome:
    try:
        await ensure_topic(broker, OFFSETS_TOPIC)
    except BrokerError as error:
        return Outcome(error.code)
    return await settled(add(broker, request, peer))


def add(broker: Broker, request: AddOffsetsToTxnRequest, peer: Peer) -> Outcome | Later[Outcome]:
    partitions = frozenset({(OFFSETS_TOPIC, partition_of(broker, OFFSETS_TOPIC, request.group_id))})
    whose, who = request.transactional_id, Identity(request.producer_id, request.producer_epoch)
    act = TransactionCoordinator.add
    return ask_transaction(broker, peer, Operation.WRITE, whose, act, who, partitions, 0, refuse=Outcome)
