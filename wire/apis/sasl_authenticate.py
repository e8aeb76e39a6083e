"""SaslAuthenticate (36): carry the tokens of a SASL exchange."""

from trilogue.wire.schema import Bytes, Int16, Int64, Request, Response, String, field

KEY, VERSIONS, FLEXIBLE = 36, "0-2", "2+"


class SaslAuthenticateRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    auth_bytes: Bytes


class SaslAuthenticateResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    error_code: Int16 = field()
    error_message: String | None = field()
    auth_bytes: Bytes
    session_lifetime_ms: Int64 = field("1+")
