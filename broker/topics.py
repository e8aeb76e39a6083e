"""Facts about topics that several APIs need."""

INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})

NOT_ASKED = -(2**31)
"""In place of authorized operations, for clients that did not ask."""

# Bits by operation code, of what may be done where nobody is refused anything: Kafka without an authorizer.
ALL_TOPIC_OPERATIONS = sum(1 << code for code in (3, 4, 5, 6, 7, 8, 10, 11))
ALL_CLUSTER_OPERATIONS = sum(1 << code for code in (5, 7, 8, 9, 10, 11, 12))
ALL_GROUP_OPERATIONS = sum(1 << code for code in (3, 6, 8, 10, 11))


def is_internal(name: str) -> bool:
    return name in INTERNAL
