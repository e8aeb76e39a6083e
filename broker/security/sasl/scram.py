"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, 7677): both prove that they know the password, and nobody says it.

Kafka's reading of it: no channel binding, no SASLprep, user names of ASCII only.  `tokenauth=true` says that the user
is a delegation token.

Who is not known is asked on like anybody else, with a salt that is always the same for the name: one learns as little
from what is asked as from how long it takes.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Callable
from typing import NamedTuple

from trilogue.broker.security.credentials import ITERATIONS_MIN, Credential, ScramMechanism
from trilogue.broker.security.principals import Principal
from trilogue.broker.security.sasl.mechanism import OTHER_NAME, SaslFailed

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
NONCE_BYTES = 17
TOKEN = "tokenauth"
ROUNDS_MAX = 10_000_000
NONSENSE = "the broker's answer makes no sense"


class Known(NamedTuple):
    """What there is of a user, or of a delegation token."""

    credential: Credential
    principal: Principal
    expires_ms: float | None = None


class Asked(NamedTuple):
    """What a client says first."""

    name: str
    nonce: str
    acting_as: str
    extensions: dict[str, str]

    @property
    def is_token(self) -> bool:
        return self.extensions.get(TOKEN, "").casefold() == "true"


class Scram:
    __slots__ = ("_asked", "_find", "_kind", "_known", "_nonce", "_pretend", "_told", "expires_ms", "name", "principal")

    def __init__(
        self,
        kind: ScramMechanism,
        find: Callable[[Asked], Known | None],
        pretend: Callable[[str], Credential],
        nonce: bytes,
    ) -> None:
        """`find` looks for a user or a token, `pretend` makes something for one that is not there; see `pretended`."""
        self.name = kind.sasl_name
        self._kind, self._find, self._pretend = kind, find, pretend
        self._nonce = nonce.hex()
        self._asked: Asked | None = None
        self._known: Known | None = None
        self._told = ""
        self.principal: Principal | None = None
        self.expires_ms: float | None = None

    def hear(self, message: bytes) -> bytes:
        try:
            text = message.decode()
        except UnicodeDecodeError:
            raise SaslFailed from None
        return self._first(text) if self._asked is None else self._final(self._asked, text)

    def _first(self, text: str) -> bytes:
        self._asked = asked = client_first(text)
        self._known = self._find(asked)
        if asked.acting_as not in ("", asked.name):
            raise SaslFailed(OTHER_NAME)
        credential = self._credential(asked)
        if credential.iterations < ITERATIONS_MIN:
            raise SaslFailed
        salt = base64.b64encode(credential.salt).decode()
        self._told = f"r={asked.nonce}{self._nonce},s={salt},i={credential.iterations}"
        return self._told.encode()

    def _final(self, asked: Asked, text: str) -> bytes:
        match = CLIENT_FINAL.fullmatch(text)
        if match is None or match["nonce"] != asked.nonce + self._nonce or self.principal is not None:
            raise SaslFailed
        credential = self._credential(asked)
        signed = auth_message(asked, self._told, f"c={match['channel']},r={match['nonce']}")
        signature = hmac.digest(credential.stored_key, signed, self._kind.digest)
        proof = base64.b64decode(match["proof"])
        if len(proof) != len(signature):
            raise SaslFailed
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        stored_key = hashlib.new(self._kind.digest, client_key).digest()
        if not hmac.compare_digest(stored_key, credential.stored_key) or self._known is None:
            raise SaslFailed
        self.principal, self.expires_ms = self._known.principal, self._known.expires_ms
        server_signature = hmac.digest(credential.server_key, signed, self._kind.digest)
        return b"v=" + base64.b64encode(server_signature)

    def _credential(self, asked: Asked) -> Credential:
        return self._known.credential if self._known is not None else self._pretend(asked.name)


def client_first(text: str) -> Asked:
    match = CLIENT_FIRST.fullmatch(text)
    if match is None:
        raise SaslFailed
    more = dict(part.partition("=")[::2] for part in match["more"].split(",") if part)
    return Asked(unescaped(match["name"]), match["nonce"], unescaped(match["acting_as"] or ""), more)


def auth_message(asked: Asked, told: str, without_proof: str) -> bytes:
    """What both sign.  Kafka puts it together from what it has understood: without `m=`, and without what a client adds
    to its last message."""
    return f"{bare(asked)},{told},{without_proof}".encode()


def bare(asked: Asked) -> str:
    name = asked.name.replace("=", "=3D").replace(",", "=2C")
    more = "".join(f",{key}={value}" for key, value in asked.extensions.items())
    return f"n={name},r={asked.nonce}{more}"


def unescaped(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")


def pretended(kind: ScramMechanism, secret: bytes, name: str) -> Credential:
    """For a user that is not there: always the same, and nobody knows its password."""
    drawn = hmac.digest(secret, f"{kind.sasl_name} {name}".encode(), "sha512")
    size = hashlib.new(kind.digest).digest_size
    return Credential(drawn[:NONCE_BYTES], drawn[-size:], drawn[:size], ITERATIONS_MIN)


# -- the other side --------------------------------------------------------------------------------


class ScramClient:
    """Who logs in.  `done` once the other side has proven that it knows the password as well."""

    __slots__ = ("_asked", "_kind", "_password", "_signature", "done")

    def __init__(self, kind: ScramMechanism, name: str, password: str, nonce: bytes, **extensions: str) -> None:
        self._kind, self._password = kind, password
        self._asked = Asked(name, nonce.hex(), "", extensions)
        self._signature = b""
        self.done = False

    def first(self) -> bytes:
        return f"n,,{bare(self._asked)}".encode()

    def hear(self, message: bytes) -> bytes:
        """What to say next.  Raises SaslFailed."""
        said = dict(part.partition("=")[::2] for part in message.decode(errors="replace").split(","))
        if self._signature:
            if not hmac.compare_digest(decoded(said.get("v", "")), self._signature):
                raise SaslFailed("the broker does not know the password")
            self.done = True
            return b""
        nonce, salt, iterations = said.get("r", ""), decoded(said.get("s", "")), number(said.get("i", ""))
        if not nonce.startswith(self._asked.nonce) or nonce == self._asked.nonce:
            raise SaslFailed(NONSENSE)
        salted = hashlib.pbkdf2_hmac(self._kind.digest, self._password.encode(), salt, iterations)
        credential = Credential.of_salted(self._kind, salted, salt, iterations)
        without_proof = f"c={base64.b64encode(b'n,,').decode()},r={nonce}"
        signed = auth_message(self._asked, message.decode(), without_proof)
        client_key = hmac.digest(salted, b"Client Key", self._kind.digest)
        signature = hmac.digest(credential.stored_key, signed, self._kind.digest)
        self._signature = hmac.digest(credential.server_key, signed, self._kind.digest)
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True))).decode()
        return f"{without_proof},p={proof}".encode()


def decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise SaslFailed(NONSENSE) from None


def number(text: str) -> int:
    """Of rounds: what comes from elsewhere does not get to keep us busy for long."""
    if not (text.isdigit() and len(text) < len(str(ROUNDS_MAX)) and int(text) >= ITERATIONS_MIN):
        raise SaslFailed(NONSENSE)
    return int(text)
