"""CreateTopics (19): make topics."""

from trilogue.wire.schema import Bool, Int8, Int16, Int32, Request, Response, String, Struct, Uuid, field

KEY, VERSIONS, FLEXIBLE = 19, "0-7", "5+"


class CreateTopicsRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Assignment(Struct):
            partition_index: Int32
            broker_ids: list[Int32]

        class Config(Struct):
            name: String
            value: String | None

        name: String
        num_partitions: Int32
        replication_factor: Int16
        assignments: list[Assignment]
        configs: list[Config]

    topics: list[Topic]
    timeout_ms: Int32 = field(default=60000)
    validate_only: Bool = field("1+")


class CreateTopicsResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Config(Struct):
            name: String
            value: String | None
            read_only: Bool
            config_source: Int8 = field(default=-1)
            is_sensitive: Bool

        name: String
        topic_id: Uuid = field("7+")
        error_code: Int16 = field()
        error_message: String | None = field("1+")
        topic_config_error_code: Int16 = field("5+", tag=0)
        num_partitions: Int32 = field("5+", default=-1)
        replication_factor: Int16 = field("5+", default=-1)
        configs: list[Config] | None = field("5+")

    throttle_time_ms: Int32 = field("2+")
    topics: list[Topic]
