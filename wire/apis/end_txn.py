"""EndTxn (26): commit or abort a transaction."""

from trilogue.wire.schema import Bool, Int16, Int32, Int64, Request, Response, String, field

KEY, VERSIONS, FLEXIBLE = 26, "0-5", "3+"


class EndTxnRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    committed: Bool


class EndTxnResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    throttle_time_ms: Int32 = field()
    error_code: Int16 = field()
    producer_id: Int64 = field("5+", default=-1)
    producer_epoch: Int16 = field("5+", default=-1)
