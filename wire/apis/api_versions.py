"""ApiVersions (18): what this broker speaks.  The first request of every client."""

from trilogue.wire.schema import Bool, Int16, Int32, Int64, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 18, "0-5", "3+"


class ApiVersionsRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    client_software_name: String = field("3+")
    client_software_version: String = field("3+")
    cluster_id: String | None = field("5+", default=None)
    node_id: Int32 = field("5+", default=-1)


class ApiVersionsResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class ApiVersion(Struct):
        api_key: Int16
        min_version: Int16
        max_version: Int16

    class SupportedFeature(Struct):
        name: String
        min_version: Int16
        max_version: Int16

    class FinalizedFeature(Struct):
        name: String
        max_version_level: Int16
        min_version_level: Int16

    error_code: Int16 = field()
    api_keys: list[ApiVersion]
    throttle_time_ms: Int32 = field("1+")
    supported_features: list[SupportedFeature] = field("3+", tag=0)
    finalized_features_epoch: Int64 = field("3+", default=-1, tag=1)
    finalized_features: list[FinalizedFeature] = field("3+", tag=2)
    zk_migration_ready: Bool = field("3+", tag=3)
