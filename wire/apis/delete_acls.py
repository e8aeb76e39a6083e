"""DeleteAcls (31): remove the access rules that match filters."""

from trilogue.wire.schema import Int8, Int16, Int32, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 31, "0-3", "2+"


class DeleteAclsRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Filter(Struct):
        resource_type_filter: Int8
        resource_name_filter: String | None
        pattern_type_filter: Int8 = field("1+", default=3)
        principal_filter: String | None
        host_filter: String | None
        operation: Int8
        permission_type: Int8

    filters: list[Filter]


class DeleteAclsResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class FilterResult(Struct):
        class MatchingAcl(Struct):
            error_code: Int16 = field()
            error_message: String | None = field()
            resource_type: Int8
            resource_name: String
            pattern_type: Int8 = field("1+", default=3)
            principal: String
            host: String
            operation: Int8
            permission_type: Int8

        error_code: Int16 = field()
        error_message: String | None = field()
        matching_acls: list[MatchingAcl]

    throttle_time_ms: Int32 = field()
    filter_results: list[FilterResult]
