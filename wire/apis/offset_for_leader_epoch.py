"""OffsetForLeaderEpoch (23): where a leader epoch ended, to find out where two logs part."""

from trilogue.wire.schema import Int16, Int32, Int64, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 23, "0-4", "4+"


class OffsetForLeaderEpochRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Partition(Struct):
            partition: Int32
            current_leader_epoch: Int32 = field("2+", default=-1)
            leader_epoch: Int32

        topic: String
        partitions: list[Partition]

    replica_id: Int32 = field("3+", default=-2)
    topics: list[Topic]


class OffsetForLeaderEpochResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Partition(Struct):
            error_code: Int16 = field()
            partition: Int32
            leader_epoch: Int32 = field("1+", default=-1)
            end_offset: Int64 = field(default=-1)

        topic: String
        partitions: list[Partition]

    throttle_time_ms: Int32 = field("2+")
    topics: list[Topic]
