"""DeleteShareGroupState (86): stop keeping the state of share partitions (KIP-932)."""

from trilogue.wire.schema import Int16, Int32, Request, Response, String, Struct, Uuid, field

KEY, VERSIONS, FLEXIBLE = 86, "0", "0+"


class DeleteShareGroupStateRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Partition(Struct):
            partition: Int32

        topic_id: Uuid
        partitions: list[Partition]

    group_id: String
    topics: list[Topic]


class DeleteShareGroupStateResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Partition(Struct):
            partition: Int32
            error_code: Int16 = field()
            error_message: String | None = field(default=None)

        topic_id: Uuid
        partitions: list[Partition]

    results: list[Topic]
