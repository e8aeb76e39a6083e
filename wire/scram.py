"""SCRAM (RFC 5802, 7677) as Kafka speaks it: what both sides say, and what they make of a password.

No channel binding, no SASLprep, user names of ASCII only.  `tokenauth=true` says that the user is a delegation token.
"""

import hashlib
import hmac
from enum import IntEnum
from typing import NamedTuple

ITERATIONS_MIN, ITERATIONS_MAX = 4096, 16384
"""Kafka's bounds for credentials that are made."""

TOKEN = "tokenauth"


class ScramMechanism(IntEnum):
    """The numbers are those of DescribeUserScramCredentials."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def sasl_name(self) -> str:
        return self.name.replace("_", "-")

    @property
    def digest(self) -> str:
        """As hashlib calls it."""
        return "sha256" if self is ScramMechanism.SCRAM_SHA_256 else "sha512"

    def salted(self, password: str, salt: bytes, iterations: int) -> bytes:
        """Takes milliseconds, on purpose."""
        return hashlib.pbkdf2_hmac(self.digest, password.encode(), salt, iterations)

    def keys(self, salted_password: bytes) -> "Keys":
        client_key = self.sign(salted_password, b"Client Key")
        return Keys(client_key, self.stored(client_key), self.sign(salted_password, b"Server Key"))

    def sign(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self.digest)

    def stored(self, client_key: bytes) -> bytes:
        return hashlib.new(self.digest, client_key).digest()


class Keys(NamedTuple):
    client: bytes
    """Who has it can log in."""
    stored: bytes
    """Its digest, by which that is checked."""
    server: bytes
    """Who has it can pretend to be the broker."""


class First(NamedTuple):
    """What a client says first."""

    name: str
    nonce: str
    acting_as: str
    extensions: dict[str, str]

    @property
    def is_token(self) -> bool:
        return self.extensions.get(TOKEN, "").casefold() == "true"

    @property
    def bare(self) -> str:
        """The part that is signed.  Kafka puts it together from what it has understood: without `m=`."""
        name = self.name.replace("=", "=3D").replace(",", "=2C")
        more = "".join(f",{key}={value}" for key, value in self.extensions.items())
        return f"n={name},r={self.nonce}{more}"


def signed(first: First, told: str, without_proof: str) -> bytes:
    """What both sign."""
    return f"{first.bare},{told},{without_proof}".encode()


def xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
