"""CreatePartitions (37): give topics more partitions."""

from trilogue.wire.schema import Bool, Int16, Int32, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 37, "0-3", "2+"


class CreatePartitionsRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Assignment(Struct):
            broker_ids: list[Int32]

        name: String
        count: Int32
        assignments: list[Assignment] | None

    topics: list[Topic]
    timeout_ms: Int32
    validate_only: Bool


class CreatePartitionsResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        name: String
        error_code: Int16 = field()
        error_message: String | None = field(default=None)

    throttle_time_ms: Int32 = field()
    results: list[Topic]
