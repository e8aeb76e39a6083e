"""DescribeUserScramCredentials (50): which SCRAM credentials a user has; never the secrets."""

from trilogue.wire.schema import Int8, Int16, Int32, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 50, "0", "0+"


class DescribeUserScramCredentialsRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class User(Struct):
        name: String

    users: list[User] | None


class DescribeUserScramCredentialsResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Result(Struct):
        class CredentialInfo(Struct):
            mechanism: Int8
            iterations: Int32

        user: String
        error_code: Int16 = field()
        error_message: String | None = field()
        credential_infos: list[CredentialInfo]

    throttle_time_ms: Int32 = field()
    error_code: Int16 = field()
    error_message: String | None = field()
    results: list[Result]
