"""Records of __consumer_offsets: share groups (KIP-932)."""

from trilogue.wire.schema import Int8, Int32, Int64, Key, String, Struct, Uuid, Value, field


class ShareGroupMemberMetadataKey(Key, key=10, versions="0"):
    group_id: String
    member_id: String


class ShareGroupMemberMetadataValue(Value, key=10, versions="0", flexible="0+"):
    rack_id: String | None
    client_id: String
    client_host: String
    subscribed_topic_names: list[String]


class ShareGroupMetadataKey(Key, key=11, versions="0"):
    group_id: String


class ShareGroupMetadataValue(Value, key=11, versions="0", flexible="0+"):
    epoch: Int32
    metadata_hash: Int64


class ShareGroupTargetAssignmentMetadataKey(Key, key=12, versions="0"):
    group_id: String


class ShareGroupTargetAssignmentMetadataValue(Value, key=12, versions="0", flexible="0+"):
    assignment_epoch: Int32
    assignment_timestamp: Int64 = field(tag=0)


class ShareGroupTargetAssignmentMemberKey(Key, key=13, versions="0"):
    group_id: String
    member_id: String


class ShareGroupTargetAssignmentMemberValue(Value, key=13, versions="0", flexible="0+"):
    class TopicPartitions(Struct):
        topic_id: Uuid
        partitions: list[Int32]

    topic_partitions: list[TopicPartitions]


class ShareGroupCurrentMemberAssignmentKey(Key, key=14, versions="0"):
    group_id: String
    member_id: String


class TopicPartitions(Struct):
    topic_id: Uuid
    partitions: list[Int32]


class ShareGroupCurrentMemberAssignmentValue(Value, key=14, versions="0", flexible="0+"):
    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: list[TopicPartitions]


class ShareGroupStatePartitionMetadataKey(Key, key=15, versions="0"):
    group_id: String


class TopicPartitionsInfo(Struct):
    topic_id: Uuid
    topic_name: String
    partitions: list[Int32]


class TopicInfo(Struct):
    topic_id: Uuid
    topic_name: String


class ShareGroupStatePartitionMetadataValue(Value, key=15, versions="0", flexible="0+"):
    initializing_topics: list[TopicPartitionsInfo]
    initialized_topics: list[TopicPartitionsInfo]
    deleting_topics: list[TopicInfo]
