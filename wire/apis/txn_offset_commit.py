"""TxnOffsetCommit (28): commit a group's offsets as part of a transaction."""

from trilogue.wire.schema import Int16, Int32, Int64, Request, Response, String, Struct, Uuid, field

KEY, VERSIONS, FLEXIBLE = 28, "0-6", "3+"


class TxnOffsetCommitRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Partition(Struct):
            partition_index: Int32
            committed_offset: Int64
            committed_leader_epoch: Int32 = field("2+", default=-1)
            committed_metadata: String | None

        name: String = field("0-5")
        topic_id: Uuid = field("6+")
        partitions: list[Partition]

    transactional_id: String
    group_id: String
    producer_id: Int64
    producer_epoch: Int16
    generation_id_or_member_epoch: Int32 = field("3+", default=-1)
    member_id: String = field("3+")
    group_instance_id: String | None = field("3+", default=None)
    topics: list[Topic]


class TxnOffsetCommitResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Partition(Struct):
            partition_index: Int32
            error_code: Int16 = field()

        name: String = field("0-5")
        topic_id: Uuid = field("6+")
        partitions: list[Partition]

    throttle_time_ms: Int32 = field()
    topics: list[Topic]
