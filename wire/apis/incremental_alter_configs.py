"""IncrementalAlterConfigs (44): change single settings of a resource."""

from trilogue.wire.schema import Bool, Int8, Int16, Int32, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 44, "0-1", "1+"


class IncrementalAlterConfigsRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Resource(Struct):
        class Config(Struct):
            name: String
            config_operation: Int8
            value: String | None

        resource_type: Int8
        resource_name: String
        configs: list[Config]

    resources: list[Resource]
    validate_only: Bool


class IncrementalAlterConfigsResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Resource(Struct):
        error_code: Int16 = field()
        error_message: String | None = field()
        resource_type: Int8
        resource_name: String

    throttle_time_ms: Int32 = field()
    responses: list[Resource]
