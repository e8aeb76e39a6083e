"""CreateAcls (30): add access rules."""

from trilogue.wire.schema import Int8, Int16, Int32, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 30, "0-3", "2+"


class CreateAclsRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Creation(Struct):
        resource_type: Int8
        resource_name: String
        resource_pattern_type: Int8 = field("1+", default=3)
        principal: String
        host: String
        operation: Int8
        permission_type: Int8

    creations: list[Creation]


class CreateAclsResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Result(Struct):
        error_code: Int16 = field()
        error_message: String | None = field()

    throttle_time_ms: Int32 = field()
    results: list[Result]
