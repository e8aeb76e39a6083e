"""A connection of a listener with SASL: nothing is handled for it before it is known who it is.

What may come when is said in `security/sasl/login.py`; here it is read and answered, and refusals are held back for a
while, so that nobody tries passwords quickly.
"""

from functools import partial

import trio

from trilogue.broker.broker import Broker
from trilogue.broker.cluster.users import credential_of
from trilogue.broker.network.buffers import Spares
from trilogue.broker.network.connection import Connection
from trilogue.broker.network.sasl import Sasl
from trilogue.broker.requests.peer import Hangup, Peer
from trilogue.broker.requests.registry import APIS
from trilogue.broker.security.brokers import MECHANISM as OF_BROKERS
from trilogue.broker.security.brokers import Exchange
from trilogue.broker.security.principals import user
from trilogue.broker.security.sasl.login import Login, Offered, Step
from trilogue.broker.security.sasl.mechanism import Mechanism
from trilogue.broker.security.sasl.plain import NAME as PLAIN
from trilogue.broker.security.sasl.plain import Plain
from trilogue.broker.security.sasl.scram import Known, Scram, pretended
from trilogue.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from trilogue.wire.apis.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from trilogue.wire.apis.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from trilogue.wire.errors import ErrorCode
from trilogue.wire.frame import SIZE, Header, read_header, request_reader, write_response
from trilogue.wire.schema import Request, Response
from trilogue.wire.scram import First, ScramMechanism

HANDSHAKE = SaslHandshakeRequest.api_key.to_bytes(2, "big")


class Authenticating(Connection):
    """`peer.login` is there."""

    __slots__ = ()

    def __init__(self, broker: Broker, peer: Peer, spares: Spares) -> None:
        super().__init__(broker, peer, spares)
        self.bytes_max = broker.config["sasl.server.max.receive.size"]

    def resume(self) -> None:
        login = self.peer.login
        assert login is not None
        if login.step is Step.OVER and not self.out:
            raise Hangup(login.why)
        super().resume()

    def _handle(self, frame: memoryview) -> int:
        login = self.peer.login
        assert login is not None
        if login.step is Step.KNOWN:
            if login.ends_ms is None:
                return super()._handle(frame)
            now = self._broker.clock()
            begins_again = frame[: len(HANDSHAKE)] == HANDSHAKE and login.may_begin_again(now)
            if login.known(now) and not begins_again:
                return super()._handle(frame)
        if login.step is Step.OVER:
            raise Hangup(login.why)
        if login.step is Step.RAW:
            self._hear_raw(login, bytes(frame))
        else:
            self._hear(login, frame, read_header(frame))
        return len(frame)

    def _hear(self, login: Login, frame: memoryview, header: Header) -> None:
        key, version = header.key, header.version
        if key not in login.awaited:
            raise Hangup(f"it asked for API {key} before it was known who it is")
        api = APIS[key]
        if version not in api.numbers:
            self._refuse(header)  # of ApiVersions: it may ask again
            return
        self.peer.version, self.peer.client_id = version, header.client_id
        answer = self._answer(login, request_reader(api.request, version)(frame, header.body_at))
        if login.step is Step.OVER and isinstance(answer, SaslAuthenticateResponse):
            self.promise(after(login.delay_seconds, answer), api, version, header.correlation_id)
            return
        self.out.extend(write_response(answer, version, header.correlation_id))
        if login.step is Step.OVER:
            self._close_later(login)

    def _answer(self, login: Login, request: Request) -> Response:
        now = self._broker.clock()
        if isinstance(request, SaslHandshakeRequest):
            code, mechanisms = login.shake_hands(request.mechanism, self.peer.version, now)
            return SaslHandshakeResponse(error_code=code, mechanisms=mechanisms)
        if isinstance(request, SaslAuthenticateRequest):
            heard = login.hear(bytes(request.auth_bytes), now)
            self._take_note(login)
            return SaslAuthenticateResponse(
                error_code=heard.code,
                error_message=heard.message,
                auth_bytes=heard.auth_bytes,
                session_lifetime_ms=heard.lifetime_ms,
            )
        answer = APIS[ApiVersionsRequest.api_key].handler(self._broker, request, self.peer)
        assert isinstance(answer, ApiVersionsResponse)
        if answer.error_code == ErrorCode.NONE:
            login.asked_versions()
        return answer

    def _hear_raw(self, login: Login, message: bytes) -> None:
        """Of the oldest clients: only the mechanism's own messages, each behind its size."""
        heard = login.hear(message, self._broker.clock())
        self._take_note(login)
        if login.step is Step.OVER:
            self._close_later(login)
        else:
            self.out.append(SIZE.pack(len(heard.auth_bytes)) + heard.auth_bytes)

    def _take_note(self, login: Login) -> None:
        if login.step is not Step.KNOWN:
            return
        self.peer.principal, self.bytes_max = login.principal, self._broker.request_bytes_max
        if isinstance(login.mechanism, Exchange):
            self.peer.broker = login.mechanism.identity

    def _close_later(self, login: Login) -> None:
        """`resume` does it, once there is nothing more to wait for."""
        self.later = after(login.delay_seconds, None)


async def after(seconds: float, answer: Response | None) -> Response | None:
    await trio.sleep(seconds)
    return answer


# -- what a listener offers ------------------------------------------------------------------------


def offered(broker: Broker, sasl: Sasl) -> Offered:
    made = {PLAIN: partial(Plain, sasl.passwords)} | {
        kind.sasl_name: partial(scram, broker, kind) for kind in ScramMechanism
    }
    return Offered(
        {name: made[name] for name in sasl.mechanisms},
        {OF_BROKERS: partial(of_brokers, broker)},
        sasl.lifetimes_ms,
        sasl.failed_delay_seconds,
    )


def scram(broker: Broker, kind: ScramMechanism) -> Mechanism:
    def find(first: First) -> Known | None:
        if first.is_token:
            return None
        credential = credential_of(broker.image, first.name, kind)
        return Known(credential, user(first.name)) if credential is not None else None

    return Scram(kind, find, partial(pretended, kind, broker.image.secret), broker.fresh_nonce())


def of_brokers(broker: Broker) -> Mechanism:
    if not broker.image.secret:
        raise Hangup("brokers have no secret yet by which to know each other")
    return Exchange(broker.image.secret, broker.fresh_nonce())
