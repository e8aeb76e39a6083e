"""AlterPartitionReassignments (45): move partitions to other brokers, or stop moving them."""

from trilogue.wire.schema import Bool, Int16, Int32, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 45, "0-1", "0+"


class AlterPartitionReassignmentsRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Partition(Struct):
            partition_index: Int32
            replicas: list[Int32] | None = field(default=None)

        name: String
        partitions: list[Partition]

    timeout_ms: Int32 = field(default=60000)
    allow_replication_factor_change: Bool = field("1+", default=True)
    topics: list[Topic]


class AlterPartitionReassignmentsResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Partition(Struct):
            partition_index: Int32
            error_code: Int16 = field()
            error_message: String | None = field()

        name: String
        partitions: list[Partition]

    throttle_time_ms: Int32 = field()
    allow_replication_factor_change: Bool = field("1+", default=True)
    error_code: Int16 = field()
    error_message: String | None = field()
    responses: list[Topic]
