"""LeaveGroup (13): members leave a classic group, by themselves or put out by an administrator."""

from trilogue.wire.schema import Int16, Int32, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 13, "0-5", "4+"


class LeaveGroupRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Member(Struct):
        member_id: String
        group_instance_id: String | None = field(default=None)
        reason: String | None = field("5+", default=None)

    group_id: String
    member_id: String = field("0-2")
    members: list[Member] = field("3+")


class LeaveGroupResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Member(Struct):
        member_id: String
        group_instance_id: String | None
        error_code: Int16 = field()

    throttle_time_ms: Int32 = field("1+")
    error_code: Int16 = field()
    members: list[Member] = field("3+")
