"""What Kafka's own Java classes write, we parse and build again, byte for byte.

`java/Oracle.java` fills every message of a Kafka with random values, in every version; here its lines go
through our codecs.  A pair is a message in one version: ("FetchRequest", 12).

What we must have is said by the definitions in Kafka's jars: the APIs that a broker's listener takes in the
newest Kafka, and all coordinator records.  (Of headers and other data we choose; what we have is compared.)
An older Kafka has these APIs too, some under another name, so their keys tell; what else it has is for
controllers, or for brokers under ZooKeeper.  A version that was unstable in an older Kafka may have changed
since, so only the newest is asked about it, if that has it still.
"""

import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from trilogue.wire.catalog import everything
from trilogue.wire.codec import build, parse
from trilogue.wire.errors import MalformedMessage
from trilogue.wire.tests.definitions import Definition, each, versions
from trilogue.wire.tests.definitions import definitions as kafkas_definitions

pytestmark = pytest.mark.java

ORACLE = Path(__file__).parent / "java" / "Oracle.java"
SEED = 1
SAMPLES = 20

NEWEST = "clients-4.4.0"
KAFKAS = [NEWEST, "clients-3.9.1", "kafka-4.3.1"]  # the last for its coordinators: clients lack their records

Java = Callable[..., list[str]]
Definitions = dict[str, list[Definition]]
Pair = tuple[str, int]


@pytest.mark.parametrize("kafka", KAFKAS)
def test_what_kafka_writes_is_parsed_and_built_again(
    kafka: str, java: Java, definitions: Definitions, capsys: pytest.CaptureFixture[str]
):
    ours = {message.__name__: message for message in everything()}
    wanted = pairs_wanted(definitions, kafka)
    heard = set()
    troubles = defaultdict(list)

    for kafkas_pair, data in samples(java, kafka):
        if kafkas_pair in wanted:
            heard.add(kafkas_pair)
            name, version = wanted[kafkas_pair]
            troubles[name, version] += trouble_with(ours.get(name), version, data)

    with capsys.disabled():
        print(f"\n{kafka}: {len(heard)} of {len(wanted)} pairs compared, {SAMPLES} samples each", end=" ")
        if left := pairs_left_to_the_newest(definitions, kafka):
            print(f"\n  unstable there, left to {NEWEST}: {listed(left)}", end=" ")
    assert heard == wanted.keys(), f"the oracle is silent about {listed(wanted.keys() - heard)}"
    if any(troubles.values()):
        pytest.fail(f"{kafka} and we differ\n{report(troubles)}", pytrace=False)


def test_whatever_we_have_some_kafka_has(definitions: Definitions):
    wanted = {pair for kafka in KAFKAS for pair in pairs_wanted(definitions, kafka).values()}

    assert listed(pairs_of_ours() - wanted) == ""


def samples(java: Java, kafka: str) -> Iterator[tuple[Pair, bytes]]:
    # Run from its source, so compiled for each Kafka anew: they do not agree on where some classes are.
    command = java(kafka, str(ORACLE), str(SEED), str(SAMPLES))
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        name, version, data = line.split(" ")
        yield (name, int(version)), bytes.fromhex(data)


def trouble_with(message: type | None, version: int, data: bytes) -> list[str]:
    if message is None or version not in message.versions:
        return ["we do not have it"]
    try:
        again = build(parse(message, version, data), version)
    except MalformedMessage as error:
        return [f"refused: {error}"]
    if again == data:
        return []
    at = next(at for at in range(len(data) + 1) if data[at : at + 1] != again[at : at + 1])
    was, became = (part[at : at + 8].hex() or "the end" for part in (data, again))
    return [f"at byte {at}, {was} became {became} ({len(data)} bytes became {len(again)})"]


def report(troubles: dict[Pair, list[str]]) -> str:
    return "\n".join(
        f"{listed([pair])}: {len(found)} of {SAMPLES} samples, first: {found[0]}"
        for pair, found in sorted(troubles.items())
        if found
    )


def listed(pairs: Iterable[Pair]) -> str:
    return ", ".join(f"{name} v{version}" for name, version in sorted(pairs))


def pairs_of_ours() -> set[Pair]:
    return {(message.__name__, version) for message in everything() for version in each(message.versions)}


def pairs_wanted(definitions: Definitions, kafka: str) -> dict[Pair, Pair]:
    """What this Kafka has and we must have: from its pair to ours."""
    names = names_of_broker_apis(definitions[NEWEST])
    left = pairs_left_to_the_newest(definitions, kafka)
    ours = pairs_of_ours()
    wanted = {}
    for definition in definitions[kafka]:
        kind, name = definition["type"], definition["name"]
        for version in versions(definition):
            if kind in ("request", "response"):
                our_name = names.get((kind, definition["apiKey"]))
                if our_name and (name, version) not in left:
                    wanted[name, version] = our_name, version
            elif kind.startswith("coordinator-") or (name, version) in ours:
                wanted[name, version] = name, version
    return wanted


def pairs_left_to_the_newest(definitions: Definitions, kafka: str) -> set[Pair]:
    """Unstable in this Kafka, and still in the newest.  The mark on a request is for its response too."""
    if kafka == NEWEST:
        return set()
    unstable = {api["apiKey"] for api in definitions[kafka] if api.get("latestVersionUnstable")}
    return {
        (api["name"], max(versions(api)))
        for api in definitions[kafka]
        if api["type"] in ("request", "response") and api["apiKey"] in unstable
    } & {(api["name"], version) for api in definitions[NEWEST] for version in versions(api)}


def names_of_broker_apis(newest: list[Definition]) -> dict[tuple[str, int], str]:
    """By type and key.  Kafka gives the listeners with the request."""
    keys = {api["apiKey"] for api in newest if "broker" in api.get("listeners", [])}
    return {
        (api["type"], api["apiKey"]): api["name"]
        for api in newest
        if api["type"] in ("request", "response") and api["apiKey"] in keys
    }


@pytest.fixture(scope="module")
def definitions() -> Definitions:
    return {kafka: kafkas_definitions(kafka) for kafka in KAFKAS}
