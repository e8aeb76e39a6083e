"""DeleteGroups (42): remove empty groups."""

from trilogue.wire.schema import Int16, Int32, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 42, "0-3", "2+"


class DeleteGroupsRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    groups_names: list[String]


class DeleteGroupsResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Result(Struct):
        group_id: String
        error_code: Int16 = field()
        error_message: String | None = field("3+", default=None)

    throttle_time_ms: Int32 = field()
    results: list[Result]
