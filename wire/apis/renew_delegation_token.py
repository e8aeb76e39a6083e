"""RenewDelegationToken (39): let a delegation token live longer."""

from trilogue.wire.schema import Bytes, Int16, Int32, Int64, Request, Response, field

KEY, VERSIONS, FLEXIBLE = 39, "0-2", "2+"


class RenewDelegationTokenRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    hmac: Bytes
    renew_period_ms: Int64


class RenewDelegationTokenResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    error_code: Int16 = field()
    expiry_timestamp_ms: Int64
    throttle_time_ms: Int32 = field()
