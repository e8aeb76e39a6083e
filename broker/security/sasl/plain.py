"""PLAIN (RFC 4616): name and password, as they are."""

import hmac
from collections.abc import Mapping

from trilogue.broker.security.principals import Principal, user
from trilogue.broker.security.sasl.mechanism import OTHER_NAME, SaslFailed

NAME = "PLAIN"
PARTS = 3


class Plain:
    __slots__ = ("_passwords", "expires_ms", "name", "principal")

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self.name = NAME
        self._passwords = passwords
        self.principal: Principal | None = None
        self.expires_ms: float | None = None

    def hear(self, message: bytes) -> bytes:
        said = message.decode(errors="replace").split("\0")
        if len(said) != PARTS:
            raise SaslFailed(f"Invalid SASL/PLAIN response: expected 3 tokens, got {min(len(said), PARTS + 1)}")
        acting_as, name, password = said
        if not name:
            raise SaslFailed("Authentication failed: username not specified")
        if not password:
            raise SaslFailed("Authentication failed: password not specified")
        if not self._is_right(name, password):
            raise SaslFailed("Authentication failed: Invalid username or password")
        if acting_as not in ("", name):
            raise SaslFailed(OTHER_NAME)
        self.principal = user(name)
        return b""

    def _is_right(self, name: str, password: str) -> bool:
        """Takes as long whether there is such a user or not, and however long the password is."""
        known = self._passwords.get(name)
        expected = digest("" if known is None else known)
        return hmac.compare_digest(expected, digest(password)) and known is not None


def digest(password: str) -> bytes:
    return hmac.digest(b"", password.encode(errors="surrogatepass"), "sha256")
