"""SaslHandshake: agree on a mechanism.

Clients are not asked who they are yet, and hear ILLEGAL_SASL_STATE, as on a listener of Kafka's without SASL.  Brokers
have a mechanism of their own.
"""

from trilogue.broker.broker import Broker
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.broker.security.brokers import MECHANISM, Exchange
from trilogue.wire.apis.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from trilogue.wire.errors import ErrorCode


@handles(SaslHandshakeRequest)
def sasl_handshake(broker: Broker, request: SaslHandshakeRequest, peer: Peer) -> SaslHandshakeResponse:
    if request.mechanism != MECHANISM or not broker.image.secret:
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=[])
    peer.exchange = Exchange(broker.image.secret, broker.fresh_nonce())
    return SaslHandshakeResponse(mechanisms=[MECHANISM])
