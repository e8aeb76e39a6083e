"""PushTelemetry (72): metrics that a client pushes (KIP-714)."""

from trilogue.wire.schema import Bool, Bytes, Int8, Int16, Int32, Request, Response, Uuid, field

KEY, VERSIONS, FLEXIBLE = 72, "0", "0+"


class PushTelemetryRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    client_instance_id: Uuid
    subscription_id: Int32
    terminating: Bool
    compression_type: Int8
    metrics: Bytes


class PushTelemetryResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    throttle_time_ms: Int32 = field()
    error_code: Int16 = field()
