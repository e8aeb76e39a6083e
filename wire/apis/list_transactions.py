"""ListTransactions (66): the transactions that this broker looks after."""

from trilogue.wire.schema import Int16, Int32, Int64, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 66, "0-2", "0+"


class ListTransactionsRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    state_filters: list[String]
    producer_id_filters: list[Int64]
    duration_filter: Int64 = field("1+", default=-1)
    transactional_id_pattern: String | None = field("2+", default=None)


class ListTransactionsResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class TransactionState(Struct):
        transactional_id: String
        producer_id: Int64
        transaction_state: String

    throttle_time_ms: Int32 = field()
    error_code: Int16 = field()
    unknown_state_filters: list[String]
    transaction_states: list[TransactionState]
