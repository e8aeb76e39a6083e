"""DescribeAcls (29): the access rules that match a filter."""

from trilogue.wire.schema import Int8, Int16, Int32, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 29, "0-3", "2+"


class DescribeAclsRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    resource_type_filter: Int8
    resource_name_filter: String | None
    pattern_type_filter: Int8 = field("1+", default=3)
    principal_filter: String | None
    host_filter: String | None
    operation: Int8
    permission_type: Int8


class DescribeAclsResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Resource(Struct):
        class Acl(Struct):
            principal: String
            host: String
            operation: Int8
            permission_type: Int8

        resource_type: Int8
        resource_name: String
        pattern_type: Int8 = field("1+", default=3)
        acls: list[Acl]

    throttle_time_ms: Int32 = field()
    error_code: Int16 = field()
    error_message: String | None = field()
    resources: list[Resource]
