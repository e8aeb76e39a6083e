"""Records of __consumer_offsets: committed offsets and classic groups."""

from trilogue.wire.schema import Bytes, Int32, Int64, Key, String, Struct, Uuid, Value, field


class LegacyOffsetCommitKey(Key, key=0, versions="0"):
    group: String
    topic: String
    partition: Int32


class LegacyOffsetCommitValue(Value, key=0, versions="0"):
    offset: Int64
    metadata: String
    commit_timestamp: Int64


class OffsetCommitKey(Key, key=1, versions="0"):
    group: String
    topic: String
    partition: Int32


class OffsetCommitValue(Value, key=1, versions="0-4", flexible="4+"):
    offset: Int64
    leader_epoch: Int32 = field("3+", default=-1)
    metadata: String
    commit_timestamp: Int64
    expire_timestamp: Int64 = field("1", default=-1)
    topic_id: Uuid = field("4+", tag=0)


class GroupMetadataKey(Key, key=2, versions="0"):
    group: String


class MemberMetadata(Struct):
    member_id: String
    group_instance_id: String | None = field("3+", default=None)
    client_id: String
    client_host: String
    rebalance_timeout: Int32 = field("1+", default=-1)
    session_timeout: Int32
    subscription: Bytes
    assignment: Bytes


class GroupMetadataValue(Value, key=2, versions="0-4", flexible="4+"):
    protocol_type: String
    generation: Int32
    protocol: String | None
    leader: String | None
    current_state_timestamp: Int64 = field("2+", default=-1)
    members: list[MemberMetadata]
