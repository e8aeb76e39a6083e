"""AlterClientQuotas (49): set and remove quotas."""

from trilogue.wire.schema import Bool, Float64, Int16, Int32, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 49, "0-1", "1+"


class AlterClientQuotasRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Entry(Struct):
        class Entity(Struct):
            entity_type: String
            entity_name: String | None

        class Op(Struct):
            key: String
            value: Float64
            remove: Bool

        entity: list[Entity]
        ops: list[Op]

    entries: list[Entry]
    validate_only: Bool


class AlterClientQuotasResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Entry(Struct):
        class Entity(Struct):
            entity_type: String
            entity_name: String | None

        error_code: Int16 = field()
        error_message: String | None = field()
        entity: list[Entity]

    throttle_time_ms: Int32 = field()
    entries: list[Entry]
