"""Records of __consumer_offsets: consumer groups of the new protocol (KIP-848)."""

from trilogue.wire.schema import Bytes, Int8, Int32, Int64, Key, String, Struct, Uuid, Value, field


class ConsumerGroupMetadataKey(Key, key=3, versions="0"):
    group_id: String


class ConsumerGroupMetadataValue(Value, key=3, versions="0", flexible="0+"):
    epoch: Int32
    metadata_hash: Int64 = field(tag=0)


class ConsumerGroupPartitionMetadataKey(Key, key=4, versions="0"):
    group_id: String


class ConsumerGroupPartitionMetadataValue(Value, key=4, versions="0", flexible="0+"):
    class Topic(Struct):
        class PartitionMetadata(Struct):
            partition: Int32
            racks: list[String]

        topic_id: Uuid
        topic_name: String
        num_partitions: Int32
        partition_metadata: list[PartitionMetadata]

    topics: list[Topic]


class ConsumerGroupMemberMetadataKey(Key, key=5, versions="0"):
    group_id: String
    member_id: String


class ConsumerGroupMemberMetadataValue(Value, key=5, versions="0", flexible="0+"):
    class ClassicMemberMetadata(Struct):
        class SupportedProtocol(Struct):
            name: String
            metadata: Bytes

        session_timeout_ms: Int32
        supported_protocols: list[SupportedProtocol]

    instance_id: String | None
    rack_id: String | None
    client_id: String
    client_host: String
    subscribed_topic_names: list[String]
    subscribed_topic_regex: String | None
    rebalance_timeout_ms: Int32 = field(default=-1)
    server_assignor: String | None
    classic_member_metadata: ClassicMemberMetadata | None = field(tag=0)


class ConsumerGroupTargetAssignmentMetadataKey(Key, key=6, versions="0"):
    group_id: String


class ConsumerGroupTargetAssignmentMetadataValue(Value, key=6, versions="0", flexible="0+"):
    assignment_epoch: Int32
    assignment_timestamp: Int64 = field(tag=0)


class ConsumerGroupTargetAssignmentMemberKey(Key, key=7, versions="0"):
    group_id: String
    member_id: String


class ConsumerGroupTargetAssignmentMemberValue(Value, key=7, versions="0", flexible="0+"):
    class TopicPartitions(Struct):
        topic_id: Uuid
        partitions: list[Int32]

    topic_partitions: list[TopicPartitions]


class ConsumerGroupCurrentMemberAssignmentKey(Key, key=8, versions="0"):
    group_id: String
    member_id: String


class TopicPartitions(Struct):
    topic_id: Uuid
    partitions: list[Int32]
    assignment_epochs: list[Int32] | None = field(tag=0)


class ConsumerGroupCurrentMemberAssignmentValue(Value, key=8, versions="0", flexible="0+"):
    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: list[TopicPartitions]
    partitions_pending_revocation: list[TopicPartitions]


class ConsumerGroupRegularExpressionKey(Key, key=16, versions="0"):
    group_id: String
    regular_expression: String


class ConsumerGroupRegularExpressionValue(Value, key=16, versions="0", flexible="0+"):
    topics: list[String]
    version: Int64
    timestamp: Int64
