"""Names that nobody else uses, for tests that share a broker."""

import secrets
from itertools import count

_numbers = count(1)
_drawn = secrets.token_hex(3)
"""Of this process: xdist's workers, and runs one after the other on a broker that stays, draw different ones."""


def unique_name(prefix: str = "test") -> str:
    """`orders-3f9c1a-1`: of a topic, a group, a transactional id or a client."""
    return f"{prefix}-{_drawn}-{next(_numbers)}"
