"""AlterUserScramCredentials (51): set and remove SCRAM credentials."""

from trilogue.wire.schema import Bytes, Int8, Int16, Int32, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 51, "0", "0+"


class AlterUserScramCredentialsRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Deletion(Struct):
        name: String
        mechanism: Int8

    class Upsertion(Struct):
        name: String
        mechanism: Int8
        iterations: Int32
        salt: Bytes
        salted_password: Bytes

    deletions: list[Deletion]
    upsertions: list[Upsertion]


class AlterUserScramCredentialsResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Result(Struct):
        user: String
        error_code: Int16 = field()
        error_message: String | None = field()

    throttle_time_ms: Int32 = field()
    results: list[Result]
