"""DescribeConfigs (32): settings of topics, brokers and groups, and where each value comes from."""

from trilogue.wire.schema import Bool, Int8, Int16, Int32, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 32, "0-4", "4+"


class DescribeConfigsRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Resource(Struct):
        resource_type: Int8
        resource_name: String
        configuration_keys: list[String] | None

    resources: list[Resource]
    include_synonyms: Bool = field("1+")
    include_documentation: Bool = field("3+")


class DescribeConfigsResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Result(Struct):
        class Config(Struct):
            class Synonym(Struct):
                name: String
                value: String | None
                source: Int8

            name: String
            value: String | None
            read_only: Bool
            is_default: Bool = field("0")
            config_source: Int8 = field("1+", default=-1)
            is_sensitive: Bool
            synonyms: list[Synonym] = field("1+")
            config_type: Int8 = field("3+")
            documentation: String | None = field("3+")

        error_code: Int16 = field()
        error_message: String | None = field()
        resource_type: Int8
        resource_name: String
        configs: list[Config]

    throttle_time_ms: Int32 = field()
    results: list[Result]
