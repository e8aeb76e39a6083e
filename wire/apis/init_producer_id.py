"""InitProducerId (22): an identity for an idempotent or transactional producer; fences its predecessors."""

from trilogue.wire.schema import Bool, Int16, Int32, Int64, Request, Response, String, field

KEY, VERSIONS, FLEXIBLE = 22, "0-6", "2+"


class InitProducerIdRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    transactional_id: String | None
    transaction_timeout_ms: Int32
    producer_id: Int64 = field("3+", default=-1)
    producer_epoch: Int16 = field("3+", default=-1)
    enable2_pc: Bool = field("6+")
    keep_prepared_txn: Bool = field("6+")


class InitProducerIdResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    throttle_time_ms: Int32 = field()
    error_code: Int16 = field()
    producer_id: Int64 = field(default=-1)
    producer_epoch: Int16
    ongoing_txn_producer_id: Int64 = field("6+", default=-1)
    ongoing_txn_producer_epoch: Int16 = field("6+", default=-1)
