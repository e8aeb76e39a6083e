"""AddPartitionsToTxn (24): a transaction is going to write to these partitions."""

from trilogue.wire.schema import Bool, Int16, Int32, Int64, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 24, "0-5", "3+"


class Topic(Struct):
    name: String
    partitions: list[Int32]


class AddPartitionsToTxnRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Transaction(Struct):
        transactional_id: String
        producer_id: Int64
        producer_epoch: Int16
        verify_only: Bool
        topics: list[Topic]

    transactions: list[Transaction] = field("4+")
    v3_and_below_transactional_id: String = field("0-3")
    v3_and_below_producer_id: Int64 = field("0-3")
    v3_and_below_producer_epoch: Int16 = field("0-3")
    v3_and_below_topics: list[Topic] = field("0-3")


class PartitionResult(Struct):
    partition_index: Int32
    partition_error_code: Int16


class TopicResult(Struct):
    name: String
    results_by_partition: list[PartitionResult]


class AddPartitionsToTxnResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Transaction(Struct):
        transactional_id: String
        topic_results: list[TopicResult]

    throttle_time_ms: Int32 = field()
    error_code: Int16 = field("4+")
    results_by_transaction: list[Transaction] = field("4+")
    results_by_topic_v3_and_below: list[TopicResult] = field("0-3")
