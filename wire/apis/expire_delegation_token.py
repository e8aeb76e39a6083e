"""ExpireDelegationToken (40): let a delegation token end earlier."""

from trilogue.wire.schema import Bytes, Int16, Int32, Int64, Request, Response, field

KEY, VERSIONS, FLEXIBLE = 40, "0-2", "2+"


class ExpireDelegationTokenRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    hmac: Bytes
    expiry_time_period_ms: Int64


class ExpireDelegationTokenResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    error_code: Int16 = field()
    expiry_timestamp_ms: Int64
    throttle_time_ms: Int32 = field()
