"""AlterShareGroupOffsets (91): set how far a share group has read (KIP-932)."""

from trilogue.wire.schema import Int16, Int32, Int64, Request, Response, String, Struct, Uuid, field

KEY, VERSIONS, FLEXIBLE = 91, "0", "0+"


class AlterShareGroupOffsetsRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Partition(Struct):
            partition_index: Int32
            start_offset: Int64

        topic_name: String
        partitions: list[Partition]

    group_id: String
    topics: list[Topic]


class AlterShareGroupOffsetsResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Partition(Struct):
            partition_index: Int32
            error_code: Int16 = field()
            error_message: String | None = field(default=None)

        topic_name: String
        topic_id: Uuid
        partitions: list[Partition]

    throttle_time_ms: Int32 = field()
    error_code: Int16 = field()
    error_message: String | None = field(default=None)
    responses: list[Topic]
