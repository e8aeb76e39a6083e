"""What a broker keeps of a SCRAM user's password (RFC 5802): enough to check it, not enough to know it.

In the store it is a setting of the user's, under the mechanism's name and in Kafka's words:

    /config/users/alice     {"config": {"SCRAM-SHA-256": "salt=...,stored_key=...,server_key=...,iterations=4096"}}
"""

import hashlib
import hmac
from base64 import b64decode, b64encode
from enum import IntEnum
from typing import NamedTuple, Self
from urllib.parse import quote, unquote

ITERATIONS_MIN, ITERATIONS_MAX = 4096, 16384
"""Kafka's bounds for credentials that are made."""


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


class Credential(NamedTuple):
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    @classmethod
    def of_password(cls, mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> Self:
        """Takes milliseconds, on purpose."""
        salted = hashlib.pbkdf2_hmac(mechanism.digest, password.encode(), salt, iterations)
        return cls.of_salted(mechanism, salted, salt, iterations)

    @classmethod
    def of_salted(cls, mechanism: ScramMechanism, salted_password: bytes, salt: bytes, iterations: int) -> Self:
        client_key = hmac.digest(salted_password, b"Client Key", mechanism.digest)
        stored_key = hashlib.new(mechanism.digest, client_key).digest()
        return cls(salt, stored_key, hmac.digest(salted_password, b"Server Key", mechanism.digest), iterations)

    @classmethod
    def parse(cls, text: str) -> Self:
        """ValueError if it is not one."""
        said = dict(part.partition("=")[::2] for part in text.split(","))
        try:
            salt, stored_key, server_key = (b64decode(said[name]) for name in ("salt", "stored_key", "server_key"))
            return cls(salt, stored_key, server_key, int(said["iterations"]))
        except (KeyError, ValueError) as problem:
            raise ValueError(f"not a credential: {problem}") from None

    @property
    def text(self) -> str:
        salt, stored_key, server_key = (b64encode(part).decode() for part in self[:3])
        return f"salt={salt},stored_key={stored_key},server_key={server_key},iterations={self.iterations}"

    def __repr__(self) -> str:
        return f"Credential(iterations={self.iterations})"  # who has the rest can pretend to be the broker


def entity(name: str) -> str:
    """The name of a user, client or address as part of a node's path: whatever is in it, it is one part."""
    return quote(name, safe="").replace(".", "%2E") if set(name) <= {"."} else quote(name, safe="")


def entity_name(part: str) -> str:
    return unquote(part)
