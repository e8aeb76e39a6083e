"""UnregisterController (94): forget a controller that is gone for good."""

from trilogue.wire.schema import Int16, Int32, Request, Response, String, field

KEY, VERSIONS, FLEXIBLE = 94, "0", "0+"


class UnregisterControllerRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    controller_id: Int32


class UnregisterControllerResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    throttle_time_ms: Int32 = field()
    error_code: Int16 = field()
    error_message: String | None = field()
