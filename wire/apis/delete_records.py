"""DeleteRecords (21): forget what lies before an offset."""

from trilogue.wire.schema import Int16, Int32, Int64, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 21, "0-2", "2+"


class DeleteRecordsRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Partition(Struct):
            partition_index: Int32
            offset: Int64

        name: String
        partitions: list[Partition]

    topics: list[Topic]
    timeout_ms: Int32


class DeleteRecordsResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Partition(Struct):
            partition_index: Int32
            low_watermark: Int64
            error_code: Int16 = field()

        name: String
        partitions: list[Partition]

    throttle_time_ms: Int32 = field()
    topics: list[Topic]
