"""Metadata that is lost, empty, foreign or damaged: refused beside partitions, and made again with --adopt."""

import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import confluent_kafka
import pytest

from trilogue.broker.tests.stays_up.process import Process, command, process
from trilogue.wire.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from trilogue.wire.apis.metadata import MetadataRequest, MetadataResponse

TOPICS = {"orders": 3, "with.dots-and-4": 1}


def lose(file: Path) -> None:
    for each in file.parent.glob("metadata.sqlite*"):
        each.unlink()


def empty(file: Path) -> None:
    lose(file)
    file.write_bytes(b"")


def damage(file: Path) -> None:
    lose(file)
    file.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)


def swap(file: Path) -> None:
    lose(file)
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE TABLE node (path, data, version, created)")
        database.execute("CREATE TABLE last_commit (number)")
        database.execute("INSERT INTO node VALUES ('/cluster/id', '{\"id\": \"another\"}', 0, 1)")


def refusal(broker: Process) -> str:
    given = [*command(), "start", "--port=0", f"--data={broker.data}"]
    ended = subprocess.run(given, capture_output=True, text=True, timeout=30, check=False)
    assert ended.returncode == 1, ended
    return ended.stderr


def topics_of(broker: Process) -> dict[str, tuple[bytes, int]]:
    with broker.client() as client:
        found = client.ask(MetadataRequest(topics=None), 12, MetadataResponse).topics
        return {each.name: (each.topic_id, len(each.partitions)) for each in found}


def commit_offset(broker: Process, offset: int) -> None:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": f"127.0.0.1:{broker.port}", "group.id": "readers"})
    consumer.commit(offsets=[confluent_kafka.TopicPartition("orders", 1, offset)], asynchronous=False)
    consumer.close()


def committed_offset(broker: Process) -> int:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": f"127.0.0.1:{broker.port}", "group.id": "readers"})
    (found,) = consumer.committed([confluent_kafka.TopicPartition("orders", 1)], timeout=20)
    consumer.close()
    return int(found.offset)


@pytest.mark.parametrize("harm", [lose, empty, damage, swap])
@pytest.mark.parametrize("killed", [False, True], ids=["stopped", "killed"])
def test_everything_is_there_again(tmp_path: Path, harm: Callable[[Path], None], killed: bool) -> None:
    with process(tmp_path) as broker:
        with broker.client() as client:
            for topic, partitions in TOPICS.items():
                assert client.create(topic, partitions) == 0
                for partition in range(partitions):
                    assert client.produce(topic, b"%d" % partition, b"more", partition=partition) == 0
        commit_offset(broker, 2)
        first_id = producer_id(broker)
        before = topics_of(broker)
        broker.kill() if killed else broker.stop()
        harm(broker.data / "metadata.sqlite")

        assert "--adopt" in refusal(broker)
        assert not list(broker.data.glob("*-stray")), "what was refused has changed nothing"
        broker.start("--adopt")

        assert topics_of(broker) == before
        with broker.client() as client:
            for topic, partitions in TOPICS.items():
                for partition in range(partitions):
                    assert client.values(topic, partition) == [b"%d" % partition, b"more"]
                    assert client.produce(topic, b"new", partition=partition) == 0
        assert committed_offset(broker) == 2
        assert producer_id(broker) > first_id + 1000, "nobody gets an id that somebody else may have"

        broker.restart()
        with broker.client() as client:
            assert client.values("orders", 2) == [b"2", b"more", b"new"]
        assert topics_of(broker) == before


def producer_id(broker: Process) -> int:
    with broker.client() as client:
        asked = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        return client.ask(asked, 4, InitProducerIdResponse).producer_id


def test_what_the_metadata_knows_stays_as_it_is(tmp_path: Path) -> None:
    with process(tmp_path) as broker:
        with broker.client() as client:
            assert client.create("orders", 5, retention_ms="12345") == 0
            assert client.produce("orders", b"value") == 0
        before = topics_of(broker)
        broker.stop()
        broker.start("--adopt")

        assert topics_of(broker) == before
        with broker.client() as client:
            assert client.values("orders") == [b"value"]


@pytest.mark.java
def test_the_data_of_apache_kafka_is_taken_up(tmp_path: Path) -> None:
    import apache

    with apache.Kafka(tmp_path / "kafka") as kafka:
        producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap, "enable.idempotence": True})
        for number in range(100):
            producer.produce("orders", b"%d" % number)
        assert producer.flush(30) == 0
    broker = Process(tmp_path / "ours", node_id="1")
    broker.data = kafka.data
    try:
        broker.start("--adopt")
        with broker.client() as client:
            assert client.values("orders") == [b"%d" % number for number in range(100)]
            assert client.produce("orders", b"ours") == 0
        assert (kafka.data / "__cluster_metadata-0").is_dir(), "it could go back"
    finally:
        if broker.ended is None:
            broker.kill()
