"""A broker for other people's tests: in the process, on a free port, gone afterwards.

    from trilogue.testing import Broker

    with Broker() as broker:                        # in a thread of its own
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap)

    async with Broker(num_partitions=3) as broker:  # in your own trio run; on asyncio in a thread, too
        ...

With pytest, ask for the fixture `trilogue` (see `plugin.py`).  Importing this costs nothing until something is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trilogue.testing.broker import AsyncBroker, Broker
    from trilogue.testing.cluster.facade import Cluster
    from trilogue.testing.cluster.nodes import ClusterError
    from trilogue.testing.keeping import NotRunning
    from trilogue.testing.names import unique_name
    from trilogue.wire.errors import ErrorCode

__all__ = ["AsyncBroker", "Broker", "Cluster", "ClusterError", "ErrorCode", "NotRunning", "unique_name"]

HOMES = {
    "AsyncBroker": "trilogue.testing.broker",
    "Broker": "trilogue.testing.broker",
    "Cluster": "trilogue.testing.cluster.facade",
    "ClusterError": "trilogue.testing.cluster.nodes",
    "ErrorCode": "trilogue.wire.errors",
    "NotRunning": "trilogue.testing.keeping",
    "unique_name": "trilogue.testing.names",
}


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(HOMES[name]), name)
