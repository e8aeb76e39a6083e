"""AlterConfigs (33): replace all the settings of a resource.  Old clients; see IncrementalAlterConfigs."""

from trilogue.wire.schema import Bool, Int8, Int16, Int32, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 33, "0-2", "2+"


class AlterConfigsRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Resource(Struct):
        class Config(Struct):
            name: String
            value: String | None

        resource_type: Int8
        resource_name: String
        configs: list[Config]

    resources: list[Resource]
    validate_only: Bool


class AlterConfigsResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Resource(Struct):
        error_code: Int16 = field()
        error_message: String | None = field()
        resource_type: Int8
        resource_name: String

    throttle_time_ms: Int32 = field()
    responses: list[Resource]
