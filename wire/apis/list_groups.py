"""ListGroups (16): the groups that this broker looks after."""

from trilogue.wire.schema import Int16, Int32, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 16, "0-5", "3+"


class ListGroupsRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    states_filter: list[String] = field("4+")
    types_filter: list[String] = field("5+")


class ListGroupsResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Group(Struct):
        group_id: String
        protocol_type: String
        group_state: String = field("4+")
        group_type: String = field("5+")

    throttle_time_ms: Int32 = field("1+")
    error_code: Int16 = field()
    groups: list[Group]
