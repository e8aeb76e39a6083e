"""DescribeGroups (15): state, members and assignments of classic groups."""

from trilogue.wire.schema import Bool, Bytes, Int16, Int32, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 15, "0-6", "5+"


class DescribeGroupsRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    groups: list[String]
    include_authorized_operations: Bool = field("3+")


class DescribeGroupsResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Group(Struct):
        class Member(Struct):
            member_id: String
            group_instance_id: String | None = field("4+", default=None)
            client_id: String
            client_host: String
            member_metadata: Bytes
            member_assignment: Bytes

        error_code: Int16 = field()
        error_message: String | None = field("6+", default=None)
        group_id: String
        group_state: String
        protocol_type: String
        protocol_data: String
        members: list[Member]
        authorized_operations: Int32 = field("3+", default=-(2**31))

    throttle_time_ms: Int32 = field("1+")
    groups: list[Group]
