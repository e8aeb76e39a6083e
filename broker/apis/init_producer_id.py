"""InitProducerId: an identity for a producer.

Without a transactional id any broker hands one out, from its own block, with epoch 0.  With one, its coordinator
does: the epoch is raised, which fences whoever had the id before; its transaction is aborted first, and the new
producer hears CONCURRENT_TRANSACTIONS until it is.  When the epochs are used up, a new producer id takes over.
v3+: a producer may come back with the identity it had, and is refused if somebody else has come since.  v4+: fenced
producers hear PRODUCER_FENCED.  v6 is for two-phase commit, and unstable in Kafka.
"""

from collections.abc import Coroutine
from typing import Any

from trilogue.broker.coordinators.ask_transaction import coordinator, heard
from trilogue.broker.requests.later import then
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.broker.server import Broker
from trilogue.broker.transactions.coordinator import Outcome
from trilogue.broker.transactions.transaction import NOBODY, Identity
from trilogue.wire.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from trilogue.wire.errors import BrokerError, ErrorCode

KNOWS_FENCED = 4


@handles(InitProducerIdRequest, "0-5")
def init_producer_id(
    broker: Broker, request: InitProducerIdRequest, peer: Peer
) -> InitProducerIdResponse | Coroutine[Any, Any, InitProducerIdResponse]:
    version = peer.version

    def shape(outcome: Outcome) -> InitProducerIdResponse:
        return InitProducerIdResponse(
            error_code=heard(outcome.error, version, KNOWS_FENCED),
            producer_id=outcome.producer_id,
            producer_epoch=outcome.epoch,
        )

    try:
        return then(decide(broker, request), shape)
    except BrokerError as error:
        return shape(Outcome(error.code))


def decide(broker: Broker, request: InitProducerIdRequest) -> Outcome | Coroutine[Any, Any, Outcome]:
    if (request.producer_id == NOBODY) != (request.producer_epoch == NOBODY):
        raise BrokerError(ErrorCode.INVALID_REQUEST, "a producer id without an epoch, or the other way round")
    if request.transactional_id is None:
        return draw(broker)
    if not request.transactional_id:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "an empty transactional id")
    shard, machine = coordinator(broker, request.transactional_id)
    if shard.active and machine.wants_new_id(request.transactional_id):
        return draw_and_ask(broker, request)
    return ask(broker, request, NOBODY)


async def draw(broker: Broker) -> Outcome:
    try:
        return Outcome(producer_id=await broker.controller.producer_id(), epoch=0)
    except BrokerError as error:
        return Outcome(error.code)


async def draw_and_ask(broker: Broker, request: InitProducerIdRequest) -> Outcome:
    try:
        answer = ask(broker, request, await broker.controller.producer_id())
    except BrokerError as error:
        return Outcome(error.code)
    return answer if isinstance(answer, Outcome) else await answer


def ask(broker: Broker, request: InitProducerIdRequest, new_id: int) -> Outcome | Coroutine[Any, Any, Outcome]:
    transactional_id = request.transactional_id
    assert transactional_id is not None
    who = None if request.producer_id == NOBODY else Identity(request.producer_id, request.producer_epoch)
    shard, machine = coordinator(broker, transactional_id)
    return shard.ask(machine.initialise, transactional_id, request.transaction_timeout_ms, who, new_id, refuse=Outcome)
