"""ListOffsets (2): the offset that stands at the beginning, at the end, or at a point in time."""

from trilogue.wire.schema import Int8, Int16, Int32, Int64, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 2, "0-11", "6+"


class ListOffsetsRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Partition(Struct):
            partition_index: Int32
            current_leader_epoch: Int32 = field("4+", default=-1)
            timestamp: Int64
            max_num_offsets: Int32 = field("0", default=1)

        name: String
        partitions: list[Partition]

    replica_id: Int32
    isolation_level: Int8 = field("2+")
    topics: list[Topic]
    timeout_ms: Int32 = field("10+")


class ListOffsetsResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Partition(Struct):
            partition_index: Int32
            error_code: Int16 = field()
            old_style_offsets: list[Int64] = field("0")
            timestamp: Int64 = field("1+", default=-1)
            offset: Int64 = field("1+", default=-1)
            leader_epoch: Int32 = field("4+", default=-1)

        name: String
        partitions: list[Partition]

    throttle_time_ms: Int32 = field("2+")
    topics: list[Topic]
