"""Apache Kafka's tools for groups and transactions print the same of ours as of Apache Kafka, and do the same.

What they print is compared with what is written here, which was read off Apache Kafka 4.3.1: `--target=apache-kafka`
compares it anew.  The broker is one of its own: the tools list all there is.
"""

import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from typing import Any

import apache
import confluent_kafka
import confluent_kafka.admin
import jars
import kafka
import kafka.errors
import pytest

from compat_tests.brokers import Trilogue
from compat_tests.running import missing_tool
from compat_tests.test_tools import tool
from trilogue.client.blocking import Blocking, run
from trilogue.client.client import Client
from trilogue.client.world import Address
from trilogue.wire.apis.produce import ProduceRequest, ProduceResponse
from trilogue.wire.records import Record, build

pytestmark = pytest.mark.java

UNVERIFIED = "transaction.partition.verification.enable"
"""Without this, producers of the first generation may leave transactions hanging."""
TOOLS_AT_ONCE = 3

GROUPS = "org.apache.kafka.tools.GroupsCommand"
CONSUMER_GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"


@pytest.fixture(scope="module")
def alone(target: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """HOST:PORT of a broker that nobody else uses."""
    folder = tmp_path_factory.mktemp("alone")
    broker: AbstractContextManager[Any]
    try:
        if target == "apache-kafka":
            broker = apache.Kafka(folder, {UNVERIFIED: "false"})
        else:
            jars.classpath(apache.JARS)
            broker = Trilogue(folder, **{UNVERIFIED: "false"})
    except jars.Missing as missing:
        missing_tool(missing)
    with broker as running:
        yield running.bootstrap


def fill(bootstrap: str, topic: str, partitions: int) -> None:
    """A new topic, five records in each of its partitions."""
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([confluent_kafka.admin.NewTopic(topic, partitions)])[topic].result(20)
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "enable.idempotence": False})
    for partition in range(partitions):
        for number in range(5):
            producer.produce(topic, b"%d" % number, partition=partition)
    assert producer.flush(20) == 0


def member(bootstrap: str, group: str, protocol: str, topic: str, committed: int) -> confluent_kafka.Consumer:
    """Of a group of its own; it has read something, and committed for partition 0."""
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "client.id": f"{group}-reader",
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    consumer = confluent_kafka.Consumer(settings)
    consumer.subscribe([topic])
    assert consumer.poll(20) is not None
    consumer.commit(offsets=[confluent_kafka.TopicPartition(topic, 0, committed)], asynchronous=False)
    return consumer


def lines(said: str) -> list[str]:
    """What a tool prints, but for its layout, its order, and what is different each time."""
    said = re.sub(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UUID", said)
    said = re.sub(r"(?<=\s)[A-Za-z0-9_/+-]{22}(?=\s)", "UUID", said)
    said = re.sub(r"127\.0\.0\.1:\d+", "HOST:PORT", said)
    said = said.replace("org.apache.kafka.common.errors.", "")
    return sorted(" ".join(line.split()) for line in said.splitlines() if line.strip())


def rows(said: str) -> list[dict[str, str]]:
    """A table of kafka-transactions."""
    head, *rest = [line.split() for line in said.splitlines()]
    return [dict(zip(head, row, strict=True)) for row in rest]


def readable(bootstrap: str, topic: str) -> list[bytes]:
    """What is committed."""
    consumer = kafka.KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        consumer_timeout_ms=2000,
    )
    with closing(consumer):
        return [record.value for record in consumer]


# -- groups ----------------------------------------------------------------------------------------

LIVING = {
    (GROUPS, "--list"): """
        GROUP    TYPE      PROTOCOL
        living-c Classic   consumer
        living-n Consumer  consumer""",
    (CONSUMER_GROUPS, "--list", "--state"): """
        GROUP    STATE
        living-c Stable
        living-n Stable""",
    (CONSUMER_GROUPS, "--describe", "--group", "living-c", "--group", "living-n", "--offsets"): """
        GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID
        living-c living 0 3 5 2 living-c-reader-UUID /127.0.0.1 living-c-reader
        living-c living 1 - 5 - living-c-reader-UUID /127.0.0.1 living-c-reader
        GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID
        living-n living 0 4 5 1 UUID /127.0.0.1 living-n-reader
        living-n living 1 - 5 - UUID /127.0.0.1 living-n-reader""",
    (CONSUMER_GROUPS, "--describe", "--group", "living-c", "--group", "living-n", "--members", "--verbose"): """
        GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS CURRENT-EPOCH CURRENT-ASSIGNMENT TARGET-EPOCH TARGET-ASSIGNMENT
        living-c living-c-reader-UUID /127.0.0.1 living-c-reader 2 - living:0,1 - -
        GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS CURRENT-EPOCH CURRENT-ASSIGNMENT TARGET-EPOCH TARGET-ASSIGNMENT
        living-n UUID /127.0.0.1 living-n-reader 2 2 living:0,1 2 living:0,1""",
    (CONSUMER_GROUPS, "--describe", "--group", "living-c", "--group", "living-n", "--state"): """
        GROUP COORDINATOR (ID) ASSIGNMENT-STRATEGY STATE #MEMBERS
        living-c HOST:PORT (1) range Stable 1
        GROUP COORDINATOR (ID) ASSIGNMENT-STRATEGY STATE #MEMBERS
        living-n HOST:PORT (1) uniform Stable 1""",
    (CONSUMER_GROUPS, "--delete", "--group", "living-c", "--group", "living-n"): """
        Error: Deletion of some consumer groups failed:
        * Group 'living-c' could not be deleted due to: GroupNotEmptyException: The group is not empty.
        * Group 'living-n' could not be deleted due to: GroupNotEmptyException: The group is not empty.""",
}  # fmt: skip


def test_living_groups_look_the_same(alone: str) -> None:
    fill(alone, "living", 2)
    classic = member(alone, "living-c", "classic", "living", 3)
    new = member(alone, "living-n", "consumer", "living", 4)

    with ThreadPoolExecutor(TOOLS_AT_ONCE) as pool, closing(classic), closing(new):
        said = pool.map(lambda words: tool(words[0], alone, *words[1:]), LIVING)
        for (words, expected), found in zip(LIVING.items(), said, strict=True):
            assert lines(found) == lines(expected), words


def test_groups_at_rest_are_moved_and_deleted(alone: str) -> None:
    fill(alone, "resting", 3)
    for group, protocol in {"resting-c": "classic", "resting-n": "consumer"}.items():
        with closing(member(alone, group, protocol, "resting", 3)) as consumer:
            consumer.commit(offsets=[confluent_kafka.TopicPartition("resting", 1, 2)], asynchronous=False)
    both = ("--group", "resting-c", "--group", "resting-n")

    steps = {
        ("--reset-offsets", *both, "--topic", "resting:0,2", "--to-offset", "99", "--dry-run"): """
            GROUP TOPIC PARTITION NEW-OFFSET
            resting-c resting 0 5
            resting-c resting 2 5
            resting-n resting 0 5
            resting-n resting 2 5""",
        ("--reset-offsets", *both, "--all-topics", "--shift-by", "-1", "--execute"): """
            GROUP TOPIC PARTITION NEW-OFFSET
            resting-c resting 0 2
            resting-c resting 1 1
            resting-n resting 0 2
            resting-n resting 1 1""",
        ("--delete-offsets", "--group", "resting-c", "--topic", "resting:1"): """
            Request succeeded for deleting offsets from group resting-c.
            TOPIC PARTITION STATUS
            resting 1 Successful""",
        ("--describe", *both): """
            GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID
            resting-c resting 0 2 5 3 - - -
            GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID
            resting-n resting 0 2 5 3 - - -
            resting-n resting 1 1 5 4 - - -""",
        ("--delete", *both, "--group", "gone"): """
            Error: Deletion of some consumer groups failed:
            * Group 'gone' could not be deleted due to: GroupIdNotFoundException: The group id does not exist.
            These consumer groups were deleted successfully: 'resting-n', 'resting-c'""",
    }  # fmt: skip
    for words, expected in steps.items():
        assert lines(tool(CONSUMER_GROUPS, alone, *words)) == lines(expected), words

    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": alone})
    there = admin.list_consumer_groups().result(20).valid
    assert not [each for each in there if each.group_id.startswith("resting")]


# -- transactions ----------------------------------------------------------------------------------


def test_a_transaction_is_described_and_terminated(alone: str) -> None:
    fill(alone, "open", 1)
    producer = kafka.KafkaProducer(bootstrap_servers=alone, transactional_id="t", transaction_timeout_ms=600000)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("open", b"not to be seen", partition=0).get(20)

    (listed,) = rows(tool(TRANSACTIONS, alone, "list"))
    (described,) = rows(tool(TRANSACTIONS, alone, "describe", "--transactional-id", "t"))
    held = rows(tool(TRANSACTIONS, alone, "describe-producers", "--topic", "open", "--partition", "0"))
    said = tool(TRANSACTIONS, alone, "forceTerminateTransaction", "--transactionalId", "t")
    (after,) = rows(tool(TRANSACTIONS, alone, "list"))

    who = listed["ProducerId"]
    assert listed == {"TransactionalId": "t", "Coordinator": "1", "ProducerId": who, "TransactionState": "Ongoing"}
    begun, lasts = int(described["CurrentTransactionStartTimeMs"]), int(described["TransactionDurationMs"])
    assert abs(begun + lasts - time.time() * 1000) < 60_000
    assert described == {
        "CoordinatorId": "1",
        "TransactionalId": "t",
        "ProducerId": who,
        "ProducerEpoch": "0",
        "TransactionState": "Ongoing",
        "TransactionTimeoutMs": "600000",
        "CurrentTransactionStartTimeMs": str(begun),
        "TransactionDurationMs": str(lasts),
        "TopicPartitions": "open-0",
    }
    assert [{**each, "LastTimestamp": ""} for each in held] == [
        {
            "ProducerId": who,
            "ProducerEpoch": "0",
            "LatestCoordinatorEpoch": "-1",
            "LastSequence": "0",
            "LastTimestamp": "",
            "CurrentTransactionStartOffset": "5",
        }
    ]
    assert said == ""
    assert after == {**listed, "TransactionState": "Empty"}
    with pytest.raises(kafka.errors.KafkaError):
        producer.commit_transaction()
    producer.close(timeout=1)
    assert readable(alone, "open") == [b"0", b"1", b"2", b"3", b"4"]


def hang(bootstrap: str, topic: str, time_ms: int) -> None:
    """Write for a transaction that nobody has begun."""
    record = Record(0, time_ms, None, b"lost")
    batch = build([record], producer_id=4000, producer_epoch=0, base_sequence=0, transactional=True)
    Topic = ProduceRequest.Topic
    data = [Topic(name=topic, partition_data=[Topic.Partition(index=0, records=batch)])]
    request = ProduceRequest(transactional_id="lost", acks=-1, timeout_ms=5000, topic_data=data)

    async def work() -> ProduceResponse:
        async with Client([Address.parse(bootstrap)], Blocking()) as client:
            return await client.call(request, ProduceResponse, cap=11)

    assert run(work()).responses[0].partition_responses[0].error_code == 0


def test_a_hanging_transaction_is_found_and_aborted(alone: str) -> None:
    fill(alone, "hanging", 1)
    an_hour_ago = int(time.time() * 1000) - 3_600_000
    hang(alone, "hanging", an_hour_ago)

    (found,) = rows(tool(TRANSACTIONS, alone, "find-hanging", "--broker-id", "1"))
    said = tool(TRANSACTIONS, alone, "abort", "--topic", "hanging", "--partition", "0", "--start-offset", "5")

    assert found == {
        "Topic": "hanging",
        "Partition": "0",
        "ProducerId": "4000",
        "ProducerEpoch": "0",
        "CoordinatorEpoch": "-1",
        "StartOffset": "5",
        "LastTimestamp": str(an_hour_ago),
        "Duration(min)": found["Duration(min)"],
    }
    assert found["Duration(min)"] in ("60", "61")
    assert said == ""
    assert rows(tool(TRANSACTIONS, alone, "find-hanging", "--broker-id", "1")) == []
    assert readable(alone, "hanging") == [b"0", b"1", b"2", b"3", b"4"]
