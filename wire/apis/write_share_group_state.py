"""WriteShareGroupState (85): keep the state of share partitions (KIP-932)."""

from trilogue.wire.schema import Int8, Int16, Int32, Int64, Request, Response, String, Struct, Uuid, field

KEY, VERSIONS, FLEXIBLE = 85, "0-1", "0+"


class WriteShareGroupStateRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Partition(Struct):
            class StateBatche(Struct):
                first_offset: Int64
                last_offset: Int64
                delivery_state: Int8
                delivery_count: Int16

            partition: Int32
            state_epoch: Int32
            leader_epoch: Int32
            start_offset: Int64
            delivery_complete_count: Int32 = field("1+", default=-1)
            state_batches: list[StateBatche]

        topic_id: Uuid
        partitions: list[Partition]

    group_id: String
    topics: list[Topic]


class WriteShareGroupStateResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Partition(Struct):
            partition: Int32
            error_code: Int16 = field()
            error_message: String | None = field(default=None)

        topic_id: Uuid
        partitions: list[Partition]

    results: list[Topic]
