"""What the cluster as a whole can do, and has agreed to do: a line each."""

from typing import NamedTuple


class Feature(NamedTuple):
    name: str
    supported: int
    """The highest level that we know; 0 is to do without."""
    finalized: int
    """The level in use.  Kafka 4.3.1's, where we have built it: clients go by it."""


FEATURES = [
    Feature("group.version", 1, 1),
    Feature("transaction.version", 2, 2),
]
