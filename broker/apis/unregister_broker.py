"""UnregisterBroker: forget a broker that is gone for good.

Here a broker that is gone is forgotten by itself: its registration ends with it.  So an unknown broker is one we have
forgotten, and one that lives cannot be, which Kafka would allow (KNOWN_GAPS.md).  There is one version.
"""

from trilogue.broker.broker import Broker
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.wire.apis.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from trilogue.wire.errors import ErrorCode


@handles(UnregisterBrokerRequest)
def unregister_broker(broker: Broker, request: UnregisterBrokerRequest, peer: Peer) -> UnregisterBrokerResponse:
    if request.broker_id in broker.image.brokers:
        return UnregisterBrokerResponse(
            error_code=ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            error_message=f"Broker {request.broker_id} is alive; it is forgotten when it is stopped.",
        )
    return UnregisterBrokerResponse(
        error_code=ErrorCode.BROKER_ID_NOT_REGISTERED,
        error_message=f"No broker {request.broker_id} is registered.",
    )
