"""SyncGroup (14): the leader of a classic group hands in the assignment; everybody hears their part."""

from trilogue.wire.schema import Bytes, Int16, Int32, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 14, "0-5", "4+"


class SyncGroupRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Assignment(Struct):
        member_id: String
        assignment: Bytes

    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: String | None = field("3+", default=None)
    protocol_type: String | None = field("5+", default=None)
    protocol_name: String | None = field("5+", default=None)
    assignments: list[Assignment]


class SyncGroupResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    throttle_time_ms: Int32 = field("1+")
    error_code: Int16 = field()
    protocol_type: String | None = field("5+", default=None)
    protocol_name: String | None = field("5+", default=None)
    assignment: Bytes
