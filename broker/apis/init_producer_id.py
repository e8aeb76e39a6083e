"""InitProducerId: an identity for an idempotent producer.

Any broker hands them out, from its own block; the epoch begins at 0.  v3+: a producer may come back with the identity
it had, and without a transactional id that is answered with a new one, as Kafka does.  Transactional ids belong to a
coordinator, which this broker does not have yet (KNOWN_GAPS.md).  v6 is for two-phase commit, and unstable in Kafka.
"""

from collections.abc import Coroutine
from typing import Any

from trilogue.broker.api import handles
from trilogue.broker.connection import Peer
from trilogue.broker.server import Broker
from trilogue.wire.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from trilogue.wire.errors import BrokerError, ErrorCode


@handles(InitProducerIdRequest, "0-5")
def init_producer_id(
    broker: Broker, request: InitProducerIdRequest, peer: Peer
) -> InitProducerIdResponse | Coroutine[Any, Any, InitProducerIdResponse]:
    if request.transactional_id == "":
        return refusal(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return draw(broker)


async def draw(broker: Broker) -> InitProducerIdResponse:
    try:
        return InitProducerIdResponse(producer_id=await broker.office.producer_id(), producer_epoch=0)
    except BrokerError as error:
        return refusal(error.code)


def refusal(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
