"""ListPartitionReassignments (46): the partitions that are on the move."""

from trilogue.wire.schema import Int16, Int32, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 46, "0", "0+"


class ListPartitionReassignmentsRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        name: String
        partition_indexes: list[Int32]

    timeout_ms: Int32 = field(default=60000)
    topics: list[Topic] | None = field(default=None)


class ListPartitionReassignmentsResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Partition(Struct):
            partition_index: Int32
            replicas: list[Int32]
            adding_replicas: list[Int32]
            removing_replicas: list[Int32]

        name: String
        partitions: list[Partition]

    throttle_time_ms: Int32 = field()
    error_code: Int16 = field()
    error_message: String | None = field()
    topics: list[Topic]
