"""Writing and reading with stock clients: every codec, keys, headers, tombstones, sizes, idempotence.

Each client is wrapped into the same three verbs, so that one test tells the story of all of them.
"""

import asyncio
import json
import subprocess
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import aiokafka
import apache
import confluent_kafka
import confluent_kafka.admin
import jars
import kafka
import pytest

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
JAVA = Path(__file__).parent / "java" / "ProduceConsume.java"


class Sent(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()


class Client(NamedTuple):
    """`produce` answers the offsets; `consume` reads so many records from the beginning."""

    name: str
    produce: Callable[[str, str, list[Sent], str, bool], list[int]]
    consume: Callable[[str, str, int], list[Sent]]


# -- kafka-python ----------------------------------------------------------------------------------


def kafka_python_produce(bootstrap: str, topic: str, records: list[Sent], codec: str, idempotent: bool) -> list[int]:
    producer = kafka.KafkaProducer(
        bootstrap_servers=bootstrap,
        compression_type=None if codec == "none" else codec,
        acks="all",
        enable_idempotence=idempotent,
        max_request_size=20 << 20,
        linger_ms=5,
    )
    sent = [producer.send(topic, each.value, each.key, headers=list(each.headers), partition=0) for each in records]
    producer.flush(30)
    offsets = [future.get(10).offset for future in sent]
    producer.close()
    return offsets


def kafka_python_consume(bootstrap: str, topic: str, count: int) -> list[Sent]:
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=20_000
    )
    consumer.assign([kafka.TopicPartition(topic, 0)])
    found = [Sent(each.key, each.value, tuple(each.headers)) for _, each in zip(range(count), consumer, strict=False)]
    consumer.close()
    return found


# -- librdkafka ------------------------------------------------------------------------------------


def librdkafka_produce(bootstrap: str, topic: str, records: list[Sent], codec: str, idempotent: bool) -> list[int]:
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": bootstrap,
            "compression.type": codec,
            "enable.idempotence": idempotent,
            "message.max.bytes": 20 << 20,
            "linger.ms": 5,
        }
    )
    offsets: list[int] = []

    def delivered(error: Any, message: Any) -> None:
        assert error is None, error
        offsets.append(message.offset())

    for each in records:
        producer.produce(
            topic, each.value, each.key, partition=0, headers=list(each.headers) or None, on_delivery=delivered
        )
    assert producer.flush(30) == 0
    return offsets


def librdkafka_consume(bootstrap: str, topic: str, count: int) -> list[Sent]:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "assigned",
            "enable.auto.commit": False,
            "fetch.max.bytes": 30 << 20,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    found: list[Sent] = []
    for message in iter(lambda: consumer.poll(20), None):
        assert message.error() is None, message.error()
        found.append(Sent(message.key(), message.value(), tuple(message.headers() or ())))
        if len(found) == count:
            break
    consumer.close()
    return found


# -- aiokafka --------------------------------------------------------------------------------------


def aiokafka_produce(bootstrap: str, topic: str, records: list[Sent], codec: str, idempotent: bool) -> list[int]:
    async def main() -> list[int]:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if codec == "none" else codec,
            acks="all",
            enable_idempotence=idempotent,
            max_request_size=20 << 20,
        )
        await producer.start()
        try:
            sent = [
                await producer.send(topic, each.value, each.key, partition=0, headers=list(each.headers))
                for each in records
            ]
            return [(await future).offset for future in sent]
        finally:
            await producer.stop()

    return asyncio.run(main())


def aiokafka_consume(bootstrap: str, topic: str, count: int) -> list[Sent]:
    async def main() -> list[Sent]:
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", group_id=None)
        await consumer.start()
        try:
            consumer.assign([aiokafka.TopicPartition(topic, 0)])
            found = [await asyncio.wait_for(consumer.getone(), 20) for _ in range(count)]
        finally:
            await consumer.stop()
        return [Sent(each.key, each.value, tuple(each.headers)) for each in found]

    return asyncio.run(main())


# -- Java ------------------------------------------------------------------------------------------


def java_command(*arguments: str) -> list[str]:
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    return ["java", quiet, "-cp", jars.classpath("clients-4.4.0"), str(JAVA), *arguments]


def java_produce(bootstrap: str, topic: str, records: list[Sent], codec: str, idempotent: bool) -> list[int]:
    lines = [
        json.dumps([hexed(each.key), hexed(each.value), [[n, hexed(v)] for n, v in each.headers]]) for each in records
    ]
    done = subprocess.run(
        java_command("produce", bootstrap, topic, codec, str(idempotent).lower()),
        input="\n".join(flat(line) for line in lines),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [int(line) for line in done.stdout.split()]


def java_consume(bootstrap: str, topic: str, count: int) -> list[Sent]:
    done = subprocess.run(
        java_command("consume", bootstrap, topic, str(count)), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [unflat(line) for line in done.stdout.splitlines()]


def hexed(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def flat(line: str) -> str:
    """A record in one line for a program without a JSON parser: key, value, then name and value of each header."""
    key, value, headers = json.loads(line)
    words = [key, value, *(word for name, content in headers for word in (name.encode().hex(), content))]
    return " ".join("-" if word is None else f"x{word}" for word in words)


def unflat(line: str) -> Sent:
    key, value, *rest = (None if word == "-" else bytes.fromhex(word[1:]) for word in line.split(" "))
    return Sent(key, value, tuple((rest[i].decode(), rest[i + 1]) for i in range(0, len(rest), 2)))


CLIENTS = [
    Client("kafka-python", kafka_python_produce, kafka_python_consume),
    Client("librdkafka", librdkafka_produce, librdkafka_consume),
    Client("aiokafka", aiokafka_produce, aiokafka_consume),
    pytest.param(Client("java", java_produce, java_consume), marks=pytest.mark.java),
]


@pytest.fixture
def topic(bootstrap: str) -> str:
    name = f"t-{uuid.uuid4().hex[:12]}"
    make_topic(bootstrap, name)
    return name


def make_topic(bootstrap: str, name: str, **configs: str) -> None:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    settings = {key.replace("_", "."): value for key, value in configs.items()}
    wish = confluent_kafka.admin.NewTopic(name, num_partitions=1, replication_factor=1, config=settings)
    for future in admin.create_topics([wish]).values():
        future.result(20)


def client_id(value: object) -> str:
    return value.name if isinstance(value, Client) else str(value)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("client", CLIENTS, ids=client_id)
def test_what_was_written_is_read_in_order(client: Client, codec: str, bootstrap: str, topic: str) -> None:
    records = [
        Sent(b"key", b"value"),
        Sent(None, b"no key"),
        Sent(b"tombstone", None),
        Sent(b"", b""),
        Sent(b"h", b"with headers", (("first", b"1"), ("first", b"2"), ("utf-8 \u00fc", b"\xff\x00"))),
        *(Sent(b"k%d" % i, b"v" * 100) for i in range(500)),
    ]

    offsets = client.produce(bootstrap, topic, records, codec, False)

    assert offsets == list(range(len(records)))
    assert client.consume(bootstrap, topic, len(records)) == records


@pytest.mark.parametrize("client", CLIENTS, ids=client_id)
def test_an_idempotent_producer_writes_everything_once(client: Client, bootstrap: str, topic: str) -> None:
    records = [Sent(None, b"%d" % i) for i in range(2_000)]

    assert client.produce(bootstrap, topic, records, "none", True) == list(range(2_000))
    assert client.consume(bootstrap, topic, 2_000) == records


@pytest.mark.parametrize("writer", CLIENTS, ids=client_id)
@pytest.mark.parametrize("reader", CLIENTS, ids=client_id)
def test_clients_understand_each_other(writer: Client, reader: Client, bootstrap: str, topic: str) -> None:
    records = [Sent(b"%d" % i, b"x" * i, (("n", b"%d" % i),)) for i in range(20)]

    writer.produce(bootstrap, topic, records, "gzip", False)

    assert reader.consume(bootstrap, topic, len(records)) == records


@pytest.mark.parametrize("client", CLIENTS, ids=client_id)
def test_values_from_nothing_to_ten_mebibytes(client: Client, bootstrap: str) -> None:
    name = f"large-{uuid.uuid4().hex[:12]}"
    make_topic(bootstrap, name, max_message_bytes=str(12 << 20))
    records = [Sent(None, bytes(size)) for size in (0, 1, 1 << 10, 1 << 20, 10 << 20)]

    assert client.produce(bootstrap, name, records, "none", False) == [0, 1, 2, 3, 4]
    assert [len(each.value or b"") for each in client.consume(bootstrap, name, 5)] == [0, 1, 1 << 10, 1 << 20, 10 << 20]


def test_log_append_time_is_the_brokers(bootstrap: str) -> None:
    name = f"stamped-{uuid.uuid4().hex[:12]}"
    make_topic(bootstrap, name, message_timestamp_type="LogAppendTime")
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap)
    told = producer.send(name, b"x", timestamp_ms=1_000).get(10)
    producer.close()
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=20_000
    )
    consumer.assign([kafka.TopicPartition(name, 0)])
    record = next(iter(consumer))
    consumer.close()

    assert record.timestamp_type == 1
    assert record.timestamp == told.timestamp > 1_600_000_000_000


def test_the_console_tools_talk_to_each_other(bootstrap: str, topic: str) -> None:
    try:
        produce = apache.command(
            "org.apache.kafka.tools.ConsoleProducer",
            *("--bootstrap-server", bootstrap, "--topic", topic, "--reader-property", "parse.key=true"),
            *("--reader-property", "key.separator=:"),
        )
        consume = apache.command(
            "org.apache.kafka.tools.consumer.ConsoleConsumer",
            *("--bootstrap-server", bootstrap, "--topic", topic, "--partition", "0", "--offset", "earliest"),
            *("--max-messages", "2", "--formatter-property", "print.key=true", "--timeout-ms", "20000"),
        )
    except jars.Missing as missing:
        pytest.skip(f"needs Java: {missing}")
    wrote = subprocess.run(produce, input="a:1\nb:2\n", capture_output=True, text=True, timeout=60)
    assert wrote.returncode == 0, wrote.stderr

    read = subprocess.run(consume, capture_output=True, text=True, timeout=60)

    assert read.stdout.splitlines() == ["a\t1", "b\t2"], read.stderr
