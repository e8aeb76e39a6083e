"""ReadShareGroupStateSummary (87): the kept state of share partitions, without its batches (KIP-932)."""

from trilogue.wire.schema import Int16, Int32, Int64, Request, Response, String, Struct, Uuid, field

KEY, VERSIONS, FLEXIBLE = 87, "0-1", "0+"


class ReadShareGroupStateSummaryRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Partition(Struct):
            partition: Int32
            leader_epoch: Int32

        topic_id: Uuid
        partitions: list[Partition]

    group_id: String
    topics: list[Topic]


class ReadShareGroupStateSummaryResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Partition(Struct):
            partition: Int32
            error_code: Int16 = field()
            error_message: String | None = field(default=None)
            state_epoch: Int32
            leader_epoch: Int32
            start_offset: Int64
            delivery_complete_count: Int32 = field("1+", default=-1)

        topic_id: Uuid
        partitions: list[Partition]

    results: list[Topic]
