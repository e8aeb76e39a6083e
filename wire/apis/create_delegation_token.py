"""CreateDelegationToken (38): make a token that stands in for its owner."""

from trilogue.wire.schema import Bytes, Int16, Int32, Int64, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 38, "0-3", "2+"


class CreateDelegationTokenRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Renewer(Struct):
        principal_type: String
        principal_name: String

    owner_principal_type: String | None = field("3+")
    owner_principal_name: String | None = field("3+")
    renewers: list[Renewer]
    max_lifetime_ms: Int64


class CreateDelegationTokenResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    error_code: Int16 = field()
    principal_type: String
    principal_name: String
    token_requester_principal_type: String = field("3+")
    token_requester_principal_name: String = field("3+")
    issue_timestamp_ms: Int64
    expiry_timestamp_ms: Int64
    max_timestamp_ms: Int64
    token_id: String
    hmac: Bytes
    throttle_time_ms: Int32 = field()
