"""What all mechanisms have in common.

The law: `principal` is there only once everything is proven, and a mechanism that has failed stays so.
"""

from typing import Protocol

from trilogue.broker.security.principals import Principal

IN_KAFKAS_WORDS = "Authentication failed during {} due to invalid credentials with SASL mechanism {}"

OTHER_NAME = "Authentication failed: Client requested an authorization id that is different from username"


class SaslFailed(Exception):
    """It is not proven.  What the mechanism itself has to say of it, in Kafka's words, or nothing."""


class Mechanism(Protocol):
    name: str
    principal: Principal | None
    """Who it is, once that is proven."""
    expires_ms: float | None
    """When what has proven it is no longer valid, if it ends at all."""

    def hear(self, message: bytes) -> bytes:
        """What to answer.  Raises SaslFailed."""
        ...


def in_words(failed: SaslFailed, mechanism: str, *, again: bool) -> str:
    """What a client is told; `again` if it was known before."""
    return str(failed) or IN_KAFKAS_WORDS.format("re-authentication" if again else "authentication", mechanism)
