"""What may differ between two brokers that answer alike.  Everything else must be equal, error codes above all.

FIELDS are left out of every answer, wholly or but for whether there is something.  A rule is for a kind of answer and a
field of it, or for a field wherever it is.  KNOWN are single differences that we have found and decided to live with:
each must be there, or the test says that it is gone.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

Rule = Callable[[Any], Any]


def hidden(value: Any) -> Any:
    return "*"


def whether(value: Any) -> Any:
    """Whether there is one is compared, and which is not.  None, nothing and -1 are none."""
    return None if value in (None, "", -1) else "*"


def unless_zero(value: Any) -> Any:
    return "*" if value else value


FIELDS: dict[str, tuple[Rule, str]] = {
    "throttle_time_ms": (hidden, "depends on the load of the broker"),
    "host": (hidden, "where the broker was started"),
    "port": (hidden, "where the broker was started"),
    "cluster_id": (whether, "drawn by each cluster"),
    "ProduceResponse.error_message": (hidden, "Kafka is silent about most refusals; we say what is wrong"),
    "FindCoordinatorResponse.error_message": (hidden, "Kafka says NONE where there is nothing to say"),
    "error_message": (whether, "each broker has its own words; that there are any is compared"),
    "batch_index_error_message": (whether, "as error_message"),
    "log_append_time_ms": (whether, "the clock"),
    "FetchResponse.session_id": (unless_zero, "drawn by each broker"),
    "InitProducerIdResponse.producer_id": (whether, "handed out in blocks that depend on what was before"),
    "EndTxnResponse.producer_id": (whether, "as InitProducerId's"),
    "DescribeTransactionsResponse.producer_id": (whether, "as InitProducerId's"),
    "DescribeTransactionsResponse.transaction_start_time_ms": (whether, "the clock"),
    "ListTransactionsResponse.producer_id": (whether, "as InitProducerId's"),
    "WriteTxnMarkersResponse.producer_id": (whether, "as InitProducerId's"),
    "JoinGroupResponse.member_id": (whether, "drawn by each broker"),
    "JoinGroupResponse.leader": (whether, "a member's id"),
    "DescribeGroupsResponse.member_id": (whether, "drawn by each broker"),
    "ApiVersionsResponse.supported_features": (hidden, "ours are those that we have built"),
    "ApiVersionsResponse.finalized_features": (hidden, "as supported_features"),
    "ApiVersionsResponse.finalized_features_epoch": (hidden, "the offset of Kafka's metadata log"),
    "DescribeQuorumResponse.name": (hidden, "controllers of Kafka have a listener of their own, ours are brokers"),
    "DescribeQuorumResponse.replica_directory_id": (hidden, "drawn by each broker"),
}

# Lists whose order means nothing.
UNORDERED: dict[str, str] = {
    "MetadataResponse.topics": "Kafka tells the known before the unknown",
    "FetchResponse.responses": "Kafka tells the known before the unknown",
    "ProduceResponse.responses": "Kafka tells the known before the unknown, both in the order of a hash table",
    "ProduceResponse.partition_responses": "a hash table",
    "ListOffsetsResponse.partitions": "a hash table",
    "DescribeGroupsResponse.groups": "the order in which their coordinators answer",
    "DescribeTransactionsResponse.partitions": "a hash table",
}


class Known(NamedTuple):
    where: str
    """A pattern of API, case and field, as differences are told."""
    why: str


KNOWN = [
    Known(
        r"Produce \| in_transactions: .* \| .*\.log_start_offset",
        "a fenced producer: Kafka finds out before it looks for the log, we while we write",
    ),
    Known(
        r"CreateTopics \| .* \| \.topics\[\d\]\.configs\[21\]\.config_source",
        "min.insync.replicas: Kafka sets it for all brokers by itself, with eligible leader replicas, which we lack",
    ),
    Known(
        r"DescribeConfigs \| (topics: .*|others: all brokers) \| \.results\[0\]\.configs.*",
        "min.insync.replicas, as above",
    ),
    Known(
        r"CreateTopics \| configured: a value with spaces \| .*",
        "Kafka tells the value with its spaces, we without; both take it for the same number",
    ),
    Known(
        r"OffsetFetch \| fetching_from_consumers: an epoch and nobody \| .*",
        "Kafka stumbles over the member that is not there; we say that it is unknown",
    ),
    Known(
        r"IncrementalAlterConfigs \| step_by_step: an unknown operation \| .*",
        "Kafka fails with an unknown error where we say that the request is invalid",
    ),
]


def known(difference: str) -> Known | None:
    """The entry that speaks of this difference, told as "API | case | path: Kafka ..., we ..."."""
    return next((each for each in KNOWN if re.match(each.where + ": ", difference)), None)
