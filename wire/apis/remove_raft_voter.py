"""RemoveRaftVoter (81): remove a voter from the metadata quorum."""

from trilogue.wire.schema import Int16, Int32, Request, Response, String, Uuid, field

KEY, VERSIONS, FLEXIBLE = 81, "0", "0+"


class RemoveRaftVoterRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    cluster_id: String | None
    voter_id: Int32
    voter_directory_id: Uuid


class RemoveRaftVoterResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    throttle_time_ms: Int32 = field()
    error_code: Int16 = field()
    error_message: String | None = field()
