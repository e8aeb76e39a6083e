"""How one connection of a listener with SASL becomes somebody: which message may come when, and what it brings about.

The law: nothing but what is said here is done for a connection before it is `known`, and what has failed stays failed.

    START      ApiVersions -> VERSIONS, SaslHandshake v0 -> RAW, v1 -> TOKENS; all else ends it
    VERSIONS   SaslHandshake, as above
    TOKENS     SaslAuthenticate, until the mechanism is done -> KNOWN
    RAW        the mechanism's messages without Kafka's headers
    KNOWN      everything; SaslHandshake -> TOKENS again, if the login ends some time (KIP-368)
    OVER       nothing any more: what is to be said is said, and then the connection is closed

Time is an argument, in milliseconds.
"""

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import NamedTuple

from trilogue.broker.security.principals import ANONYMOUS, Principal
from trilogue.broker.security.sasl.mechanism import Mechanism, SaslFailed, in_words
from trilogue.wire.apis.api_versions import ApiVersionsRequest
from trilogue.wire.apis.sasl_authenticate import SaslAuthenticateRequest
from trilogue.wire.apis.sasl_handshake import SaslHandshakeRequest
from trilogue.wire.errors import ErrorCode

AGAIN_MS = 1000.0
"""So long has to pass from the beginning of one re-authentication to the next."""
NOT_NOW = "SaslAuthenticate request received after successful authentication"


class Step(Enum):
    START = auto()
    VERSIONS = auto()
    TOKENS = auto()
    RAW = auto()
    KNOWN = auto()
    OVER = auto()


AWAITED = {
    Step.START: (ApiVersionsRequest.api_key, SaslHandshakeRequest.api_key),
    Step.VERSIONS: (SaslHandshakeRequest.api_key,),
    Step.KNOWN: (SaslHandshakeRequest.api_key,),
    Step.TOKENS: (SaslAuthenticateRequest.api_key,),
}


class Offered(NamedTuple):
    """What a listener has."""

    mechanisms: Mapping[str, Callable[[], Mechanism]]
    hidden: Mapping[str, Callable[[], Mechanism]]
    """Those that nobody is told of: the brokers' own."""
    lifetimes_ms: Mapping[str, float]
    """How long a login by a mechanism is good for at most, where that ends."""
    failed_delay_seconds: float
    """So long a refusal is held back."""


class Heard(NamedTuple):
    """What to answer."""

    code: ErrorCode = ErrorCode.NONE
    message: str | None = None
    auth_bytes: bytes = b""
    lifetime_ms: int = 0


class Login:
    __slots__ = ("_again", "_begun_ms", "_offered", "ends_ms", "mechanism", "principal", "step", "why")

    def __init__(self, offered: Offered) -> None:
        self._offered = offered
        self.mechanism: Mechanism | None = None
        self._again: str | None = None
        """By which mechanism it was known before."""
        self._begun_ms = -AGAIN_MS
        self.step = Step.START
        self.principal: Principal = ANONYMOUS
        self.ends_ms: float | None = None
        self.why = ""
        """It is over."""

    @property
    def delay_seconds(self) -> float:
        return self._offered.failed_delay_seconds

    def known(self, now_ms: float) -> bool:
        """Whether requests are handled.  What has ended is noticed when something is asked for, not before."""
        if self.step is Step.KNOWN and self.ends_ms is not None and self.ends_ms <= now_ms:
            self._end("its login has ended")
        return self.step is Step.KNOWN

    def asked_versions(self) -> None:
        self.step = Step.VERSIONS

    def may_begin_again(self, now_ms: float) -> bool:
        return self.step is Step.KNOWN and self.ends_ms is not None and now_ms - self._begun_ms >= AGAIN_MS

    def shake_hands(self, name: str, version: int, now_ms: float) -> tuple[ErrorCode, list[str]]:
        offered = self._offered
        ours = list(offered.mechanisms)
        made = offered.mechanisms.get(name) or offered.hidden.get(name)
        if made is None:
            self._end(f"not authenticated: there is no mechanism {name}")
            return ErrorCode.UNSUPPORTED_SASL_MECHANISM, ours
        if self.step is Step.KNOWN:
            assert self.mechanism is not None
            self._again, self._begun_ms = self.mechanism.name, now_ms
        self.mechanism = made()
        self.step = Step.TOKENS if version > 0 else Step.RAW
        return ErrorCode.NONE, ours

    @property
    def awaited(self) -> tuple[int, ...]:
        """The APIs that may be asked for now."""
        if self.step is Step.TOKENS and self._begins_with_another:
            return ()
        return AWAITED.get(self.step, ())

    @property
    def _begins_with_another(self) -> bool:
        """Whoever was known by one mechanism is not known again by another."""
        return self._again is not None and self.mechanism is not None and self.mechanism.name != self._again

    def hear(self, message: bytes, now_ms: float) -> Heard:
        """One message of the mechanism."""
        mechanism, again = self.mechanism, self._again is not None
        assert mechanism is not None
        assert self.step in (Step.TOKENS, Step.RAW)
        try:
            answer = mechanism.hear(message)
            if again and mechanism.principal not in (None, self.principal):
                raise SaslFailed(
                    f"Cannot change principals during re-authentication from {dotted(self.principal)}: "
                    f"{dotted(mechanism.principal or ANONYMOUS)}"
                )
        except SaslFailed as failed:
            self._end(f"not authenticated: {in_words(failed, mechanism.name, again=again)}")
            return Heard(ErrorCode.SASL_AUTHENTICATION_FAILED, in_words(failed, mechanism.name, again=again))
        if mechanism.principal is None:
            return Heard(auth_bytes=answer)
        self.step, self.principal = Step.KNOWN, mechanism.principal
        left = self._left_ms(mechanism, now_ms)
        self.ends_ms = None if left is None else now_ms + left
        return Heard(auth_bytes=answer, lifetime_ms=0 if left is None else int(left))

    def _left_ms(self, mechanism: Mechanism, now_ms: float) -> float | None:
        ends = [mechanism.expires_ms - now_ms] if mechanism.expires_ms is not None else []
        if mechanism.name in self._offered.lifetimes_ms:
            ends.append(self._offered.lifetimes_ms[mechanism.name])
        return max(0.0, min(ends)) if ends else None

    def _end(self, why: str) -> None:
        self.step, self.why = Step.OVER, why


def dotted(principal: Principal) -> str:
    return f"{principal.kind}.{principal.name}"
