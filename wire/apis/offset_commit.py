"""OffsetCommit (8): a group remembers how far it has read."""

from trilogue.wire.schema import Int16, Int32, Int64, Request, Response, String, Struct, Uuid, field

KEY, VERSIONS, FLEXIBLE = 8, "0-10", "8+"


class OffsetCommitRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Partition(Struct):
            partition_index: Int32
            committed_offset: Int64
            commit_timestamp: Int64 = field("1", default=-1)
            committed_leader_epoch: Int32 = field("6+", default=-1)
            committed_metadata: String | None

        name: String = field("0-9")
        topic_id: Uuid = field("10+")
        partitions: list[Partition]

    group_id: String
    generation_id_or_member_epoch: Int32 = field("1+", default=-1)
    member_id: String = field("1+")
    group_instance_id: String | None = field("7+", default=None)
    retention_time_ms: Int64 = field("2-4", default=-1)
    topics: list[Topic]


class OffsetCommitResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Partition(Struct):
            partition_index: Int32
            error_code: Int16 = field()

        name: String = field("0-9")
        topic_id: Uuid = field("10+")
        partitions: list[Partition]

    throttle_time_ms: Int32 = field("3+")
    topics: list[Topic]
