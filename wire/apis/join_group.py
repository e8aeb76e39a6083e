"""JoinGroup (11): become a member of a classic group, or stay one through a rebalance."""

from trilogue.wire.schema import Bool, Bytes, Int16, Int32, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 11, "0-9", "6+"


class JoinGroupRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Protocol(Struct):
        name: String
        metadata: Bytes

    group_id: String
    session_timeout_ms: Int32
    rebalance_timeout_ms: Int32 = field("1+", default=-1)
    member_id: String
    group_instance_id: String | None = field("5+", default=None)
    protocol_type: String
    protocols: list[Protocol]
    reason: String | None = field("8+", default=None)


class JoinGroupResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Member(Struct):
        member_id: String
        group_instance_id: String | None = field("5+", default=None)
        metadata: Bytes

    throttle_time_ms: Int32 = field("2+")
    error_code: Int16 = field()
    generation_id: Int32 = field(default=-1)
    protocol_type: String | None = field("7+", default=None)
    protocol_name: String | None = field(nullable="7+")
    leader: String
    skip_assignment: Bool = field("9+")
    member_id: String
    members: list[Member]
