"""What classic consumers put into JoinGroup and SyncGroup for each other, as far as a coordinator looks into it."""

import struct
from typing import TypeVar

from trilogue.wire.codec import build
from trilogue.wire.errors import MalformedMessage
from trilogue.wire.internal.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription

VERSION = struct.Struct(">h")
NEWEST = 3

D = TypeVar("D", ConsumerProtocolSubscription, ConsumerProtocolAssignment)


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """Raises MalformedMessage."""
    return _read(ConsumerProtocolSubscription, data)


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """Nothing is the assignment of whoever has none.  Raises MalformedMessage."""
    return _read(ConsumerProtocolAssignment, data) if data else ConsumerProtocolAssignment(assigned_partitions=[])


def _read(message: type[D], data: bytes) -> D:
    """Every version begins like those before it: of newer ones we read what we know."""
    from trilogue.wire.compile import codec

    if len(data) < VERSION.size:
        raise MalformedMessage("no version", message.__name__)
    version = version_of(data)
    if version < 0:
        raise MalformedMessage(f"version {version}", message.__name__)
    it, _ = codec(message, min(version, NEWEST)).decode(memoryview(data)[VERSION.size :], 0)
    return it  # type: ignore[no-any-return]


def version_of(data: bytes) -> int:
    """Of a subscription.  Who tells none will have to live with the oldest."""
    version: int = VERSION.unpack_from(data)[0] if len(data) >= VERSION.size else 0
    return version


def write_assignment(partitions: dict[str, list[int]], version: int) -> bytes:
    version = max(0, min(version, NEWEST))
    Assigned = ConsumerProtocolAssignment.AssignedPartition
    assigned = [Assigned(topic=topic, partitions=partitions[topic]) for topic in sorted(partitions)]
    return VERSION.pack(version) + build(ConsumerProtocolAssignment(assigned_partitions=assigned), version)
