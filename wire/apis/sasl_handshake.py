"""SaslHandshake (17): agree on a SASL mechanism."""

from trilogue.wire.schema import Int16, Request, Response, String, field

KEY, VERSIONS, FLEXIBLE = 17, "0-1", "none"


class SaslHandshakeRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    mechanism: String


class SaslHandshakeResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    error_code: Int16 = field()
    mechanisms: list[String]
