"""GetTelemetrySubscriptions (71): which metrics a client should push (KIP-714)."""

from trilogue.wire.schema import Bool, Int8, Int16, Int32, Request, Response, String, Uuid, field

KEY, VERSIONS, FLEXIBLE = 71, "0", "0+"


class GetTelemetrySubscriptionsRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    client_instance_id: Uuid


class GetTelemetrySubscriptionsResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    throttle_time_ms: Int32 = field()
    error_code: Int16 = field()
    client_instance_id: Uuid
    subscription_id: Int32
    accepted_compression_types: list[Int8]
    push_interval_ms: Int32
    telemetry_max_bytes: Int32
    delta_temporality: Bool
    requested_metrics: list[String]
