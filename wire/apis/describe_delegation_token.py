"""DescribeDelegationToken (41): the delegation tokens of these owners."""

from trilogue.wire.schema import Bytes, Int16, Int32, Int64, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 41, "0-3", "2+"


class DescribeDelegationTokenRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Owner(Struct):
        principal_type: String
        principal_name: String

    owners: list[Owner] | None


class DescribeDelegationTokenResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Token(Struct):
        class Renewer(Struct):
            principal_type: String
            principal_name: String

        principal_type: String
        principal_name: String
        token_requester_principal_type: String = field("3+")
        token_requester_principal_name: String = field("3+")
        issue_timestamp: Int64
        expiry_timestamp: Int64
        max_timestamp: Int64
        token_id: String
        hmac: Bytes
        renewers: list[Renewer]

    error_code: Int16 = field()
    tokens: list[Token]
    throttle_time_ms: Int32 = field()
