"""AddOffsetsToTxn (25): a transaction is going to commit offsets of this group."""

from trilogue.wire.schema import Int16, Int32, Int64, Request, Response, String, field

KEY, VERSIONS, FLEXIBLE = 25, "0-4", "3+"


class AddOffsetsToTxnRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    group_id: String


class AddOffsetsToTxnResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    throttle_time_ms: Int32 = field()
    error_code: Int16 = field()
