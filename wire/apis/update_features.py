"""UpdateFeatures (57): raise or lower the cluster's finalized features."""

from trilogue.wire.schema import Bool, Int8, Int16, Int32, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 57, "0-2", "0+"


class UpdateFeaturesRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class FeatureUpdate(Struct):
        feature: String
        max_version_level: Int16
        allow_downgrade: Bool = field("0")
        upgrade_type: Int8 = field("1+", default=1)

    timeout_ms: Int32 = field(default=60000)
    feature_updates: list[FeatureUpdate]
    validate_only: Bool = field("1+")


class UpdateFeaturesResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Result(Struct):
        feature: String
        error_code: Int16 = field()
        error_message: String | None = field()

    throttle_time_ms: Int32 = field()
    error_code: Int16 = field()
    error_message: String | None = field()
    results: list[Result] = field("0-1")
