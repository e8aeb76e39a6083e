"""ConsumerGroupHeartbeat (68): join, stay in and leave a consumer group of the new protocol (KIP-848)."""

from trilogue.wire.schema import Int16, Int32, Request, Response, String, Struct, Uuid, field

KEY, VERSIONS, FLEXIBLE = 68, "0-1", "0+"


class ConsumerGroupHeartbeatRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class TopicPartitions(Struct):
        topic_id: Uuid
        partitions: list[Int32]

    group_id: String
    member_id: String
    member_epoch: Int32
    instance_id: String | None = field(default=None)
    rack_id: String | None = field(default=None)
    rebalance_timeout_ms: Int32 = field(default=-1)
    subscribed_topic_names: list[String] | None = field(default=None)
    subscribed_topic_regex: String | None = field("1+", default=None)
    server_assignor: String | None = field(default=None)
    topic_partitions: list[TopicPartitions] | None = field(default=None)


class TopicPartitions(Struct):
    topic_id: Uuid
    partitions: list[Int32]


class ConsumerGroupHeartbeatResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Assignment(Struct):
        topic_partitions: list[TopicPartitions]

    throttle_time_ms: Int32 = field()
    error_code: Int16 = field()
    error_message: String | None = field(default=None)
    member_id: String | None = field(default=None)
    member_epoch: Int32
    heartbeat_interval_ms: Int32
    assignment: Assignment | None = field(default=None)
