"""AddRaftVoter (80): add a voter to the metadata quorum."""

from trilogue.wire.schema import Bool, Int16, Int32, Request, Response, String, Struct, UInt16, Uuid, field

KEY, VERSIONS, FLEXIBLE = 80, "0-1", "0+"


class AddRaftVoterRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Listener(Struct):
        name: String
        host: String
        port: UInt16

    cluster_id: String | None
    timeout_ms: Int32
    voter_id: Int32
    voter_directory_id: Uuid
    listeners: list[Listener]
    ack_when_committed: Bool = field("1+", default=True)


class AddRaftVoterResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    throttle_time_ms: Int32 = field()
    error_code: Int16 = field()
    error_message: String | None = field()
