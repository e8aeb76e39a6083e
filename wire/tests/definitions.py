"""Kafka's own JSON definitions: from its jars, or from a copy beside the project where there is no Java."""

import json
import re
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jars

from trilogue.wire.schema import Versions

Definition = dict[str, Any]

COPY = Path(__file__).resolve().parents[3] / "shared" / "kafka-messages"
COPIES = {
    "clients-4.4.0": ["clients-4.4.0"],
    "clients-3.9.1": ["clients-3.9.1"],
    "kafka-4.3.1": ["group-coordinator-4.3.1", "transaction-coordinator-4.3.1", "share-coordinator-4.3.1"],
}


@cache
def definitions(jar_set: str) -> list[Definition]:
    """Every message that a Kafka defines.  Raises `jars.Missing` where they cannot be had."""
    try:
        return [parse(text) for jar in sorted(jars.bring(jar_set).glob("*.jar")) for text in texts_in(jar)]
    except jars.Missing:
        if not COPY.is_dir():
            raise
        return [parse(path.read_text()) for folder in COPIES[jar_set] for path in (COPY / folder).glob("*.json")]


def texts_in(jar: Path) -> Iterator[str]:
    with zipfile.ZipFile(jar) as content:
        for file in content.namelist():
            if re.fullmatch(r"common/message/\w+\.json", file):
                yield content.read(file).decode()


def parse(text: str) -> Definition:
    it: Definition = json.loads(re.sub(r"(?m)^\s*//.*$", "", text))
    return it


def versions(definition: Definition) -> range:
    return each(Versions.parse(definition["validVersions"]))


def each(run: Versions) -> range:
    return range(run.first, run.last + 1)
