"""Kafka Connect, standalone: a file becomes a topic becomes a file, also over a restart of the worker."""

from pathlib import Path

import jars
import pytest

from compat_tests.connect import JARS, VERSION, running
from compat_tests.records import new_topic, read, values
from compat_tests.running import missing_tool

pytestmark = [pytest.mark.java, pytest.mark.slow]

PACKAGE = "org.apache.kafka.connect"


def worker(bootstrap: str) -> dict[str, object]:
    return {
        "bootstrap.servers": bootstrap,
        "key.converter": f"{PACKAGE}.storage.StringConverter",
        "value.converter": f"{PACKAGE}.storage.StringConverter",
        "offset.storage.file.filename": "offsets",
        "offset.flush.interval.ms": 200,
        "listeners": "http://127.0.0.1:0",
    }


def source(topic: str) -> dict[str, object]:
    return {"name": f"read-{topic}", "connector.class": "FileStreamSource", "file": "input", "topic": topic}


def sink(topic: str) -> dict[str, object]:
    return {
        "name": f"write-{topic}",
        "connector.class": "FileStreamSink",
        "tasks.max": 2,
        "file": "output",
        "topics": topic,
        "consumer.override.metadata.max.age.ms": 1000,
    }


@pytest.mark.feature(f"Kafka Connect {VERSION}", "file source and sink, standalone")
def test_a_file_goes_through_a_topic_into_a_file(bootstrap: str, tmp_path: Path) -> None:
    topic = new_topic(bootstrap, "connect")
    lines = [f"line {number}" for number in range(2000)]
    output = tmp_path / "output"

    def append(*new: str) -> None:
        with open(tmp_path / "input", "a") as file:
            file.writelines(f"{line}\n" for line in new)

    def written() -> list[str]:
        return sorted(output.read_text().split("\n")[:-1]) if output.exists() else []

    try:
        jars.classpath(JARS)
    except jars.Missing as missing:
        missing_tool(missing)
    files = {"worker": worker(bootstrap), "source": source(topic), "sink": sink(topic)}
    append(*lines[:1000])
    with running(f"{PACKAGE}.cli.ConnectStandalone", tmp_path, **files) as connect:
        connect.until("the first lines", lambda: written() == sorted(lines[:1000]))
        append(*lines[1000:1500])
        connect.until("lines added while it runs", lambda: written() == sorted(lines[:1500]))
    append(*lines[1500:])
    with running(f"{PACKAGE}.cli.ConnectStandalone", tmp_path, **files) as connect:
        connect.until("lines added while it was away", lambda: written() == sorted(lines))

    assert sorted(values(read(bootstrap, topic))) == sorted(lines)
