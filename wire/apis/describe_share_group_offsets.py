"""DescribeShareGroupOffsets (90): how far share groups have read (KIP-932)."""

from trilogue.wire.schema import Int16, Int32, Int64, Request, Response, String, Struct, Uuid, field

KEY, VERSIONS, FLEXIBLE = 90, "0-1", "0+"


class DescribeShareGroupOffsetsRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Group(Struct):
        class Topic(Struct):
            topic_name: String
            partitions: list[Int32]

        group_id: String
        topics: list[Topic] | None

    groups: list[Group]


class DescribeShareGroupOffsetsResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Group(Struct):
        class Topic(Struct):
            class Partition(Struct):
                partition_index: Int32
                start_offset: Int64
                leader_epoch: Int32
                lag: Int64 = field("1+", default=-1)
                error_code: Int16 = field()
                error_message: String | None = field(default=None)

            topic_name: String
            topic_id: Uuid
            partitions: list[Partition]

        group_id: String
        topics: list[Topic]
        error_code: Int16 = field()
        error_message: String | None = field(default=None)

    throttle_time_ms: Int32 = field()
    groups: list[Group]
