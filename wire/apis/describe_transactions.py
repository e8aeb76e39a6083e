"""DescribeTransactions (65): the state of transactions, by transactional id."""

from trilogue.wire.schema import Int16, Int32, Int64, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 65, "0", "0+"


class DescribeTransactionsRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    transactional_ids: list[String]


class DescribeTransactionsResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class TransactionState(Struct):
        class Topic(Struct):
            topic: String
            partitions: list[Int32]

        error_code: Int16 = field()
        transactional_id: String
        transaction_state: String
        transaction_timeout_ms: Int32
        transaction_start_time_ms: Int64
        producer_id: Int64
        producer_epoch: Int16
        topics: list[Topic]

    throttle_time_ms: Int32 = field()
    transaction_states: list[TransactionState]
