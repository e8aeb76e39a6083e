"""Our schemas are Kafka's schemas: every field of every version of every message.

Kafka describes each message in a JSON file.  Both descriptions are unrolled into what one version puts on
the wire, and compared line by line.  A version that Kafka 4 has removed is compared with Kafka 3.9.
"""

import re
from copy import deepcopy

import jars
import pytest

from trilogue.wire.catalog import everything
from trilogue.wire.schema import Body, Declaration, Kind, Versions
from trilogue.wire.tests.definitions import Definition, definitions, each, versions

KAFKAS = ["clients-4.4.0", "kafka-4.3.1", "clients-3.9.1"]  # the first that has a version is asked about it

TYPES = {
    "int8": Kind.INT8,
    "int16": Kind.INT16,
    "uint16": Kind.UINT16,
    "uint32": Kind.UINT32,
    "int32": Kind.INT32,
    "int64": Kind.INT64,
    "float64": Kind.FLOAT64,
    "bool": Kind.BOOL,
    "uuid": Kind.UUID,
    "string": Kind.STRING,
    "bytes": Kind.BYTES,
    "records": Kind.RECORDS,
}


@pytest.fixture(scope="module")
def kafka() -> dict[tuple[str, int], Definition]:
    """The definition of every (message, version)."""
    try:
        found = [it for name in KAFKAS for it in definitions(name)]
    except jars.Missing as missing:
        pytest.skip(f"needs Kafka's definitions: {missing}")
    by_pair: dict[tuple[str, int], Definition] = {}
    for definition in found:
        for version in versions(definition):
            by_pair.setdefault((definition["name"], version), definition)
    return by_pair


def test_every_field_of_every_version_is_kafkas(kafka, capsys):
    pairs = [(message, version) for message in everything() for version in each(message.versions)]
    problems = [
        problem
        for message, version in pairs
        for problem in differences(message, version, kafka_has(kafka, message, version))
    ]

    assert problems == []
    with capsys.disabled():
        print(f"\nevery field of {len(pairs)} (message, version) pairs is Kafka's", end=" ")


def test_every_message_of_a_brokers_listener_is_here(kafka):
    """Keys that Kafka 4.4 offers on it, and the coordinators' records: all versions, of 3.9 as well."""
    ours = {(message.__name__, version) for message in everything() for version in each(message.versions)}
    keys = {
        it["apiKey"] for it in kafka.values() if "broker" in it.get("listeners", ()) and it in definitions(KAFKAS[0])
    }
    theirs = {
        (name, version)
        for (name, version), it in kafka.items()
        if it["type"].startswith("coordinator-") or (it["type"] in ("request", "response") and it["apiKey"] in keys)
    }
    renamed = {pair for pair in theirs if pair[0].startswith("ListClientMetricsResources")}  # as 3.9 called it

    assert theirs - renamed - ours == set()


def test_a_wrong_version_range_is_found_and_named(kafka):
    name = "FetchRequest"
    wrong = deepcopy(kafka[name, 12])
    (topics,) = (field for field in wrong["fields"] if field["name"] == "Topics")
    (epoch,) = (field for field in topics["fields"][2]["fields"] if field["name"] == "CurrentLeaderEpoch")
    epoch["versions"] = "13+"
    (message,) = (it for it in everything() if it.__name__ == name)

    assert differences(message, 12, wrong) == [
        "FetchRequest v12: topics.partitions: current_leader_epoch is ours alone",
    ]


def kafka_has(kafka: dict[tuple[str, int], Definition], message: type[Body], version: int) -> Definition:
    assert (message.__name__, version) in kafka, f"no Kafka has {message.__name__} v{version}"
    return kafka[message.__name__, version]


def differences(message: type[Body], version: int, theirs: Definition) -> list[str]:
    title = f"{message.__name__} v{version}"
    found = []
    if (version in message.flexible) != (version in Versions.parse(theirs["flexibleVersions"])):
        found.append(f"{title}: flexible here, not there, or the other way round")
    if "apiKey" in theirs and message.api_key != theirs["apiKey"]:
        found.append(f"{title}: key {message.api_key} is {theirs['apiKey']} in Kafka")
    mine = unroll(message, version)
    wanted = kafkas_unrolled(theirs["fields"], version, {it["name"]: it for it in theirs.get("commonStructs", ())})
    return found + compare(title, mine, wanted)


def compare(title: str, mine: dict, theirs: dict) -> list[str]:
    found = [f"{title}: {name} is ours alone" for name in mine if name not in theirs]
    found += [f"{title}: {name} is missing" for name in theirs if name not in mine]
    if not found and list(mine) != list(theirs):
        found.append(f"{title}: the order is {list(mine)}, not {list(theirs)}")
    for name in mine.keys() & theirs.keys():
        (our_facts, our_fields), (their_facts, their_fields) = mine[name], theirs[name]
        if our_facts != their_facts:
            found.append(f"{title}: {name} is {our_facts}, in Kafka {their_facts}")
        separator = "." if ": " in title else ": "
        found += compare(f"{title}{separator}{name}", our_fields, their_fields)
    return found


def unroll(struct: Declaration, version: int) -> dict:
    """Field by field what one version of ours puts on the wire: facts, and the fields inside."""
    unrolled = {}
    for spec in struct.fields.values():
        if version in spec.rule.versions:
            inner = {} if isinstance(spec.kind, Kind) else unroll(spec.kind, version)
            kind = spec.kind if isinstance(spec.kind, Kind) else "struct"
            default = None if spec.is_list and spec.make_default() == [] else spec.make_default()
            facts = {
                "kind": kind,
                "list": spec.is_list,
                "nullable": spec.nullable_in(version),
                "tag": spec.rule.tag,
                "default": "null" if spec.rule.default is None else shown(default, kind, spec.is_list),
            }
            unrolled[spec.name] = facts, inner
    return unrolled


def kafkas_unrolled(fields: list[Definition], version: int, common: dict[str, Definition]) -> dict:
    """The same, of a definition of Kafka's."""
    unrolled = {}
    for field in fields:
        if version not in Versions.parse(field.get("versions", field.get("taggedVersions"))):
            continue
        name = field["type"].removeprefix("[]")
        inside = field.get("fields") or (common[name]["fields"] if name in common else [])
        kind = TYPES.get(name, "struct")
        is_list = field["type"].startswith("[]")
        facts = {
            "kind": kind,
            "list": is_list,
            "nullable": version in Versions.parse(field.get("nullableVersions", "")),
            "tag": field.get("tag"),
            # A null without quotes says nothing to Kafka's generator: the default is then the type's zero.
            "default": kafkas_default(field.get("default"), kind, is_list),
        }
        unrolled[snake(field["name"])] = facts, kafkas_unrolled(inside, version, common)
    return unrolled


def kafkas_default(said: object, kind: object, is_list: bool) -> str:
    if said == "null" or (said is None and kind is Kind.RECORDS):
        return "null"
    if is_list or kind == "struct":
        return "zero"
    if kind is Kind.BOOL:
        return str(said).lower() if said is not None else "false"
    if kind in (Kind.STRING, Kind.BYTES, Kind.UUID):
        return str(said or "")
    return str(float(said or 0)) if kind is Kind.FLOAT64 else str(int(str(said or 0), 0))


def shown(default: object, kind: object, is_list: bool) -> str:
    if is_list or kind == "struct":
        return "zero"
    if kind is Kind.RECORDS and default is None:
        return "null"
    if kind is Kind.BOOL:
        return str(default).lower()
    if kind in (Kind.BYTES, Kind.UUID):
        assert not any(default), "no default but nothing is known for these"
        return ""
    return str(default)


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
