"""SaslAuthenticate: another broker proves who it is.  Clients, who have agreed on no mechanism, are refused."""

from trilogue.broker.broker import Broker
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.wire.apis.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from trilogue.wire.errors import BrokerError, ErrorCode

NOT_NOW = "SaslAuthenticate request received after successful authentication"


@handles(SaslAuthenticateRequest)
def sasl_authenticate(broker: Broker, request: SaslAuthenticateRequest, peer: Peer) -> SaslAuthenticateResponse:
    if peer.exchange is None:
        return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=NOT_NOW, auth_bytes=b"")
    try:
        answer = peer.exchange.hear(bytes(request.auth_bytes))
    except BrokerError as error:
        peer.exchange = None
        return SaslAuthenticateResponse(error_code=error.code, error_message=error.code.sentence, auth_bytes=b"")
    if peer.exchange.identity is not None:
        peer.broker, peer.exchange = peer.exchange.identity, None
    return SaslAuthenticateResponse(error_message=None, auth_bytes=answer)
