"""OffsetFetch (9): how far a group has read."""

from trilogue.wire.schema import Bool, Int16, Int32, Int64, Request, Response, String, Struct, Uuid, field

KEY, VERSIONS, FLEXIBLE = 9, "0-10", "6+"


class OffsetFetchRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        name: String
        partition_indexes: list[Int32]

    class Group(Struct):
        class Topic(Struct):
            name: String = field("8-9")
            topic_id: Uuid = field("10+")
            partition_indexes: list[Int32]

        group_id: String
        member_id: String | None = field("9+", default=None)
        member_epoch: Int32 = field("9+", default=-1)
        topics: list[Topic] | None

    group_id: String = field("0-7")
    topics: list[Topic] | None = field("0-7", nullable="2-7")
    groups: list[Group] = field("8+")
    require_stable: Bool = field("7+")


class OffsetFetchResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Partition(Struct):
            partition_index: Int32
            committed_offset: Int64
            committed_leader_epoch: Int32 = field("5+", default=-1)
            metadata: String | None
            error_code: Int16 = field()

        name: String
        partitions: list[Partition]

    class Group(Struct):
        class Topic(Struct):
            class Partition(Struct):
                partition_index: Int32
                committed_offset: Int64
                committed_leader_epoch: Int32 = field(default=-1)
                metadata: String | None
                error_code: Int16 = field()

            name: String = field("8-9")
            topic_id: Uuid = field("10+")
            partitions: list[Partition]

        group_id: String
        topics: list[Topic]
        error_code: Int16 = field()

    throttle_time_ms: Int32 = field("3+")
    topics: list[Topic] = field("0-7")
    error_code: Int16 = field("2-7")
    groups: list[Group] = field("8+")
