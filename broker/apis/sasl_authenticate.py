"""SaslAuthenticate: another broker proves who it is.  Clients, who have agreed on no mechanism, are refused."""

from trilogue.broker.broker import Broker
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.broker.security.brokers import MECHANISM
from trilogue.broker.security.sasl.login import NOT_NOW
from trilogue.broker.security.sasl.mechanism import SaslFailed, in_words
from trilogue.wire.apis.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from trilogue.wire.errors import ErrorCode


@handles(SaslAuthenticateRequest)
def sasl_authenticate(broker: Broker, request: SaslAuthenticateRequest, peer: Peer) -> SaslAuthenticateResponse:
    if peer.exchange is None:
        return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=NOT_NOW, auth_bytes=b"")
    try:
        answer = peer.exchange.hear(bytes(request.auth_bytes))
    except SaslFailed as failed:
        peer.exchange = None
        code, message = ErrorCode.SASL_AUTHENTICATION_FAILED, in_words(failed, MECHANISM, again=False)
        return SaslAuthenticateResponse(error_code=code, error_message=message, auth_bytes=b"")
    if peer.exchange.identity is not None:
        peer.broker, peer.exchange = peer.exchange.identity, None
    return SaslAuthenticateResponse(error_message=None, auth_bytes=answer)
