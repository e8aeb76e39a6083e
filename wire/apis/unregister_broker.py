"""UnregisterBroker (64): forget a broker that is gone for good."""

from trilogue.wire.schema import Int16, Int32, Request, Response, String, field

KEY, VERSIONS, FLEXIBLE = 64, "0", "0+"


class UnregisterBrokerRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    broker_id: Int32


class UnregisterBrokerResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    throttle_time_ms: Int32 = field()
    error_code: Int16 = field()
    error_message: String | None = field()
