"""A message in one version, as a plain construct tree.

No condition is left in the tree: it can be read, printed, parsed with, and compiled.
"""

from functools import cache
from typing import Any

import construct as c

from trilogue.wire.constructs import Blob, Items, Maybe, Message, RecordBlob, Text, Uuid
from trilogue.wire.schema import Body, Declaration, Field, Kind, is_struct

FIXED = {
    Kind.INT8: c.Int8sb,
    Kind.INT16: c.Int16sb,
    Kind.UINT16: c.Int16ub,
    Kind.INT32: c.Int32sb,
    Kind.UINT32: c.Int32ub,
    Kind.INT64: c.Int64sb,
    Kind.FLOAT64: c.Float64b,
    Kind.BOOL: c.Flag,
    Kind.UUID: Uuid,
}
SIZED = {Kind.STRING: Text, Kind.BYTES: Blob, Kind.RECORDS: RecordBlob}


@cache
def tree(message: type[Body], version: int) -> Message:
    """The tree of one version; a version the message never had is an error of the caller's."""
    if version not in message.versions:
        raise ValueError(f"{message.__name__} has versions {message.versions}, not {version}")
    return branch(message, version, version in message.flexible)


def branch(struct: Declaration, version: int, flexible: bool) -> Message:
    plain, tagged = [], {}
    for spec in struct.fields.values():
        if version in spec.rule.versions:
            named = spec.name / value(spec, version, flexible)
            if spec.rule.tag is None:
                plain.append(named)
            else:
                tagged[spec.rule.tag] = named
    return Message(struct, plain, tagged if flexible else None)


def value(spec: Field, version: int, flexible: bool) -> c.Construct:
    nullable = spec.nullable_in(version)
    if spec.is_list:
        return Items(one(spec.kind, version, flexible, nullable=False), flexible, nullable)
    if nullable and is_struct(spec.kind):
        return Maybe(branch(spec.kind, version, flexible), in_tag=spec.rule.tag is not None)
    return one(spec.kind, version, flexible, nullable)


def one(kind: Any, version: int, flexible: bool, nullable: bool) -> c.Construct:
    if kind in FIXED:
        return FIXED[kind]
    if kind in SIZED:
        return SIZED[kind](flexible, nullable)
    return branch(kind, version, flexible)
