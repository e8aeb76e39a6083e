"""DescribeClientQuotas (48): the quotas that match a filter."""

from trilogue.wire.schema import Bool, Float64, Int8, Int16, Int32, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 48, "0-1", "1+"


class DescribeClientQuotasRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Component(Struct):
        entity_type: String
        match_type: Int8
        match: String | None

    components: list[Component]
    strict: Bool


class DescribeClientQuotasResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Entry(Struct):
        class Entity(Struct):
            entity_type: String
            entity_name: String | None

        class Value(Struct):
            key: String
            value: Float64

        entity: list[Entity]
        values: list[Value]

    throttle_time_ms: Int32 = field()
    error_code: Int16 = field()
    error_message: String | None = field()
    entries: list[Entry] | None
