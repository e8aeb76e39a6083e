"""The recipes of docs/testing.md with clients of other languages, where they have something of their own to show.

They meet faults here, which only brokers for tests have: whatever the suite's target, these are of this process.
"""

import time

import clients
import jars
import pytest

from compat_tests.program import Program, Record, Refused
from compat_tests.running import missing_tool
from trilogue.testing import Broker, Cluster

JAVA, NODE, GO = "java-4.4.0", "kafkajs", "sarama"
EVERY = pytest.mark.parametrize("name", [pytest.param(JAVA, marks=pytest.mark.java), NODE, GO])
ONE = [Record(None, b"1")]


@pytest.fixture
def program(tmp_path):
    """`program(name, broker, **settings)` is that client, running."""
    running = []

    def start(name, broker, **settings):
        try:
            command = clients.command(name)
        except (clients.Missing, jars.Missing) as missing:
            missing_tool(missing)
        given = {key.replace("_", "."): value for key, value in settings.items()}
        running.append(Program(command, broker.bootstrap, given, tmp_path / f"{len(running)}.log"))
        return running[-1]

    yield start
    for each in running:
        each.close()


def until(look, seconds=30):
    deadline = time.monotonic() + seconds
    while not look():
        assert time.monotonic() < deadline


def end(broker, topic="orders"):
    return broker.server.broker.replicas.find(topic, 0).log.end_offset


@EVERY
def test_retry_after_not_leader(program, name):
    with Broker() as broker:
        client = program(name, broker)
        client.ask("create", topic="orders", partitions=1)
        fault = broker.faults.on("Produce", topic="orders", times=2).answer("NOT_LEADER_OR_FOLLOWER")

        assert client.write("orders", ONE) == [0]
        assert (fault.fired, end(broker)) == (2, 1)


@EVERY
def test_a_lost_acknowledgement_is_no_second_record_of_an_idempotent_producer(program, name):
    with Broker() as broker:
        client = program(name, broker)
        client.ask("create", topic="orders", partitions=1)
        fault = broker.faults.on("Produce", topic="orders", nth=1).close("after")

        client.write("orders", ONE, idempotent="true")
        assert (fault.fired, fault.seen, end(broker)) == (1, 2, 1)


@pytest.mark.java
def test_a_slow_broker_is_given_up(program):
    with Broker() as broker:
        client = program(JAVA, broker, request_timeout_ms=300, delivery_timeout_ms=400)
        client.ask("create", topic="orders", partitions=1)
        broker.faults.on("Produce", topic="orders").delay(2)

        with pytest.raises(Refused, match="TimeoutException"):
            client.write("orders", ONE)
        assert end(broker) >= 1  # what it gave up is written all the same


@pytest.mark.java
def test_a_poison_message_is_found_by_its_checksum(program):
    with Broker() as broker:
        client = program(JAVA, broker)
        client.ask("create", topic="orders", partitions=1)
        client.write("orders", ONE)
        with broker.faults.on("Fetch", topic="orders").corrupt(), pytest.raises(Refused, match=r"corrupt|invalid"):
            client.read("orders", 1)

        (record,) = program(JAVA, broker).read("orders", 1)
        assert record.value == b"1"


@pytest.mark.java
def test_the_coordinator_moves_before_the_transaction_ends(program):
    with Cluster(transaction_state_log_num_partitions=1) as cluster:
        client = program(JAVA, cluster)
        client.ask("create", topic="orders", partitions=1)
        client.ask("transact", topic="orders", records="-,30", name="shop", end="commit")
        before = cluster.leader_of("__transaction_state")
        after = before % 3 + 1
        late = cluster[before].faults.on("EndTxn", transactional_id="shop").answer("NOT_COORDINATOR")
        client.tell("transact", topic="orders", records="-,31", name="shop", end="commit")
        until(lambda: late.fired)  # it is about to commit, and looks for its coordinator in vain
        cluster.move_leader("__transaction_state", to=after)
        assert client.hear() == {}

        found = client.read("orders", 2, isolation="read_committed")
        assert [each.value for each in found] == [b"0", b"1"]


@pytest.mark.java
def test_an_expired_session_gives_its_partitions_to_the_other(program):
    with Broker(num_partitions=4) as broker:
        one, other = program(JAVA, broker), program(JAVA, broker)
        one.ask("create", topic="orders", partitions=4)
        for member in (one, other):
            member.ask("join", topic="orders", group="shop")
        until(lambda: [len(each.ask("poll", seconds=0.2)["assignment"]) for each in (one, other)] == [2, 2])
        one.kill()

        broker.advance(60, grace=2)

        until(lambda: len(other.ask("poll", seconds=0.2)["assignment"]) == 4)


@pytest.mark.java
def test_retention_overtakes_a_consumer(program):
    with Broker() as broker:
        client = program(JAVA, broker, auto_offset_reset="earliest")
        client.ask("create", topic="orders", partitions=1)
        client.write("orders", [Record(None, b"%d" % number) for number in range(3)])
        broker.advance(8 * 24 * 3600)
        broker.run_retention()
        client.ask("produce", topic="orders", records="-,33", timestamp=broker.server.broker.clock())

        assert [each.value for each in client.read("orders", 1, start=1)] == [b"3"]
