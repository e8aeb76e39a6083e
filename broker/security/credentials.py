"""What a broker keeps of a SCRAM user's password (RFC 5802): enough to check it, not enough to know it.

In the store it is a setting of the user's, under the mechanism's name and in Kafka's words:

    /config/users/alice     {"config": {"SCRAM-SHA-256": "salt=...,stored_key=...,server_key=...,iterations=4096"}}
"""

from base64 import b64decode, b64encode
from typing import NamedTuple, Self
from urllib.parse import quote, unquote

from trilogue.wire.scram import ScramMechanism


class Credential(NamedTuple):
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    @classmethod
    def of_password(cls, mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> Self:
        return cls.of_salted(mechanism, mechanism.salted(password, salt, iterations), salt, iterations)

    @classmethod
    def of_salted(cls, mechanism: ScramMechanism, salted_password: bytes, salt: bytes, iterations: int) -> Self:
        keys = mechanism.keys(salted_password)
        return cls(salt, keys.stored, keys.server, iterations)

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
