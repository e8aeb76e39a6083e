"""Exactly once, end to end: whoever reads, transforms and writes in transactions may be killed at any moment.

librdkafka goes by the first transaction.version, Java 4.4 by the second (KIP-890), Kafka Streams by exactly_once_v2.
"""

import collections
import random
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import confluent_kafka
import confluent_kafka.admin
import pytest

from compat_tests.brokers import started
from compat_tests.proxy import proxy
from compat_tests.workers import HERE, PATIENCE_SECONDS, Worker, java, running

PARTITIONS = 2
RECORDS = 3000
A_TRANSACTION = 20
KILLS = 20
LIFE = 5
"""A worker is killed before it has committed more transactions than this: so some input is left for every one."""


def make_topics(bootstrap: str, *names: str) -> None:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    new = [confluent_kafka.admin.NewTopic(name, PARTITIONS) for name in names]
    for future in admin.create_topics(new).values():
        future.result(20)


def write(bootstrap: str, topic: str, values: list[list[str]]) -> None:
    """A list for every partition."""
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for partition, each in enumerate(values):
        for value in each:
            producer.produce(topic, value, partition=partition)
    assert producer.flush(20) == 0


def read(bootstrap: str, topic: str, isolation: str) -> list[list[tuple[str, str]]]:
    """Keys and values by partition, from the beginning to the end that such a consumer may see."""
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
    found: list[list[tuple[str, str]]] = [[] for _ in range(PARTITIONS)]
    ended: set[int] = set()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(ended) < PARTITIONS:
        assert time.monotonic() < deadline, f"only partitions {ended} have an end"
        message = consumer.poll(1)
        if message is None:
            continue
        if message.error():
            assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF, message.error()
            ended.add(message.partition())
        else:
            found[message.partition()].append(((message.key() or b"").decode(), message.value().decode()))
    consumer.close()
    return found


def values(bootstrap: str, topic: str, isolation: str) -> list[list[str]]:
    return [[value for _, value in part] for part in read(bootstrap, topic, isolation)]


@pytest.mark.slow
@pytest.mark.parametrize("client", ["librdkafka", pytest.param("java-4.4", marks=pytest.mark.java)])
def test_a_worker_killed_again_and_again_copies_every_record_once(client: str, bootstrap: str, tmp_path: Path) -> None:
    if client == "librdkafka":
        program = [sys.executable, str(HERE / "programs" / "copy.py")]
    else:
        program = java("Copy", "clients-4.4.0", tmp_path)
    name = f"copy-{client}-{uuid.uuid4().hex[:8]}"
    source, sink = f"{name}-in", f"{name}-out"
    make_topics(bootstrap, source, sink)
    given = [[f"p{part}-n{number}" for number in range(RECORDS // PARTITIONS)] for part in range(PARTITIONS)]
    write(bootstrap, source, given)
    command = [*program, bootstrap, name, source, sink, str(A_TRANSACTION)]

    chance = random.Random(6)
    for _ in range(KILLS):
        with running(command, tmp_path) as worker:
            worker.wait_for("started", 1)
            worker.wait_for("committed", chance.randrange(LIFE))
            time.sleep(chance.uniform(0, 0.04))
            worker.must_live()
    with running(command, tmp_path) as worker:
        worker.finish()
        assert worker.said("committed") > 0, "the last one had nothing to do"

    assert values(bootstrap, sink, "read_committed") == [[value.upper() for value in part] for part in given]
    everything = sum(map(len, values(bootstrap, sink, "read_uncommitted")))
    assert everything > RECORDS, "no kill has met an open transaction"


PRODUCE, ADD_PARTITIONS, ADD_OFFSETS, END, COMMIT_OFFSETS = 0, 24, 25, 26, 28
IMPLICIT_SINCE = {PRODUCE: 12, END: 5, COMMIT_OFFSETS: 5}
"""From these versions on a transaction is of the second generation (KIP-890): nothing is added beforehand, and the
producer's epoch is raised with every end."""
BROKERS_ADD_SINCE = 4
"""AddPartitionsToTxn of these versions is sent by brokers only, and Kafka's go by the proxy as well."""


@pytest.mark.slow
@pytest.mark.parametrize("client", ["librdkafka", pytest.param("java-4.4", marks=pytest.mark.java)])
def test_the_workers_speak_both_generations_of_transactions(
    client: str, target: str, brokers: int, tmp_path: Path
) -> None:
    """The test above is of both only if they do: here their requests are looked at on the wire."""
    if brokers > 1:
        pytest.skip("looks at what goes to one broker")
    source, sink = "in", "out"
    given = [[f"p{part}-n{number}" for number in range(50)] for part in range(PARTITIONS)]
    program = (
        [sys.executable, str(HERE / "programs" / "copy.py")]
        if client == "librdkafka"
        else java("Copy", "clients-4.4.0", tmp_path)
    )
    with proxy() as between, started(target, tmp_path, between.advertised) as bootstrap:
        between.serve(bootstrap)
        make_topics(between.address, source, sink)
        write(between.address, source, given)
        before = between.versions(PRODUCE)
        with running([*program, between.address, "copy", source, sink, str(A_TRANSACTION)], tmp_path) as worker:
            worker.finish()
        assert values(between.address, sink, "read_committed") == [[value.upper() for value in part] for part in given]

        newest = {key: max(between.versions(key)) for key in IMPLICIT_SINCE}
        added = {version for version in between.versions(ADD_PARTITIONS) if version < BROKERS_ADD_SINCE}
        if client == "librdkafka":
            assert all(newest[key] < since for key, since in IMPLICIT_SINCE.items()), newest
            assert added, "no partition was added"
            assert between.versions(ADD_OFFSETS), "no offsets were added"
        else:
            assert all(newest[key] >= since for key, since in IMPLICIT_SINCE.items()), newest
            assert min(between.versions(PRODUCE) - before) >= IMPLICIT_SINCE[PRODUCE]
            assert added | between.versions(ADD_OFFSETS) == set()


WORDS = ["kafka", "trilogue", "topic", "offset", "epoch", "fence", "marker", "group", "lag", "log"]


@pytest.mark.slow
@pytest.mark.java
def test_kafka_streams_killed_in_a_transaction_counts_every_word_once(bootstrap: str, tmp_path: Path) -> None:
    name = f"words-{uuid.uuid4().hex[:8]}"
    source, sink = f"{name}-in", f"{name}-out"
    make_topics(bootstrap, source, sink)
    chance = random.Random(6)
    before, after = (
        [[" ".join(chance.choices(WORDS, k=5)) for _ in range(500)] for _ in range(PARTITIONS)] for _ in "12"
    )
    expected = collections.Counter(word for part in before + after for line in part for word in line.split())
    command = [*java("WordCount", "streams-4.3.1", tmp_path), bootstrap, name, source, sink, str(tmp_path / "state")]

    def seen(isolation: str) -> int:
        return sum(map(len, values(bootstrap, sink, isolation)))

    def wait_until(done: Callable[[], bool], worker: Worker) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not done():
            worker.must_live()
            assert time.monotonic() < deadline, f"{seen('read_committed')} of {expected.total()}: {worker.log()}"

    write(bootstrap, source, before)
    with running(command, tmp_path) as worker:
        wait_until(lambda: seen("read_uncommitted") > seen("read_committed"), worker)
    write(bootstrap, source, after)
    with running(command, tmp_path) as worker:
        wait_until(lambda: seen("read_committed") >= expected.total(), worker)
        time.sleep(2)  # another commit, with whatever would come twice

    counts: dict[str, list[int]] = collections.defaultdict(list)
    for part in read(bootstrap, sink, "read_committed"):
        for word, count in part:
            counts[word].append(int(count))
    assert counts == {word: list(range(1, total + 1)) for word, total in expected.items()}
    assert seen("read_uncommitted") > expected.total(), "the kill has not met an open transaction"
