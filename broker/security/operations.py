"""What can be done with topics, groups and the cluster: Kafka's AclOperation, and what clients are told of it."""

from collections.abc import Iterable
from enum import IntEnum


class Operation(IntEnum):
    """The numbers are Kafka's: they stand on the wire, and as bits in sets."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class ResourceType(IntEnum):
    """What it can be done with; the numbers are Kafka's."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


CLUSTER_NAME = "kafka-cluster"
"""The only resource of type CLUSTER."""


def bits(operations: Iterable[Operation]) -> int:
    return sum(1 << each for each in operations)


OF_TOPICS = bits(
    (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    )
)
"""Everything that may be done where nobody is refused anything, as with Kafka without an authorizer."""

OF_CLUSTER = bits(
    (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    )
)
OF_GROUPS = bits(
    (Operation.READ, Operation.DELETE, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS)
)

NOT_ASKED = -(2**31)
"""In place of such a set, for clients that did not ask."""
