"""An answer as plain JSON: its fields in one version, ids by what they are ids of, records taken apart.

What may differ is replaced here, so that whatever is left must be equal.
"""

from base64 import b64encode
from collections.abc import Mapping
from typing import Any, NamedTuple

from compat_tests.differential.may_differ import FIELDS, UNORDERED
from trilogue.wire.records import batches
from trilogue.wire.schema import ZERO_UUID, Field, Kind, Response, Struct

LONG = 64
"""Longer values of records are told by their size and their ends."""


class Teller(NamedTuple):
    """Tells answers of one kind in one version."""

    response: str
    version: int
    labels: Mapping[bytes, str]
    """What ids are called."""
    prefix: str
    """What the names of this scenario in this version begin with.  It is left out, so that versions tell the same."""

    def struct(self, it: Struct) -> dict[str, Any]:
        return {
            name: self.field(getattr(it, name), spec)
            for name, spec in type(it).fields.items()
            if self.version in spec.rule.versions
        }

    def field(self, it: Any, spec: Field) -> Any:
        if it is None:
            told = None
        elif spec.is_list:
            told = [self.value(each, spec) for each in it]
            if f"{self.response}.{spec.name}" in UNORDERED:
                told.sort(key=repr)
        else:
            told = self.value(it, spec)
        rule = FIELDS.get(f"{self.response}.{spec.name}") or FIELDS.get(spec.name)
        return rule[0](told) if rule else told

    def value(self, it: Any, spec: Field) -> Any:
        if isinstance(it, Struct):
            return self.struct(it)
        if spec.kind is Kind.UUID:
            return "zero" if it == ZERO_UUID else self.labels.get(bytes(it), "unknown id").replace(self.prefix, "")
        if spec.kind is Kind.RECORDS:
            return record_batches(bytes(it))
        if isinstance(it, bytes | memoryview):
            return b64encode(it).decode()
        if isinstance(it, str):
            return shortened(it.replace(self.prefix, "").encode())
        return it


def plain(answer: Response, version: int, labels: Mapping[bytes, str], prefix: str) -> dict[str, Any]:
    return Teller(type(answer).__name__, version, labels, prefix).struct(answer)


def record_batches(raw: bytes) -> list[dict[str, Any]]:
    return [
        {
            "offset": batch.header.base_offset,
            "size": batch.header.size,
            "leader epoch": batch.header.partition_leader_epoch,
            "attributes": batch.header.attributes,
            "times": "*" if batch.header.log_append_time else [batch.header.base_timestamp, batch.header.max_timestamp],
            "producer": [batch.header.producer_id, batch.header.producer_epoch, batch.header.base_sequence],
            "records": [
                [each.offset, shortened(each.key), shortened(each.value), len(each.headers)] for each in batch.records()
            ],
        }
        for batch in batches(raw, partial_ok=True)
    ]


def shortened(it: Any) -> str | None:
    if it is None:
        return None
    raw = bytes(it)
    if len(raw) <= LONG:
        return raw.decode("utf-8", "backslashreplace")
    return f"{len(raw)} bytes: {raw[:8].decode('latin1')} ... {raw[-8:].decode('latin1')}"
