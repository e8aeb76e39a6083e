"""EndTxn: commit or abort a transaction.

Answered when the decision is stored; markers follow.  v2+: fenced producers hear PRODUCER_FENCED.  v5+ (KIP-890): the
answer holds the identity for the next transaction, with a raised epoch; who repeats the request hears the same again.
"""

from trilogue.broker.broker import Broker
from trilogue.broker.coordinators.ask_transaction import ask_transaction, ask_with_new_id, fenced_code
from trilogue.broker.requests.later import Later, then
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.broker.security.operations import Operation
from trilogue.broker.transactions.coordinator import Outcome, TransactionCoordinator
from trilogue.broker.transactions.transaction import BUMPS, NOBODY, Identity
from trilogue.wire.apis.end_txn import EndTxnRequest, EndTxnResponse

KNOWS_FENCED = 2
KNOWS_BUMPS = 5


@handles(EndTxnRequest)
def end_txn(broker: Broker, request: EndTxnRequest, peer: Peer) -> EndTxnResponse | Later[EndTxnResponse]:
    version = peer.version

    def shape(outcome: Outcome) -> EndTxnResponse:
        return EndTxnResponse(
            error_code=fenced_code(outcome.error, version, KNOWS_FENCED),
            producer_id=outcome.producer_id,
            producer_epoch=outcome.epoch,
        )

    return then(end(broker, request, peer), shape)


def end(broker: Broker, request: EndTxnRequest, peer: Peer) -> Outcome | Later[Outcome]:
    whose, act = request.transactional_id, TransactionCoordinator.end
    who, committed = Identity(request.producer_id, request.producer_epoch), request.committed
    if peer.version >= KNOWS_BUMPS:
        return ask_with_new_id(broker, peer, Operation.WRITE, whose, act, who, committed, BUMPS)
    return ask_transaction(broker, peer, Operation.WRITE, whose, act, who, committed, 0, NOBODY, refuse=Outcome)
