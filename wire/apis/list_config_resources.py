"""ListConfigResources (74): the resources that have settings of their own."""

from trilogue.wire.schema import Int8, Int16, Int32, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 74, "0-1", "0+"


class ListConfigResourcesRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    resource_types: list[Int8] = field("1+")


class ListConfigResourcesResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class ConfigResource(Struct):
        resource_name: String
        resource_type: Int8 = field("1+", default=16)

    throttle_time_ms: Int32 = field()
    error_code: Int16 = field()
    config_resources: list[ConfigResource]
