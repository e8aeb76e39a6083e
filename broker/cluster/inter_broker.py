"""Asking other brokers.  Coordinators have to: a transaction's partitions are led by whoever leads them."""

from collections.abc import Awaitable
from typing import Protocol, TypeVar

from trilogue.wire.schema import Request, Response

A = TypeVar("A", bound=Response)


class InterBroker(Protocol):
    """Puts a request to another broker of the cluster.  Raises BrokerError if that cannot be reached."""

    def __call__(self, node_id: int, request: Request, version: int, answer: type[A]) -> Awaitable[A]: ...
