"""An answer as plain JSON: its fields in one version, ids by what they are ids of, records taken apart.

What may differ is replaced here, so that whatever is left must be equal.
"""

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from compat_tests.differential.may_differ import FIELDS, UNORDERED
from trilogue.wire.records import batches
from trilogue.wire.schema import ZERO_UUID, Field, Kind, Response, Struct

LONG = 64
"""Longer values of records are told by their size and their ends."""

Labels = Mapping[bytes, str]


def plain(answer: Response, version: int, labels: Labels) -> dict[str, Any]:
    return struct(answer, version, labels, type(answer).__name__)


def struct(it: Struct, version: int, labels: Labels, name: str) -> dict[str, Any]:
    return {
        field: value(getattr(it, field), spec, version, labels, name)
        for field, spec in type(it).fields.items()
        if version in spec.rule.versions
    }


def value(it: Any, spec: Field, version: int, labels: Labels, name: str) -> Any:
    if spec.is_list and it is not None:
        told: Any = [single(each, spec, version, labels, name) for each in it]
        if f"{name}.{spec.name}" in UNORDERED:
            told.sort(key=repr)
    else:
        told = None if it is None and not spec.kind is Kind.RECORDS else single(it, spec, version, labels, name)
    rule = FIELDS.get(f"{name}.{spec.name}") or FIELDS.get(spec.name)
    return rule[0](told) if rule else told


def single(it: Any, spec: Field, version: int, labels: Labels, name: str) -> Any:
    if isinstance(it, Struct):
        return struct(it, version, labels, name)
    if spec.kind is Kind.UUID:
        return "zero" if it == ZERO_UUID else labels.get(bytes(it), "unknown id")
    if spec.kind is Kind.RECORDS:
        return None if it is None else record_batches(bytes(it))
    if isinstance(it, bytes | memoryview):
        return b64encode(it).decode()
    return it


def record_batches(raw: bytes) -> list[dict[str, Any]] | str:
    return [
        {
            "offset": batch.header.base_offset,
            "size": batch.header.size,
            "leader epoch": batch.header.partition_leader_epoch,
            "attributes": batch.header.attributes,
            "times": "*"
            if batch.header.log_append_time
            else [batch.header.base_timestamp, batch.header.max_timestamp],
            "producer": [batch.header.producer_id, batch.header.producer_epoch, batch.header.base_sequence],
            "records": [
                [each.offset, shortened(each.key), shortened(each.value), len(each.headers)]
                for each in batch.records()
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
    return f"{len(raw)} bytes: {raw[:8]!r} ... {raw[-8:]!r}"
