"""InitProducerId: an identity for a producer.

Without a transactional id any broker hands one out, from its own block, with epoch 0.  With one, its coordinator
does: the epoch is raised, which fences whoever had the id before; its transaction is aborted first, and the new
producer hears CONCURRENT_TRANSACTIONS until it is.  When the epochs are used up, a new producer id takes over.
v3+: a producer may come back with the identity it had, and is refused if somebody else has come since.  v4+: fenced
producers hear PRODUCER_FENCED.  v6 is for two-phase commit, and unstable in Kafka.
"""

from trilogue.broker.broker import Broker
from trilogue.broker.coordinators.ask_transaction import ask_with_new_id, fenced_code
from trilogue.broker.requests.later import Later, then
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.broker.requests.seams import controller
from trilogue.broker.security.operations import Operation
from trilogue.broker.transactions.coordinator import Outcome, TransactionCoordinator
from trilogue.broker.transactions.transaction import NOBODY, Identity
from trilogue.wire.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from trilogue.wire.errors import BrokerError, ErrorCode

KNOWS_FENCED = 4


@handles(InitProducerIdRequest, "0-5")
def init_producer_id(
    broker: Broker, request: InitProducerIdRequest, peer: Peer
) -> InitProducerIdResponse | Later[InitProducerIdResponse]:
    version = peer.version

    def shape(outcome: Outcome) -> InitProducerIdResponse:
        return InitProducerIdResponse(
            error_code=fenced_code(outcome.error, version, KNOWS_FENCED),
            producer_id=outcome.producer_id,
            producer_epoch=outcome.epoch,
        )

    return then(initialise(broker, request, peer), shape)


def initialise(broker: Broker, request: InitProducerIdRequest, peer: Peer) -> Outcome | Later[Outcome]:
    if (request.producer_id == NOBODY) != (request.producer_epoch == NOBODY):
        return Outcome(ErrorCode.INVALID_REQUEST)  # an id without an epoch, or the other way round
    if request.transactional_id is None:
        return draw(broker, peer)
    who = None if request.producer_id == NOBODY else Identity(request.producer_id, request.producer_epoch)
    timeout_ms = request.transaction_timeout_ms
    act = TransactionCoordinator.initialise
    return ask_with_new_id(broker, peer, Operation.WRITE, request.transactional_id, act, timeout_ms, who)


async def draw(broker: Broker, peer: Peer) -> Outcome:
    try:
        return Outcome(producer_id=await controller(broker, peer, Operation.IDEMPOTENT_WRITE).producer_id(), epoch=0)
    except BrokerError as error:
        return Outcome(error.code)
