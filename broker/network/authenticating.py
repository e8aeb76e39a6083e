"""A connection of a listener with SASL: nothing is handled for it before it is known who it is.

What may come when is said in `security/sasl/login.py`; here it is read and answered, and refusals are held back for a
while, so that nobody tries passwords quickly.
"""

import logging
from functools import partial

import trio

from trilogue.broker.broker import Broker
from trilogue.broker.network.buffers import Spares
from trilogue.broker.network.connection import Connection
from trilogue.broker.network.sasl import Sasl
from trilogue.broker.requests.peer import Hangup, Peer
from trilogue.broker.requests.registry import APIS
from trilogue.broker.security.brokers import MECHANISM as OF_BROKERS
from trilogue.broker.security.brokers import Exchange
from trilogue.broker.security.credentials import Credential, entity
from trilogue.broker.security.principals import user
from trilogue.broker.security.sasl.login import Heard, Login, Offered, Step
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

logger = logging.getLogger(__name__)

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
            if not login.known(now):
                raise Hangup("its login has ended")
            if frame[: len(HANDSHAKE)] != HANDSHAKE or not login.may_begin_again(now):
                return super()._handle(frame)
        if login.step is Step.RAW:
            self._hear_raw(login, bytes(frame))
        else:
            self._hear(login, frame, read_header(frame))
        return len(frame)

    def _hear(self, login: Login, frame: memoryview, header: Header) -> None:
        peer, key, version = self.peer, header.key, header.version
        request = {
            Step.START: (ApiVersionsRequest, SaslHandshakeRequest),
            Step.VERSIONS: (SaslHandshakeRequest,),
            Step.KNOWN: (SaslHandshakeRequest,),
            Step.TOKENS: () if login.begins_with_another else (SaslAuthenticateRequest,),
        }[login.step]
        asked = next((each for each in request if each.api_key == key), None)
        if asked is None:
            raise Hangup(f"it asked for API {key} before it was known who it is")
        if version not in APIS[key].numbers:
            self._refuse(header)  # of ApiVersions: it may ask again
            return
        peer.version, peer.client_id = version, header.client_id
        answer, late = self._answer(login, request_reader(asked, version)(frame, header.body_at))
        if late:
            self._hold_back(login, answer, header)
        else:
            self.out.extend(write_response(answer, version, header.correlation_id))

    def _answer(self, login: Login, request: Request) -> tuple[Response, bool]:
        """And whether it is to be held back."""
        now = self._broker.clock()
        if isinstance(request, SaslHandshakeRequest):
            code, mechanisms = login.shake_hands(request.mechanism, self.peer.version, now)
            if code != ErrorCode.NONE:
                self._close_later(login)
            return SaslHandshakeResponse(error_code=code, mechanisms=mechanisms), False
        if isinstance(request, SaslAuthenticateRequest):
            heard = login.hear(bytes(request.auth_bytes), now)
            self._take_note(login)
            answer = SaslAuthenticateResponse(
                error_code=heard.code,
                error_message=heard.message,
                auth_bytes=heard.auth_bytes,
                session_lifetime_ms=heard.lifetime_ms,
            )
            return answer, heard.late
        versions = APIS[ApiVersionsRequest.api_key].handler(self._broker, request, self.peer)
        assert isinstance(versions, ApiVersionsResponse)
        if versions.error_code == ErrorCode.NONE:
            login.asked_versions()
        return versions, False

    def _hear_raw(self, login: Login, message: bytes) -> None:
        """Of the oldest clients: only the mechanism's own messages, each behind its size."""
        heard: Heard = login.hear(message, self._broker.clock())
        self._take_note(login)
        if heard.late:
            self._close_later(login)
        else:
            self.out.append(SIZE.pack(len(heard.auth_bytes)) + heard.auth_bytes)

    def _take_note(self, login: Login) -> None:
        if login.step is not Step.KNOWN:
            return
        self.peer.principal, self.bytes_max = login.principal, self._broker.request_bytes_max
        if isinstance(login.mechanism, Exchange):
            self.peer.broker = login.mechanism.identity

    # -- refusing ------------------------------------------------------------------------------

    def _hold_back(self, login: Login, answer: Response, header: Header) -> None:
        api = APIS[header.key]
        self.promise(after(login.delay_seconds, answer), api, header.version, header.correlation_id)

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
        text = broker.image.config("users", entity(first.name)).get(kind.sasl_name)
        return Known(Credential.parse(text), user(first.name)) if text is not None else None

    return Scram(kind, find, partial(pretended, kind, broker.image.secret), broker.fresh_nonce())


def of_brokers(broker: Broker) -> Mechanism:
    if not broker.image.secret:
        raise Hangup("brokers have no secret yet by which to know each other")
    return Exchange(broker.image.secret, broker.fresh_nonce())
