"""Our broker is stopped and killed while clients work: what was acknowledged stays, and offsets stay dense."""

import threading
import time
from pathlib import Path

import confluent_kafka
import confluent_kafka.admin
import kafka
import pytest

from compat_tests.brokers import Trilogue

IN_FLIGHT_MAX = 500


@pytest.fixture(autouse=True)
def only_ours(target: str) -> None:
    if target != "trilogue":
        pytest.skip("it is our broker that is killed here")


def make_topic(bootstrap: str, name: str, **settings: str) -> None:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    config = {key.replace("_", "."): value for key, value in settings.items()}
    for future in admin.create_topics([confluent_kafka.admin.NewTopic(name, 2, 1, config=config)]).values():
        future.result(20)


def read_all(bootstrap: str, topic: str) -> dict[int, list[tuple[int, bytes]]]:
    """Everything in a topic: offset and value, by partition."""
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    partitions = [kafka.TopicPartition(topic, index) for index in sorted(consumer.partitions_for_topic(topic))]
    consumer.assign(partitions)
    ends = consumer.end_offsets(partitions)
    found: dict[int, list[tuple[int, bytes]]] = {each.partition: [] for each in partitions}
    deadline = time.monotonic() + 30
    while any(consumer.position(each) < ends[each] for each in partitions) and time.monotonic() < deadline:
        for each, records in consumer.poll(500).items():
            found[each.partition] += [(record.offset, record.value) for record in records]
    consumer.close()
    return found


class Writer(threading.Thread):
    """An idempotent producer that goes on through everything, and remembers what was acknowledged."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__()
        self.acknowledged: set[bytes] = set()
        self.sent = 0
        self.stop = threading.Event()
        self._topic = topic
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 2,
                "reconnect.backoff.max.ms": 200,
                "message.timeout.ms": 60_000,
            }
        )

    def run(self) -> None:
        while not self.stop.is_set():
            self._producer.produce(self._topic, b"%d" % self.sent, partition=self.sent % 2, on_delivery=self._delivered)
            self.sent += 1
            while self._producer.poll(0) or len(self._producer) > IN_FLIGHT_MAX:
                if self.stop.is_set():
                    break
                self._producer.poll(0.01)
        self._producer.flush(60)

    def _delivered(self, error, message) -> None:
        if error is None:
            self.acknowledged.add(message.value())


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"flush_messages": "1"}], ids=["page cache", "flushed"])
def test_what_was_acknowledged_survives_kill_9(tmp_path: Path, settings: dict[str, str]) -> None:
    with Trilogue(tmp_path) as broker:
        make_topic(broker.bootstrap, "t", **settings)
        writer = Writer(broker.bootstrap, "t")
        writer.start()
        for _ in range(4):
            seen = len(writer.acknowledged)
            wait_until(lambda seen=seen: len(writer.acknowledged) > seen + 200)
            broker.kill()
            broker.start()
        seen = len(writer.acknowledged)
        wait_until(lambda: len(writer.acknowledged) > seen + 200)
        writer.stop.set()
        writer.join(90)

        found = read_all(broker.bootstrap, "t")

    values = [value for records in found.values() for _, value in records]
    assert writer.acknowledged <= set(values), "something acknowledged is lost"
    assert len(values) == len(set(values)), "something was written twice"
    for records in found.values():
        assert [offset for offset, _ in records] == list(range(len(records))), "offsets have gaps"
        assert [int(value) for _, value in records] == sorted(int(value) for _, value in records), "out of order"


def test_a_clean_restart_keeps_topics_settings_and_records(tmp_path: Path) -> None:
    with Trilogue(tmp_path) as broker:
        make_topic(broker.bootstrap, "kept", retention_ms="123456789")
        producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap)
        for number in range(100):
            producer.send("kept", b"%d" % number, partition=number % 2)
        producer.close()
        before = read_all(broker.bootstrap, "kept")
        assert broker.stop() == 0
        assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()
        broker.start()

        assert read_all(broker.bootstrap, "kept") == before
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": broker.bootstrap})
        resource = confluent_kafka.admin.ConfigResource(confluent_kafka.admin.ConfigResource.Type.TOPIC, "kept")
        (future,) = admin.describe_configs([resource]).values()
        assert future.result(10)["retention.ms"].value == "123456789"


def test_a_deleted_topic_does_not_come_back_with_its_name(tmp_path: Path) -> None:
    with Trilogue(tmp_path) as broker:
        make_topic(broker.bootstrap, "again")
        producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap)
        producer.send("again", b"old", partition=0).get(10)
        producer.close()  # or it asks for its topic when the broker is back, which makes it anew
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": broker.bootstrap})
        for future in admin.delete_topics(["again"]).values():
            future.result(10)
        broker.kill()
        broker.start()
        make_topic(broker.bootstrap, "again")

        assert read_all(broker.bootstrap, "again") == {0: [], 1: []}


def wait_until(condition) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "nothing more is acknowledged"
        time.sleep(0.01)
