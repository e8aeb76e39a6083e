"""What classic consumers put into JoinGroup and SyncGroup for each other, as far as a coordinator looks into it."""

import struct

from trilogue.wire.codec import build, parse
from trilogue.wire.errors import MalformedMessage
from trilogue.wire.internal.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription

VERSION = struct.Struct(">h")
NEWEST = 3


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """Every version begins like those before it: of newer ones we read what we know.  Raises MalformedMessage."""
    from trilogue.wire.compile import codec

    if len(data) < VERSION.size:
        raise MalformedMessage("no version", "ConsumerProtocolSubscription")
    (version,) = VERSION.unpack_from(data)
    if version < 0:
        raise MalformedMessage(f"version {version}", "ConsumerProtocolSubscription")
    it, _ = codec(ConsumerProtocolSubscription, min(version, NEWEST)).decode(memoryview(data)[VERSION.size :], 0)
    assert isinstance(it, ConsumerProtocolSubscription)
    return it


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    if len(data) < VERSION.size:
        return ConsumerProtocolAssignment(assigned_partitions=[])
    (version,) = VERSION.unpack_from(data)
    return parse(ConsumerProtocolAssignment, max(0, min(version, NEWEST)), data[VERSION.size :])


def write_assignment(partitions: dict[str, list[int]], version: int) -> bytes:
    version = max(0, min(version, NEWEST))
    Assigned = ConsumerProtocolAssignment.AssignedPartition
    assigned = [Assigned(topic=topic, partitions=partitions[topic]) for topic in sorted(partitions)]
    return VERSION.pack(version) + build(ConsumerProtocolAssignment(assigned_partitions=assigned), version)
