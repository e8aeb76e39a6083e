"""UnregisterBroker: forget a broker that is gone for good.

New partitions are no longer given to it.  Kafka also forgets one that is there, which then is of no use until it is
started again; here that is refused (KNOWN_GAPS.md).  There is one version.
"""

from trilogue.broker.broker import Broker
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.broker.requests.seams import controller
from trilogue.broker.security.operations import Operation
from trilogue.wire.apis.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from trilogue.wire.errors import BrokerError


@handles(UnregisterBrokerRequest)
async def unregister_broker(broker: Broker, request: UnregisterBrokerRequest, peer: Peer) -> UnregisterBrokerResponse:
    try:
        await controller(broker, peer, Operation.ALTER).unregister(request.broker_id)
    except BrokerError as error:
        return UnregisterBrokerResponse(error_code=error.code, error_message=error.message)
    return UnregisterBrokerResponse(error_message="")
