"""SCRAM-SHA-256 and SCRAM-SHA-512, the broker's side: who logs in proves that he knows the password without saying it.

Who is not known is asked on like anybody else, with a salt that is always the same for the name: one learns as little
from what is asked as from how long it takes.
"""

import base64
import hmac
import re
from collections.abc import Callable
from typing import NamedTuple

from trilogue.broker.security.credentials import Credential
from trilogue.broker.security.principals import Principal
from trilogue.broker.security.sasl.mechanism import OTHER_NAME, SaslFailed
from trilogue.wire.scram import ITERATIONS_MIN, First, ScramMechanism, signed, xor

SASL_NAME = r"(?:[\x01-\x2B\x2D-\x3C\x3E-\x7F]|=2C|=3D)+"
NONCE = r"[\x21-\x2B\x2D-\x7E]+"
VALUE = r"[\x01-\x2B\x2D-\x7F]+"
BASE64 = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
CLIENT_FIRST = re.compile(
    rf"n,(?:a=(?P<acting_as>{SASL_NAME}))?,(?:m={VALUE},)?n=(?P<name>{SASL_NAME}),r=(?P<nonce>{NONCE})"
    rf"(?P<more>(?:,[A-Za-z]+={VALUE})*)",
    re.DOTALL,
)
CLIENT_FINAL = re.compile(
    rf"c=(?P<channel>{BASE64}),r=(?P<nonce>{NONCE})(?:,[A-Za-z]+={VALUE})*,p=(?P<proof>{BASE64})",
    re.DOTALL,
)

SALT_BYTES = 17


class Known(NamedTuple):
    """What there is of a user, or of a delegation token."""

    credential: Credential
    principal: Principal
    expires_ms: float | None = None


class Scram:
    __slots__ = ("_find", "_first", "_kind", "_known", "_nonce", "_pretend", "_told", "expires_ms", "name", "principal")

    def __init__(
        self,
        kind: ScramMechanism,
        find: Callable[[First], Known | None],
        pretend: Callable[[str], Credential],
        nonce: bytes,
    ) -> None:
        """`find` looks for a user or a token, `pretend` makes something for one that is not there; see `pretended`."""
        self.name = kind.sasl_name
        self._kind, self._find, self._pretend = kind, find, pretend
        self._nonce = nonce.hex()
        self._first: First | None = None
        self._known: Known | None = None
        self._told = ""
        self.principal: Principal | None = None
        self.expires_ms: float | None = None

    def hear(self, message: bytes) -> bytes:
        try:
            text = message.decode()
        except UnicodeDecodeError:
            raise SaslFailed from None
        return self._begin(text) if self._first is None else self._end(self._first, text)

    def _begin(self, text: str) -> bytes:
        first = client_first(text)
        self._first, self._known = first, self._find(first)
        if first.acting_as not in ("", first.name):
            raise SaslFailed(OTHER_NAME)
        credential = self._credential(first)
        if credential.iterations < ITERATIONS_MIN:
            raise SaslFailed
        salt = base64.b64encode(credential.salt).decode()
        self._told = f"r={first.nonce}{self._nonce},s={salt},i={credential.iterations}"
        return self._told.encode()

    def _end(self, first: First, text: str) -> bytes:
        match = CLIENT_FINAL.fullmatch(text)
        if match is None or match["nonce"] != first.nonce + self._nonce or self.principal is not None:
            raise SaslFailed
        kind, credential = self._kind, self._credential(first)
        message = signed(first, self._told, f"c={match['channel']},r={match['nonce']}")
        signature, proof = kind.sign(credential.stored_key, message), base64.b64decode(match["proof"])
        if len(proof) != len(signature):
            raise SaslFailed
        is_right = hmac.compare_digest(kind.stored(xor(proof, signature)), credential.stored_key)
        if not is_right or self._known is None:
            raise SaslFailed
        self.principal, self.expires_ms = self._known.principal, self._known.expires_ms
        return b"v=" + base64.b64encode(kind.sign(credential.server_key, message))

    def _credential(self, first: First) -> Credential:
        return self._known.credential if self._known is not None else self._pretend(first.name)


def client_first(text: str) -> First:
    match = CLIENT_FIRST.fullmatch(text)
    if match is None:
        raise SaslFailed
    more = dict(part.partition("=")[::2] for part in match["more"].split(",") if part)
    return First(unescaped(match["name"]), match["nonce"], unescaped(match["acting_as"] or ""), more)


def unescaped(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")


def pretended(kind: ScramMechanism, secret: bytes, name: str) -> Credential:
    """For a user that is not there: always the same, and nobody knows its password."""
    drawn = hmac.digest(secret, f"{kind.sasl_name} {name}".encode(), "sha512")
    size = len(kind.stored(b""))
    return Credential(drawn[:SALT_BYTES], drawn[-size:], drawn[:size], ITERATIONS_MIN)
