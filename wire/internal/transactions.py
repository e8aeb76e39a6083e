"""Records of __transaction_state: one per transactional id, the latest counts."""

from trilogue.wire.schema import Int8, Int16, Int32, Int64, Key, String, Struct, Value, field


class TransactionLogKey(Key, key=0, versions="0"):
    transactional_id: String


class TransactionLogValue(Value, key=0, versions="0-1", flexible="1+"):
    class TopicPartitions(Struct):
        topic: String
        partition_ids: list[Int32]

    producer_id: Int64
    previous_producer_id: Int64 = field("1+", default=-1, tag=0)
    next_producer_id: Int64 = field("1+", default=-1, tag=1)
    producer_epoch: Int16
    next_producer_epoch: Int16 = field("1+", default=-1, tag=3)
    transaction_timeout_ms: Int32
    transaction_status: Int8
    transaction_partitions: list[TopicPartitions] | None
    transaction_last_update_timestamp_ms: Int64
    transaction_start_timestamp_ms: Int64
    client_transaction_version: Int16 = field("1+", tag=2)
