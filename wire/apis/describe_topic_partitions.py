"""DescribeTopicPartitions (75): topics with their partitions, in pages."""

from trilogue.wire.schema import Bool, Int16, Int32, Request, Response, String, Struct, Uuid, field

KEY, VERSIONS, FLEXIBLE = 75, "0", "0+"


class DescribeTopicPartitionsRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        name: String

    class Cursor(Struct):
        topic_name: String
        partition_index: Int32

    topics: list[Topic]
    response_partition_limit: Int32 = field(default=2000)
    cursor: Cursor | None = field(default=None)


class DescribeTopicPartitionsResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Partition(Struct):
            error_code: Int16 = field()
            partition_index: Int32
            leader_id: Int32
            leader_epoch: Int32 = field(default=-1)
            replica_nodes: list[Int32]
            isr_nodes: list[Int32]
            eligible_leader_replicas: list[Int32] | None = field(default=None)
            last_known_elr: list[Int32] | None = field(default=None)
            offline_replicas: list[Int32]

        error_code: Int16 = field()
        name: String | None
        topic_id: Uuid
        is_internal: Bool
        partitions: list[Partition]
        topic_authorized_operations: Int32 = field(default=-(2**31))

    class Cursor(Struct):
        topic_name: String
        partition_index: Int32

    throttle_time_ms: Int32 = field()
    topics: list[Topic]
    next_cursor: Cursor | None = field(default=None)
