"""What topics and partitions are called: which topics are ours, and which names nobody may have."""

import re

from trilogue.wire.errors import BrokerError, ErrorCode

TopicPartition = tuple[str, int]
"""A partition by the name of its topic.  A plain tuple: one is made with every request."""

TopicIdPartition = tuple[bytes, int]
"""A partition by the id of its topic, which a topic made anew under the old name does not share."""

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
INTERNAL = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC, "__share_group_state"})

METADATA_TOPIC = "__cluster_metadata"
"""Where Kafka keeps what we keep in the store.  Tools take it for that, so nobody else may have the name."""

NAME_LENGTH_MAX = 249
"""A partition's folder is the name, a dash and a number, and the folder of a deleted one 40 characters more."""

LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")


def is_internal(topic: str) -> bool:
    return topic in INTERNAL


def check_name(name: str) -> None:
    """Refuse what cannot be a topic; it would become the name of a folder."""
    if name == "":
        problem = "the empty string is not allowed"
    elif name in (".", ".."):
        problem = f"'{name}' is not allowed"
    elif len(name) > NAME_LENGTH_MAX:
        problem = f"the length of '{name}' is longer than the max allowed length {NAME_LENGTH_MAX}"
    elif not LEGAL_NAME.fullmatch(name):
        problem = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    else:
        return
    raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {problem}")
