"""What members of a classic consumer group tell each other through the broker."""

from trilogue.wire.schema import Bytes, Data, Int32, String, Struct, field


class ConsumerProtocolSubscription(Data, versions="0-3"):
    class OwnedPartition(Struct):
        topic: String
        partitions: list[Int32]

    topics: list[String]
    user_data: Bytes | None = field(default=None)
    owned_partitions: list[OwnedPartition] = field("1+")
    generation_id: Int32 = field("2+", default=-1)
    rack_id: String | None = field("3+", default=None)


class ConsumerProtocolAssignment(Data, versions="0-3"):
    class AssignedPartition(Struct):
        topic: String
        partitions: list[Int32]

    assigned_partitions: list[AssignedPartition]
    user_data: Bytes | None = field(default=None)
