"""Damage records on their way to a client."""

from collections.abc import Iterator
from struct import Struct as Packed
from typing import Any

from trilogue.storage.slices import Slice
from trilogue.testing.faults.fault import Fault
from trilogue.testing.faults.shapes import NOBODY, Names, Subject, identified, present
from trilogue.wire.schema import Kind, Response, Struct

BATCH = Packed(">8xi")
"""Where a batch says how many bytes follow, in all formats."""


def damage(response: Response, version: int, names: Names, fault: Fault) -> None:
    """If there are records that it means, and its time has come."""
    found = [
        (partition, name)
        for about, partition, name in with_records(response, version, names, NOBODY)
        if fault.wanted.meets(about)
    ]
    if found and fault.is_due():
        for partition, name in found:
            setattr(partition, name, damaged(getattr(partition, name)))


def with_records(struct: Any, version: int, names: Names, above: Subject) -> Iterator[tuple[Subject, Any, str]]:
    """Every struct of an answer that has some, where it has them, and what it is about."""
    about = identified(struct, version, names, above)
    for each in present(type(struct), version):
        value = getattr(struct, each.name)
        if each.kind is Kind.RECORDS:
            if value:
                yield about, struct, each.name
        elif each.is_list:
            for element in value or ():
                if isinstance(element, Struct):
                    yield from with_records(element, version, names, about)


def damaged(records: Any) -> bytearray:
    """With one bit of the first batch turned, in its last byte: that is in its checksum, and in no length."""
    data = bytearray(records.read() if isinstance(records, Slice) else records)
    if len(data) >= BATCH.size:
        end = BATCH.size + BATCH.unpack_from(data)[0]
        data[min(end, len(data)) - 1] ^= 1
    return data
