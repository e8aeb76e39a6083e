"""DeleteShareGroupOffsets (92): a share group forgets how far it has read (KIP-932)."""

from trilogue.wire.schema import Int16, Int32, Request, Response, String, Struct, Uuid, field

KEY, VERSIONS, FLEXIBLE = 92, "0", "0+"


class DeleteShareGroupOffsetsRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        topic_name: String

    group_id: String
    topics: list[Topic]


class DeleteShareGroupOffsetsResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        topic_name: String
        topic_id: Uuid
        error_code: Int16 = field()
        error_message: String | None = field(default=None)

    throttle_time_ms: Int32 = field()
    error_code: Int16 = field()
    error_message: String | None = field(default=None)
    responses: list[Topic]
