"""FindCoordinator (10): which broker looks after a group, a transactional id or a share partition."""

from trilogue.wire.schema import Int8, Int16, Int32, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 10, "0-6", "3+"


class FindCoordinatorRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    key: String = field("0-3")
    key_type: Int8 = field("1+")
    coordinator_keys: list[String] = field("4+")


class FindCoordinatorResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Coordinator(Struct):
        key: String
        node_id: Int32
        host: String
        port: Int32
        error_code: Int16 = field()
        error_message: String | None = field()

    throttle_time_ms: Int32 = field("1+")
    error_code: Int16 = field("0-3")
    error_message: String | None = field("1-3")
    node_id: Int32 = field("0-3")
    host: String = field("0-3")
    port: Int32 = field("0-3")
    coordinators: list[Coordinator] = field("4+")
