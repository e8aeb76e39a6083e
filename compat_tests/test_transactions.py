"""Transactions with stock clients of both generations: commit, abort, fencing, time, restarts.

Every client is led through the same verbs.  Java 4.4 goes by transaction.version 2 (KIP-890), all others by the first.
"""

import itertools
import json
import os
import re
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import apache
import confluent_kafka
import confluent_kafka.admin
import jars
import kafka
import kafka.errors
import pytest

from compat_tests.brokers import Trilogue

JAVA = Path(__file__).parent / "programs" / "java" / "Transactions.java"
PARTITIONS = 3
KAFKA_LOOKS_SECONDS = 11
"""Kafka looks for transactions that took too long every ten seconds; we do when their time has come."""


class Fenced(Exception):
    """Somebody else has taken over the transactional id."""


class Producer(Protocol):
    """A transactional producer; `send` returns when the broker has it."""

    def init(self) -> None: ...
    def begin(self) -> None: ...
    def send(self, topic: str, partition: int, value: str) -> None: ...
    def offset(self, group: str, topic: str, partition: int, offset: int) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...
    def close(self) -> None: ...


class KafkaPython:
    def __init__(self, bootstrap: str, name: str, timeout_ms: int) -> None:
        self._producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap, transactional_id=name, transaction_timeout_ms=timeout_ms, linger_ms=0
        )

    def _do(self, act: Callable[[], Any]) -> None:
        try:
            act()
        except (kafka.errors.ProducerFencedError, kafka.errors.InvalidProducerEpochError) as error:
            raise Fenced from error
        except kafka.errors.KafkaError as error:
            if "Fenced" in repr(error) or "Fenced" in repr(error.__cause__):
                raise Fenced from error
            raise

    def init(self) -> None:
        self._do(self._producer.init_transactions)

    def begin(self) -> None:
        self._do(self._producer.begin_transaction)

    def send(self, topic: str, partition: int, value: str) -> None:
        self._do(lambda: self._producer.send(topic, value.encode(), partition=partition).get(20))

    def offset(self, group: str, topic: str, partition: int, offset: int) -> None:
        offsets = {kafka.TopicPartition(topic, partition): kafka.OffsetAndMetadata(offset, "", -1)}
        self._do(lambda: self._producer.send_offsets_to_transaction(offsets, group))

    def commit(self) -> None:
        self._do(self._producer.commit_transaction)

    def abort(self) -> None:
        self._do(self._producer.abort_transaction)

    def close(self) -> None:
        self._producer.close(timeout=2)


class Librdkafka:
    def __init__(self, bootstrap: str, name: str, timeout_ms: int) -> None:
        self._bootstrap = bootstrap
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": name,
                "transaction.timeout.ms": timeout_ms,
                "linger.ms": 0,
                "log_level": 0,
                "error_cb": lambda error: None,  # else whoever happens to call next hears of it
            }
        )

    def _do(self, act: Callable[[], Any]) -> None:
        try:
            act()
        except confluent_kafka.KafkaException as error:
            if error.args[0].code() in (
                confluent_kafka.KafkaError._FENCED,
                confluent_kafka.KafkaError.INVALID_PRODUCER_EPOCH,
                confluent_kafka.KafkaError.PRODUCER_FENCED,
            ):
                raise Fenced from error
            raise

    def init(self) -> None:
        self._do(lambda: self._producer.init_transactions(20))

    def begin(self) -> None:
        self._do(self._producer.begin_transaction)

    def send(self, topic: str, partition: int, value: str) -> None:
        problems: list[Any] = []
        self._producer.produce(topic, value, partition=partition, on_delivery=lambda error, _: problems.append(error))
        self._do(lambda: self._producer.flush(20))
        if problems[0] is not None:
            self._do(lambda: raise_it(confluent_kafka.KafkaException(problems[0])))

    def offset(self, group: str, topic: str, partition: int, offset: int) -> None:
        member = confluent_kafka.Consumer({"bootstrap.servers": self._bootstrap, "group.id": group})
        where = confluent_kafka.TopicPartition(topic, partition, offset)
        self._do(lambda: self._producer.send_offsets_to_transaction([where], member.consumer_group_metadata(), 20))
        member.close()

    def commit(self) -> None:
        self._do(lambda: self._producer.commit_transaction(20))

    def abort(self) -> None:
        self._do(lambda: self._producer.abort_transaction(20))

    def close(self) -> None:
        """It goes with the last who knows it."""


def raise_it(error: Exception) -> None:
    raise error


class Java:
    """Transactions.java in a process of its own."""

    def __init__(self, bootstrap: str, name: str, timeout_ms: int, jar_set: str) -> None:
        try:
            path = jars.classpath(jar_set)
        except jars.Missing as missing:
            if os.environ.get("CI") == "true":
                pytest.fail(f"CI needs Java: {missing}", pytrace=False)
            pytest.skip(f"needs Java: {missing}")
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
        command = ["java", "-XX:+UseSerialGC", quiet, "-cp", path, str(JAVA), bootstrap, name, str(timeout_ms)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def do(self, *words: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().strip()
        if "ProducerFenced" in answer or "InvalidProducerEpoch" in answer:
            raise Fenced(answer)
        assert answer == "ok", answer

    def init(self) -> None:
        self.do("init")

    def begin(self) -> None:
        self.do("begin")

    def send(self, topic: str, partition: int, value: str) -> None:
        self.do("send", topic, partition, value)

    def offset(self, group: str, topic: str, partition: int, offset: int) -> None:
        self.do("offset", group, topic, partition, offset)

    def commit(self) -> None:
        self.do("commit")

    def abort(self) -> None:
        self.do("abort")

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


Start = Callable[..., Producer]
CLIENTS: dict[str, Callable[[str, str, int], Producer]] = {
    "kafka-python": KafkaPython,
    "librdkafka": Librdkafka,
    "java-4.4": lambda *given: Java(*given, "clients-4.4.0"),
    "java-3.9": lambda *given: Java(*given, "clients-3.9.1"),
    "java-2.8": lambda *given: Java(*given, "clients-2.8.2"),
}


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.java] * name.startswith("java")) for name in CLIENTS])
def client(request: pytest.FixtureRequest) -> Callable[[str, str, int], Producer]:
    return CLIENTS[request.param]


@pytest.fixture
def start(client: Callable[[str, str, int], Producer], bootstrap: str) -> Iterator[Start]:
    """`start("name")` is a producer that has not said anything yet."""
    started: list[Producer] = []

    def begin(name: str, timeout_ms: int = 60_000, where: str = bootstrap) -> Producer:
        started.append(client(where, name, timeout_ms))
        return started[-1]

    yield begin
    for each in started:
        each.close()


numbers = itertools.count()


@pytest.fixture
def topic(bootstrap: str) -> str:
    return make_topic(bootstrap)


def make_topic(bootstrap: str) -> str:
    name = f"transactions-{next(numbers)}-{uuid.uuid4().hex[:8]}"
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([confluent_kafka.admin.NewTopic(name, PARTITIONS)]).values():
        future.result(20)
    return name


def visible(bootstrap: str, topic: str, isolation: str = "read_committed") -> list[str]:
    """Everything that a consumer sees, partition by partition."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "nobody",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
    found: dict[int, list[str]] = {index: [] for index in range(PARTITIONS)}
    ended: set[int] = set()
    deadline = time.monotonic() + 30
    while len(ended) < PARTITIONS:
        assert time.monotonic() < deadline, f"read up to here: {found}"
        message = consumer.poll(1)
        if message is None:
            continue
        if message.error():
            assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF, message.error()
            ended.add(message.partition())
        else:
            found[message.partition()].append(message.value().decode())
    consumer.close()
    return [value for index in range(PARTITIONS) for value in found[index]]


def write_and_commit(producer: Producer, topic: str, value: str) -> None:
    producer.send(topic, 0, value)
    producer.commit()


def test_what_was_committed_is_read_and_what_was_aborted_is_not(start: Start, bootstrap: str, topic: str) -> None:
    producer = start(f"shop-{topic}")
    producer.init()
    for number in range(6):
        producer.begin()
        producer.send(topic, 0, f"a{number}")
        producer.send(topic, 1, f"b{number}")
        if number % 2:
            producer.abort()
        else:
            producer.commit()
    producer.begin()
    producer.send(topic, 0, "open")

    assert visible(bootstrap, topic) == ["a0", "a2", "a4", "b0", "b2", "b4"]
    everything = [*(f"a{n}" for n in range(6)), "open", *(f"b{n}" for n in range(6))]
    assert visible(bootstrap, topic, "read_uncommitted") == everything
    producer.commit()
    assert visible(bootstrap, topic) == ["a0", "a2", "a4", "open", "b0", "b2", "b4"]


def test_an_empty_transaction_may_end_either_way(start: Start, bootstrap: str, topic: str) -> None:
    producer = start(f"empty-{topic}")
    producer.init()
    for end in (producer.commit, producer.abort, producer.commit):
        producer.begin()
        end()
    producer.begin()
    producer.send(topic, 2, "at-last")
    producer.commit()

    assert visible(bootstrap, topic) == ["at-last"]


def test_a_successor_fences_its_predecessor(start: Start, bootstrap: str, topic: str) -> None:
    old, new = start(f"heir-{topic}"), start(f"heir-{topic}")
    old.init()
    old.begin()
    old.send(topic, 0, "old")
    new.init()
    new.begin()
    new.send(topic, 0, "new")
    new.commit()

    with pytest.raises(Fenced):
        write_and_commit(old, topic, "late")
    assert visible(bootstrap, topic) == ["new"]


def committed(bootstrap: str, group: str, topic: str) -> int:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    (found,) = consumer.committed([confluent_kafka.TopicPartition(topic, 0)], 20)
    consumer.close()
    return int(found.offset)


def test_offsets_count_when_their_transaction_does(start: Start, bootstrap: str, topic: str) -> None:
    producer, group = start(f"reader-{topic}"), f"group-{topic}"
    producer.init()
    seen = []
    for number, end in enumerate([producer.commit, producer.abort, producer.commit], start=1):
        producer.begin()
        producer.send(topic, 0, f"made-of-{number}")
        producer.offset(group, topic, 0, number)
        end()
        seen.append(committed(bootstrap, group, topic))

    assert seen == [1, 1, 3]
    assert visible(bootstrap, topic) == ["made-of-1", "made-of-3"]


@pytest.mark.slow
def test_a_transaction_that_takes_too_long_is_aborted(start: Start, bootstrap: str, topic: str, target: str) -> None:
    slow, other = start(f"slow-{topic}", timeout_ms=3000), start(f"other-{topic}")
    slow.init()
    other.init()
    slow.begin()
    slow.send(topic, 0, "slow")
    other.begin()
    other.send(topic, 0, "behind")
    other.commit()
    assert visible(bootstrap, topic) == []  # nobody may read past what is open

    time.sleep(3 + (KAFKA_LOOKS_SECONDS if target.startswith("apache") else 0.2))

    assert visible(bootstrap, topic) == ["behind"]
    with pytest.raises((Fenced, AssertionError, kafka.errors.KafkaError, confluent_kafka.KafkaException)):
        write_and_commit(slow, topic, "late")


@pytest.mark.slow
def test_a_transaction_goes_on_after_the_broker_was_killed(
    client: Callable[[str, str, int], Producer], target: str, tmp_path: Path
) -> None:
    if target != "trilogue":
        pytest.skip("it is our broker that is killed here")
    with Trilogue(tmp_path) as broker:
        topic = make_topic(broker.bootstrap)
        producer = client(broker.bootstrap, "survivor", 60_000)
        producer.init()
        for number in range(3):
            producer.begin()
            producer.send(topic, 0, f"before-{number}")
            producer.commit() if number else producer.abort()
        producer.begin()
        producer.send(topic, 1, "open")
        broker.kill()
        broker.start()
        assert visible(broker.bootstrap, topic) == ["before-1", "before-2"]
        producer.send(topic, 1, "after")
        producer.commit()
        producer.begin()
        producer.send(topic, 2, "next")
        producer.commit()

        assert visible(broker.bootstrap, topic) == ["before-1", "before-2", "open", "after", "next"]
        producer.close()


@pytest.mark.java
def test_kafka_transactions_lists_describes_and_aborts(bootstrap: str, topic: str) -> None:
    producer = Librdkafka(bootstrap, f"tool-{topic}", 60_000)
    producer.init()
    producer.begin()
    producer.send(topic, 1, "hanging")

    def tool(*arguments: str) -> list[list[str]]:
        try:
            command = apache.command(
                "org.apache.kafka.tools.TransactionsCommand", "--bootstrap-server", bootstrap, *arguments
            )
        except jars.Missing as missing:
            pytest.skip(f"needs Java: {missing}")
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr[-2000:]
        return [line.split() for line in done.stdout.splitlines()]

    listed = [line for line in tool("list") if line[0] == f"tool-{topic}"]
    assert [line[3] for line in listed] == ["Ongoing"]
    _, described = tool("describe", "--transactional-id", f"tool-{topic}")
    assert (described[4], described[8]) == ("Ongoing", f"{topic}-1")
    header, writer = tool("describe-producers", "--topic", topic, "--partition", "1")
    assert header[5] == "CurrentTransactionStartOffset"
    assert writer[-1] == "0"
    assert visible(bootstrap, topic) == []

    tool("abort", "--topic", topic, "--partition", "1", "--start-offset", "0")

    assert visible(bootstrap, topic) == []
    _, writer = tool("describe-producers", "--topic", topic, "--partition", "1")
    assert writer[-1] == "None"


@pytest.mark.java
def test_kafkas_own_decoder_reads_what_the_coordinator_keeps(target: str, tmp_path: Path) -> None:
    if target != "trilogue":
        pytest.skip("Kafka reads its own")
    with Trilogue(tmp_path, transaction_state_log_num_partitions="1") as broker:
        topic = make_topic(broker.bootstrap)
        producer = Librdkafka(broker.bootstrap, "shop", 60_000)
        producer.init()
        producer.begin()
        producer.send(topic, 1, "kept")
        producer.commit()
        broker.stop()
    log = tmp_path / "data" / "__transaction_state-0" / f"{0:020}.log"
    try:
        command = apache.command(
            "org.apache.kafka.tools.DumpLogSegments",
            "--transaction-log-decoder",
            "--print-data-log",
            "--files",
            str(log),
        )
    except jars.Missing as missing:
        pytest.skip(f"needs Java: {missing}")
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr[-2000:]
    kept = [json.loads(payload)["data"] for payload in re.findall(r"payload: (.*)", done.stdout)]
    here = [{"topic": topic, "partitionIds": [1]}]

    assert [(each["transactionStatus"], each["transactionPartitions"]) for each in kept] == [
        (0, None),  # Empty
        (1, here),  # Ongoing
        (2, here),  # PrepareCommit
        (4, []),  # CompleteCommit
    ]
