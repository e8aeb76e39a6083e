"""Spark, once for all tests of this folder, and brokers for it to read from."""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apache
import jars
import pytest

from trilogue.client.blocking import Blocking, run
from trilogue.client.client import Client
from trilogue.client.world import Address
from trilogue.pipeline.examples.sending import NewTopic, Outgoing, create, send
from trilogue.pipeline.reading import parse
from trilogue.pipeline.spark import session
from trilogue.testing import Broker

os.environ["TZ"] = "UTC"  # Spark hands out times in the zone that Python has
time.tzset()

QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
"""Tests are over before the better compiler would have paid."""

EVERYTHING = {
    "pipeline": {"name": "tests", "checkpoint": "none"},
    "source": {"topics": ["none"]},
    "decode": {"format": "avro", "schema": "{}"},
    "sinks": [{"type": "delta", "path": "none"}],
    "spark": {"master": "local[2]", "conf": {"spark.driver.extraJavaOptions": QUICK_JVM}},
}
"""A pipeline that needs all connectors: a JVM is started with its jars or never has them."""


@pytest.fixture(scope="session")
def has_java() -> None:
    if shutil.which("java") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("CI needs Java: `java` is not installed", pytrace=False)
        pytest.skip("needs Java: `java` is not installed")


@pytest.fixture(scope="session")
def spark(has_java):
    found = session(parse(EVERYTHING, Path("tests.toml")))
    yield found
    found.stop()


class Topics:
    """A broker, by what tests do with it."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    @contextmanager
    def client(self) -> Iterator[Client]:
        client = Client([Address.parse(self.bootstrap)], Blocking())
        try:
            yield client
        finally:
            client.close()

    def create(self, name: str, partitions: int = 1) -> None:
        with self.client() as client:
            run(create(client, name, NewTopic(partitions)))

    def fill(self, topics: dict[str, NewTopic], records: list[Outgoing]) -> None:
        with self.client() as client:
            run(send(client, topics, records))

    def put(self, topic: str, values: list[str | None], *, partitions: int = 1, key: str | None = None) -> None:
        said = [Outgoing(topic, key, value, 1_700_000_000_000 + i) for i, value in enumerate(values)]
        self.fill({topic: NewTopic(partitions)}, said)


@pytest.fixture(scope="session")
def ours() -> Iterator[Topics]:
    with Broker() as broker:
        yield Topics(broker.bootstrap)


@pytest.fixture(scope="session")
def kafka(tmp_path_factory, has_java) -> Iterator[Topics]:
    try:
        with apache.Kafka(tmp_path_factory.mktemp("kafka")) as broker:
            yield Topics(broker.bootstrap)
    except jars.Missing as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI needs Java: {missing}", pytrace=False)
        pytest.skip(f"needs Java: {missing}")
