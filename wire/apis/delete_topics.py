"""DeleteTopics (20): remove topics, by name or by id."""

from trilogue.wire.schema import Int16, Int32, Request, Response, String, Struct, Uuid, field

KEY, VERSIONS, FLEXIBLE = 20, "0-6", "4+"


class DeleteTopicsRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        name: String | None = field(default=None)
        topic_id: Uuid

    topics: list[Topic] = field("6+")
    topic_names: list[String] = field("0-5")
    timeout_ms: Int32


class DeleteTopicsResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        name: String | None = field(nullable="6+")
        topic_id: Uuid = field("6+")
        error_code: Int16 = field()
        error_message: String | None = field("5+", default=None)

    throttle_time_ms: Int32 = field("1+")
    responses: list[Topic]
