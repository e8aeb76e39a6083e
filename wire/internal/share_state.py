"""Records of __share_group_state: where a share partition stands (KIP-932)."""

from trilogue.wire.schema import Int8, Int16, Int32, Int64, Key, String, Struct, Uuid, Value, field


class ShareSnapshotKey(Key, key=0, versions="0"):
    group_id: String
    topic_id: Uuid
    partition: Int32


class ShareSnapshotValue(Value, key=0, versions="0", flexible="0+"):
    class StateBatche(Struct):
        first_offset: Int64
        last_offset: Int64
        delivery_state: Int8
        delivery_count: Int16

    snapshot_epoch: Int32
    state_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Int32 = field(default=-1, tag=0)
    create_timestamp: Int64
    write_timestamp: Int64
    state_batches: list[StateBatche]


class ShareUpdateKey(Key, key=1, versions="0"):
    group_id: String
    topic_id: Uuid
    partition: Int32


class ShareUpdateValue(Value, key=1, versions="0", flexible="0+"):
    class StateBatche(Struct):
        first_offset: Int64
        last_offset: Int64
        delivery_state: Int8
        delivery_count: Int16

    snapshot_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Int32 = field(default=-1, tag=0)
    state_batches: list[StateBatche]
