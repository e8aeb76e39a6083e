"""ShareGroupHeartbeat (76): join, stay in and leave a share group (KIP-932)."""

from trilogue.wire.schema import Int16, Int32, Request, Response, String, Struct, Uuid, field

KEY, VERSIONS, FLEXIBLE = 76, "0-1", "0+"


class ShareGroupHeartbeatRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    group_id: String
    member_id: String
    member_epoch: Int32
    rack_id: String | None = field(default=None)
    subscribed_topic_names: list[String] | None = field(default=None)


class TopicPartitions(Struct):
    topic_id: Uuid
    partitions: list[Int32]


class ShareGroupHeartbeatResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Assignment(Struct):
        topic_partitions: list[TopicPartitions]

    throttle_time_ms: Int32 = field()
    error_code: Int16 = field()
    error_message: String | None = field(default=None)
    member_id: String | None = field(default=None)
    member_epoch: Int32
    heartbeat_interval_ms: Int32
    assignment: Assignment | None = field(default=None)
