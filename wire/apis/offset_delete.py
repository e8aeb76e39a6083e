"""OffsetDelete (47): a group forgets how far it has read."""

from trilogue.wire.schema import Int16, Int32, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 47, "0", "none"


class OffsetDeleteRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Partition(Struct):
            partition_index: Int32

        name: String
        partitions: list[Partition]

    group_id: String
    topics: list[Topic]


class OffsetDeleteResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Partition(Struct):
            partition_index: Int32
            error_code: Int16 = field()

        name: String
        partitions: list[Partition]

    error_code: Int16 = field()
    throttle_time_ms: Int32 = field()
    topics: list[Topic]
