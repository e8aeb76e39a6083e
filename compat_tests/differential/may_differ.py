"""What may differ between two brokers that answer alike.  Everything else must be equal, error codes above all.

A rule is for a kind of answer and a field of it, or for a field wherever it is; the rules for the one answer go first.
"""

from collections.abc import Callable
from typing import Any

Rule = Callable[[Any], Any]


def hidden(value: Any) -> Any:
    return "*"


def unless_none(value: Any) -> Any:
    """Whether there is one is compared, and which is not."""
    return value if value in (-1, 0, None) else "*"


FIELDS: dict[str, tuple[Rule, str]] = {
    "throttle_time_ms": (hidden, "depends on the load of the broker"),
    "host": (hidden, "where the broker was started"),
    "port": (hidden, "where the broker was started"),
    "cluster_id": (unless_none, "drawn by each cluster"),
    "error_message": (unless_none, "each broker has its own words; that there are any is compared"),
    "FetchResponse.session_id": (unless_none, "drawn by each broker"),
    "InitProducerIdResponse.producer_id": (unless_none, "handed out in blocks that depend on what was before"),
    "ApiVersionsResponse.api_keys": (hidden, "we offer more old versions, and not yet everything; see test_differential"),
    "log_append_time_ms": (unless_none, "the clock"),
    "batch_error_message": (unless_none, "as error_message"),
    "batch_index_error_message": (unless_none, "as error_message"),
}

# Lists whose order means nothing: Kafka makes them from hash tables.
UNORDERED: dict[str, str] = {}
