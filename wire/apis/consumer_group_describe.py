"""ConsumerGroupDescribe (69): state, members and assignments of new consumer groups (KIP-848)."""

from trilogue.wire.schema import Bool, Int8, Int16, Int32, Request, Response, String, Struct, Uuid, field

KEY, VERSIONS, FLEXIBLE = 69, "0-1", "0+"


class ConsumerGroupDescribeRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    group_ids: list[String]
    include_authorized_operations: Bool


class TopicPartitions(Struct):
    topic_id: Uuid
    topic_name: String
    partitions: list[Int32]


class Assignment(Struct):
    topic_partitions: list[TopicPartitions]


class ConsumerGroupDescribeResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Group(Struct):
        class Member(Struct):
            member_id: String
            instance_id: String | None = field(default=None)
            rack_id: String | None = field(default=None)
            member_epoch: Int32
            client_id: String
            client_host: String
            subscribed_topic_names: list[String]
            subscribed_topic_regex: String | None = field(default=None)
            assignment: Assignment
            target_assignment: Assignment
            member_type: Int8 = field("1+", default=-1)

        error_code: Int16 = field()
        error_message: String | None = field(default=None)
        group_id: String
        group_state: String
        group_epoch: Int32
        assignment_epoch: Int32
        assignor_name: String
        members: list[Member]
        authorized_operations: Int32 = field(default=-(2**31))

    throttle_time_ms: Int32 = field()
    groups: list[Group]
