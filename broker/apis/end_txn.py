"""EndTxn: commit or abort a transaction.

Answered when the decision is stored; markers follow.  v2+: fenced producers hear PRODUCER_FENCED.  v5+ (KIP-890): the
answer holds the identity for the next transaction, with a raised epoch; who repeats the request hears the same again.
"""

from collections.abc import Coroutine
from typing import Any

from trilogue.broker.coordinators.ask_transaction import coordinator, heard
from trilogue.broker.requests.later import then
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.broker.server import Broker
from trilogue.broker.transactions.coordinator import Outcome
from trilogue.broker.transactions.transaction import BUMPS, NOBODY, Identity
from trilogue.wire.apis.end_txn import EndTxnRequest, EndTxnResponse
from trilogue.wire.errors import BrokerError, ErrorCode

KNOWS_FENCED = 2
KNOWS_BUMPS = 5


@handles(EndTxnRequest)
def end_txn(broker: Broker, request: EndTxnRequest, peer: Peer) -> EndTxnResponse | Coroutine[Any, Any, EndTxnResponse]:
    version = peer.version

    def shape(outcome: Outcome) -> EndTxnResponse:
        return EndTxnResponse(
            error_code=heard(outcome.error, version, KNOWS_FENCED),
            producer_id=outcome.producer_id,
            producer_epoch=outcome.epoch,
        )

    try:
        if not request.transactional_id:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "an empty transactional id")
        shard, machine = coordinator(broker, request.transactional_id)
        if shard.active and version >= KNOWS_BUMPS and machine.wants_new_id(request.transactional_id):
            return then(draw_and_ask(broker, request, version), shape)
        return then(ask(broker, request, version, NOBODY), shape)
    except BrokerError as error:
        return shape(Outcome(error.code))


async def draw_and_ask(broker: Broker, request: EndTxnRequest, version: int) -> Outcome:
    try:
        answer = ask(broker, request, version, await broker.controller.producer_id())
    except BrokerError as error:
        return Outcome(error.code)
    return answer if isinstance(answer, Outcome) else await answer


def ask(broker: Broker, request: EndTxnRequest, version: int, new_id: int) -> Outcome | Coroutine[Any, Any, Outcome]:
    shard, machine = coordinator(broker, request.transactional_id)
    return shard.ask(
        machine.end,
        request.transactional_id,
        Identity(request.producer_id, request.producer_epoch),
        request.committed,
        BUMPS if version >= KNOWS_BUMPS else 0,
        new_id,
        refuse=Outcome,
    )
