"""How brokers prove to each other who they are: that they know the cluster's secret, without saying it.

The one who dials claims to be a broker, with a number that it has drawn; the other answers with one of its own, and
both are signed by the secret.  It travels as a SASL mechanism that clients have no use for.
"""

import hmac
from struct import Struct
from typing import NamedTuple

from trilogue.broker.security.principals import BROKER, Principal
from trilogue.broker.security.sasl.mechanism import SaslFailed

MECHANISM = "TRILOGUE-BROKER"
NONCE_BYTES = 16
CLAIM = Struct(f">iq{NONCE_BYTES}s")


class Identity(NamedTuple):
    """A broker, since it registered last."""

    node_id: int
    epoch: int


class Exchange:
    """The side that is dialled.  `identity` is there once it is proven."""

    __slots__ = ("_claim", "_nonce", "_secret", "expires_ms", "identity", "name", "principal")

    def __init__(self, secret: bytes, nonce: bytes) -> None:
        self._secret, self._nonce = secret, nonce
        self._claim = b""
        self.name = MECHANISM
        self.identity: Identity | None = None
        self.principal: Principal | None = None
        self.expires_ms: float | None = None

    def hear(self, message: bytes) -> bytes:
        """What to answer.  Raises SaslFailed, and says no more than that."""
        if not self._claim:
            if len(message) != CLAIM.size:
                raise SaslFailed
            self._claim = message
            return self._nonce
        if not hmac.compare_digest(proof(self._secret, self._claim, self._nonce), message):
            raise SaslFailed
        node_id, epoch, _ = CLAIM.unpack(self._claim)
        self.identity = Identity(node_id, epoch)
        self.principal = Principal(BROKER, str(node_id))
        return b""


def claim(who: Identity, nonce: bytes) -> bytes:
    return CLAIM.pack(*who, nonce)


def proof(secret: bytes, claimed: bytes, nonce: bytes) -> bytes:
    return hmac.digest(secret, claimed + nonce, "sha256")
