"""The clients of the table: which there are, how they are set up, and what they cannot do by themselves.

What a client lacks is declared here with a reason; nothing else makes "n/a" in the table.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

# The columns of the table, in the order in which they are shown.
METADATA = "topics and metadata"
HEADERS = "keys, headers, tombstones"
LARGE = "values of 10 MiB"
IDEMPOTENT = "idempotent writes"
ACKS = "acks 0, 1, all"
SEEK = "seek to both ends"
TIMES = "offsets by time"
OTHERS = "reads all others"
GROUP = "group: commit, resume"
REBALANCE = "group: come and go"
NEW_GROUP = "consumer protocol: commit, resume"
NEW_REBALANCE = "consumer protocol: come and go"
TRANSACTIONS = "transactions"
ADMIN_TOPICS = "admin: topics"
ADMIN_CONFIGS = "admin: settings"
ADMIN_GROUPS = "admin: groups"
DELETE_GROUP = "admin: delete groups"
DELETE_RECORDS = "admin: delete records"

FEATURES = [
    METADATA, *CODECS, HEADERS, LARGE, IDEMPOTENT, ACKS, SEEK, TIMES, OTHERS, GROUP, REBALANCE, NEW_GROUP,
    NEW_REBALANCE, TRANSACTIONS, ADMIN_TOPICS, ADMIN_CONFIGS, ADMIN_GROUPS, DELETE_GROUP, DELETE_RECORDS,
]  # fmt: skip


class Client(NamedTuple):
    name: str
    program: str
    """What `tools/clients.py` knows it by."""
    lacks: Mapping[str, str] = {}
    """Feature -> why not."""
    settings: Mapping[str, str] = {}
    """By its own names, for everything that it does."""
    ours_only: str = ""
    """Why it cannot be tried on Apache Kafka 4."""


CLASSIC_ONLY = {NEW_GROUP: "knows the classic protocol only", NEW_REBALANCE: "knows the classic protocol only"}
BEFORE_TRANSACTIONS = {
    IDEMPOTENT: "has no idempotent producer",
    TRANSACTIONS: "has no transactions",
}

CLIENTS = [
    Client("kafka-python 3", "kafka-python", CLASSIC_ONLY),
    Client(
        "kafka-python 2.0.2",
        "kafka-python-2.0.2",
        {
            **CLASSIC_ONLY,
            **BEFORE_TRANSACTIONS,
            DELETE_RECORDS: "cannot delete records",
        },
    ),
    Client(
        "kafka-python 1.4.7",
        "kafka-python-1.4.7",
        {
            **CLASSIC_ONLY,
            **BEFORE_TRANSACTIONS,
            "zstd": "does not know zstd",
            DELETE_GROUP: "cannot delete groups",
            DELETE_RECORDS: "cannot delete records",
        },
    ),
    Client("confluent-kafka", "confluent-kafka"),
    Client("aiokafka", "aiokafka", {**CLASSIC_ONLY, DELETE_GROUP: "cannot delete groups"}),
    Client("Java 4.4.0", "java-4.4.0"),
    Client("Java 3.9.1", "java-3.9.1"),
    Client("Java 2.8.2", "java-2.8.2", CLASSIC_ONLY),
    Client("kafkajs", "kafkajs", CLASSIC_ONLY),
    Client("sarama", "sarama", CLASSIC_ONLY),
    Client("rdkafka (Rust)", "rdkafka"),
]


def every_client(feature: str, *more: Any) -> list[Any]:
    """Parameters of a test: all clients that have the feature, each with its mark for the table."""
    return [
        pytest.param(
            each, *more, id="-".join([each.name, *map(str, more)]), marks=pytest.mark.feature(each.name, feature)
        )
        for each in CLIENTS
        if feature not in each.lacks
    ]
