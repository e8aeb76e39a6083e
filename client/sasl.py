"""How we log in, where a broker asks who we are: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.

A mechanism says something `first`, and then `hear`s what the broker answers and says the next, until it is `done`.
"""

import base64
import hmac
from typing import NamedTuple, Protocol

from trilogue.client.errors import ClientError
from trilogue.wire.scram import ITERATIONS_MIN, First, ScramMechanism, signed, xor

PLAIN = "PLAIN"
MECHANISMS = (PLAIN, *(each.sasl_name for each in ScramMechanism))
NONCE_BYTES = 17
ROUNDS_MAX = 10_000_000
"""What comes from elsewhere does not get to keep us busy for long."""


class NotBelieved(ClientError):
    """The broker has not proven that it knows the password."""


class Password(NamedTuple):
    """Who we are."""

    user: str
    password: str
    mechanism: str = MECHANISMS[1]
    is_token: bool = False
    """A delegation token's id, and its secret."""

    def __repr__(self) -> str:
        return f"Password(user={self.user!r}, mechanism={self.mechanism!r})"

    def begin(self, nonce: bytes) -> "Mechanism":
        if self.mechanism == PLAIN:
            return Plain(self)
        kind = next(each for each in ScramMechanism if each.sasl_name == self.mechanism)
        return Scram(kind, self, nonce)


class Mechanism(Protocol):
    done: bool

    def first(self) -> bytes: ...

    def hear(self, message: bytes) -> bytes: ...


class Plain:
    def __init__(self, who: Password) -> None:
        self._who, self.done = who, False

    def first(self) -> bytes:
        return f"\0{self._who.user}\0{self._who.password}".encode()

    def hear(self, message: bytes) -> bytes:
        self.done = True
        return b""


class Scram:
    """`done` once the broker has proven that it knows the password as well."""

    def __init__(self, kind: ScramMechanism, who: Password, nonce: bytes) -> None:
        self._kind, self._password = kind, who.password
        self._first = First(who.user, nonce.hex(), "", {"tokenauth": "true"} if who.is_token else {})
        self._signature = b""
        self.done = False

    def first(self) -> bytes:
        return f"n,,{self._first.bare}".encode()

    def hear(self, message: bytes) -> bytes:
        said = dict(part.partition("=")[::2] for part in message.decode(errors="replace").split(","))
        if self._signature:
            if not hmac.compare_digest(decoded(said.get("v", "")), self._signature):
                raise NotBelieved("the broker does not know the password")
            self.done = True
            return b""
        nonce, salt, iterations = said.get("r", ""), decoded(said.get("s", "")), rounds(said.get("i", ""))
        if not nonce.startswith(self._first.nonce) or nonce == self._first.nonce:
            raise nonsense()
        keys = self._kind.keys(self._kind.salted(self._password, salt, iterations))
        without_proof = f"c={base64.b64encode(b'n,,').decode()},r={nonce}"
        text = signed(self._first, message.decode(), without_proof)
        self._signature = self._kind.sign(keys.server, text)
        proof = xor(keys.client, self._kind.sign(keys.stored, text))
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()


def decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise nonsense() from None


def rounds(text: str) -> int:
    if not (text.isdigit() and len(text) < len(str(ROUNDS_MAX)) and int(text) >= ITERATIONS_MIN):
        raise nonsense()
    return int(text)


def nonsense() -> NotBelieved:
    return NotBelieved("the broker's answer makes no sense")
