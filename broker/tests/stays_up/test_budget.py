"""One client cannot stop the others: whatever it asks for, the loop goes on turning."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from trilogue.broker.tests.stays_up.process import Client, Process, process
from trilogue.wire.apis.describe_configs import DescribeConfigsRequest
from trilogue.wire.apis.fetch import FetchRequest, FetchResponse
from trilogue.wire.apis.metadata import MetadataRequest, MetadataResponse
from trilogue.wire.frame import write_request
from trilogue.wire.schema import Request

FAIR_SECONDS = 1.0
"""Generous: on a machine that does much else a client may wait for others than us.  An attack's seconds are more."""

FAIR_PART = 0.25
"""Of an attack that takes so much longer there.  Whoever cannot be served beside it waits for all of it."""


class Waited(NamedTuple):
    longest: float
    attack: float
    """How long that took."""

    @property
    def fair(self) -> bool:
        return self.longest < max(FAIR_SECONDS, FAIR_PART * self.attack)


def frame(request: Request, version: int) -> bytes:
    return b"".join(bytes(part) for part in write_request(request, version, 1, "attacker"))


def longest_wait(broker: Process, attack: Callable[[Client], object]) -> Waited:
    """How long another client had to wait for ApiVersions while one attacked."""
    waits, started = [0.0], time.monotonic()
    ended = threading.Event()

    def ask() -> None:
        with broker.client() as client:
            while not ended.is_set():
                begun = time.monotonic()
                client.api_versions()
                waits.append(time.monotonic() - begun)
                time.sleep(0.01)

    other = threading.Thread(target=ask)
    other.start()
    try:
        with broker.client() as attacker:
            attack(attacker)
    finally:
        ended.set()
        other.join()
    return Waited(max(waits), time.monotonic() - started)


def test_many_requests_at_once_with_large_answers(tmp_path: Path) -> None:
    asked = frame(MetadataRequest(topics=[MetadataRequest.Topic(name="wide")]), 9)

    def attack(client: Client) -> None:
        client.sock.sendall(asked * 1000)
        for _ in range(1000):
            assert len(client.receive(MetadataResponse, 9).topics[0].partitions) == 2000

    with process(tmp_path) as broker:
        with broker.client() as client:
            assert client.create("wide", 2000) == 0
            client.ask(MetadataRequest(topics=[MetadataRequest.Topic(name="wide")]), 9, MetadataResponse)
        before = broker.rss_mib()
        assert (waited := longest_wait(broker, attack)).fair, waited
        assert broker.rss_mib() - before < 48


def test_one_request_for_very_many_things(tmp_path: Path) -> None:
    resource = DescribeConfigsRequest.Resource(resource_type=2, resource_name="topic")
    asked = frame(DescribeConfigsRequest(resources=[resource] * 20_000, include_synonyms=True), 4)

    def attack(client: Client) -> None:
        client.sock.settimeout(120)
        client.sock.sendall(asked)
        assert client.sock.recv(1)

    with process(tmp_path) as broker:
        with broker.client() as client:
            assert client.create("topic") == 0
        assert (waited := longest_wait(broker, attack)).fair, waited


def test_fetches_that_wait_for_more_than_comes_cost_nothing_to_those_who_produce(tmp_path: Path) -> None:
    partitions = [
        FetchRequest.Topic.Partition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
        for index in range(1000)
    ]
    waiting = FetchRequest(
        max_wait_ms=20_000,
        min_bytes=2**31 - 1,
        max_bytes=2**31 - 1,
        topics=[FetchRequest.Topic(topic="watched", partitions=partitions)],
    )
    with process(tmp_path) as broker, broker.client() as producer:
        assert producer.create("watched", 1000) == 0
        time_to_produce(producer)  # and be warm
        quiet = time_to_produce(producer)
        readers = [broker.client() for _ in range(20)]
        for reader in readers:
            reader.send(waiting, 11)
        time.sleep(1.0)  # for all of them to wait; if they do not yet, the test is easier
        watched = time_to_produce(producer)
        for reader in readers:
            reader.close()
    assert watched < 5 * quiet + 0.5


def time_to_produce(client: Client) -> float:
    begun = time.monotonic()
    for _ in range(50):
        assert client.produce("watched", b"value") == 0
    return time.monotonic() - begun


def test_a_fetch_is_answered_when_there_is_enough_and_with_everything(tmp_path: Path) -> None:
    partitions = [
        FetchRequest.Topic.Partition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20) for index in range(3)
    ]
    asked = FetchRequest(
        max_wait_ms=20_000,
        min_bytes=3000,
        max_bytes=1 << 20,
        topics=[FetchRequest.Topic(topic="three", partitions=partitions)],
    )
    with process(tmp_path) as broker, broker.client() as producer, broker.client() as reader:
        assert producer.create("three", 3) == 0
        assert producer.produce("three", bytes(1000), partition=2) == 0
        reader.send(asked, 11)
        for partition in (0, 1):
            assert producer.produce("three", bytes(1000), partition=partition) == 0
        found = reader.receive(FetchResponse, 11).responses[0].partitions

    assert [len(each.records or b"") > 1000 for each in found] == [True, True, True]
    assert [each.high_watermark for each in found] == [1, 1, 1]
