"""AddOffsetsToTxn: a transaction is going to commit offsets of a group.

To its coordinator that is one more partition: the one of __consumer_offsets where the group lives.  The topic is made
if it is not there.  v2+: fenced producers hear PRODUCER_FENCED.  Clients of transaction.version 2 do not send this.
"""

from collections.abc import Coroutine
from typing import Any

from trilogue.broker.coordinators.ask_transaction import coordinator, heard
from trilogue.broker.coordinators.lookup import ensure_topic, partition_of
from trilogue.broker.names import OFFSETS_TOPIC
from trilogue.broker.requests.later import then
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.broker.server import Broker
from trilogue.broker.transactions.coordinator import Outcome
from trilogue.broker.transactions.transaction import Identity
from trilogue.wire.apis.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from trilogue.wire.errors import BrokerError, ErrorCode

KNOWS_FENCED = 2


@handles(AddOffsetsToTxnRequest)
def add_offsets_to_txn(
    broker: Broker, request: AddOffsetsToTxnRequest, peer: Peer
) -> AddOffsetsToTxnResponse | Coroutine[Any, Any, AddOffsetsToTxnResponse]:
    version = peer.version

    def shape(outcome: Outcome) -> AddOffsetsToTxnResponse:
        return AddOffsetsToTxnResponse(error_code=heard(outcome.error, version, KNOWS_FENCED))

    if not request.transactional_id:
        return shape(Outcome(ErrorCode.INVALID_REQUEST))
    if OFFSETS_TOPIC not in broker.image.topics:
        return then(make_and_add(broker, request), shape)
    try:
        return then(add(broker, request), shape)
    except BrokerError as error:
        return shape(Outcome(error.code))


async def make_and_add(broker: Broker, request: AddOffsetsToTxnRequest) -> Outcome:
    try:
        await ensure_topic(broker, OFFSETS_TOPIC)
        answer = add(broker, request)
    except BrokerError as error:
        return Outcome(error.code)
    return answer if isinstance(answer, Outcome) else await answer


def add(broker: Broker, request: AddOffsetsToTxnRequest) -> Outcome | Coroutine[Any, Any, Outcome]:
    place = (OFFSETS_TOPIC, partition_of(broker, OFFSETS_TOPIC, request.group_id))
    shard, machine = coordinator(broker, request.transactional_id)
    who = Identity(request.producer_id, request.producer_epoch)
    return shard.ask(machine.add, request.transactional_id, who, frozenset({place}), 0, refuse=Outcome)
