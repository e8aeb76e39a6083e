"""Coordinators' records as they stand in their topics: a key behind its number, a value behind its version."""

import struct
from collections.abc import Iterable
from functools import cache
from importlib import import_module

from trilogue.broker.machines.effects import Put
from trilogue.broker.names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from trilogue.wire.codec import build, parse
from trilogue.wire.errors import MalformedMessage
from trilogue.wire.records import Record
from trilogue.wire.schema import Key, Value

NUMBER = struct.Struct(">h")

MODULES = {
    OFFSETS_TOPIC: ("offsets", "consumer_groups", "share_groups", "streams_groups"),
    TRANSACTIONS_TOPIC: ("transactions",),
}


@cache
def kinds(topic: str) -> dict[int, tuple[type[Key], type[Value]]]:
    """What may be in a topic, by number."""
    keys: dict[int, type[Key]] = {}
    values: dict[int, type[Value]] = {}
    for name in MODULES[topic]:
        for it in vars(import_module(f"trilogue.wire.internal.{name}")).values():
            if isinstance(it, type) and it not in (Key, Value):
                if issubclass(it, Key):
                    keys[it.api_key] = it
                elif issubclass(it, Value):
                    values[it.api_key] = it
    return {number: (key, values[number]) for number, key in keys.items()}


def to_record(put: Put, offset: int, timestamp_ms: int) -> Record:
    key = NUMBER.pack(put.key.api_key) + build(put.key, 0)
    value = None if put.value is None else NUMBER.pack(put.version) + build(put.value, put.version)
    return Record(offset, timestamp_ms, key, value)


def from_record(topic: str, record: Record) -> Put | None:
    """None for a kind that only newer brokers know.  Raises MalformedMessage for what is none at all."""
    if record.key is None or len(record.key) < NUMBER.size:
        raise MalformedMessage(f"a record without a key at {record.offset}", topic)
    (number,) = NUMBER.unpack_from(record.key)
    if number not in kinds(topic):
        return None
    key_class, value_class = kinds(topic)[number]
    key = parse(key_class, 0, bytes(record.key[NUMBER.size :]))
    if record.value is None:
        return Put(key, None)
    if len(record.value) < NUMBER.size:
        raise MalformedMessage(f"a value of {len(record.value)} bytes at {record.offset}", topic)
    (version,) = NUMBER.unpack_from(record.value)
    if version not in value_class.versions:
        return None
    return Put(key, parse(value_class, version, bytes(record.value[NUMBER.size :])), version)


def to_records(puts: Iterable[Put], timestamp_ms: int) -> list[Record]:
    return [to_record(put, number, timestamp_ms) for number, put in enumerate(puts)]
