"""A living group is rolled from the classic protocol to the new one (KIP-848) and back, member by member.

Records flow all the while.  None is lost, and no partition is owned twice: every member notes what it is given and what
it gives back, and all of them are in this process, so the order of the notes is the order of the events.
"""

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import confluent_kafka
import confluent_kafka.admin
import pytest

from compat_tests.brokers import BEAT_SECONDS, SESSION_SECONDS
from compat_tests.test_groups import new_topic

PARTITIONS = 4
PATIENCE_SECONDS = 40
"""For one step.  Each takes a few heartbeats."""


class Ledger:
    """Who owns what, and what has been read, as told by the members."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.owner: dict[int, str] = {}
        self.wrong: list[str] = []
        self.read: set[bytes] = set()

    def take(self, member: str, partitions: list[int]) -> None:
        with self.lock:
            for index in partitions:
                if index in self.owner:
                    self.wrong.append(f"{member} was given {index}, which {self.owner[index]} has")
                self.owner[index] = member

    def give_back(self, member: str, partitions: list[int]) -> None:
        with self.lock:
            for index in partitions:
                if self.owner.pop(index, None) != member:
                    self.wrong.append(f"{member} gave back {index}, which it did not have")

    def owners(self) -> dict[str, int]:
        """How many partitions each member has."""
        with self.lock:
            return {member: list(self.owner.values()).count(member) for member in self.owner.values()}


class Member:
    """A consumer in a thread, which commits whatever it has read before it goes on."""

    def __init__(self, name: str, ledger: Ledger, topic: str, settings: dict[str, Any]) -> None:
        self._name, self._ledger = name, ledger
        self._consumer = confluent_kafka.Consumer({**settings, "client.id": name})
        self._consumer.subscribe([topic], on_assign=self._given, on_revoke=self._revoked, on_lost=self._lost)
        self._leaves = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name)
        self._thread.start()

    def leave(self) -> None:
        self._leaves.set()
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive(), f"{self._name} does not end"
        if self._error:
            raise self._error

    def _run(self) -> None:
        try:
            while not self._leaves.is_set():
                self._read()
        except BaseException as error:
            self._error = error
        finally:
            self._consumer.close()

    def _read(self) -> None:
        found = [each for each in self._consumer.consume(100, 0.05) if each.error() is None]
        if found:
            with self._ledger.lock:
                self._ledger.read.update(each.value() for each in found)
            self._commit()

    def _commit(self) -> None:
        try:
            self._consumer.commit(asynchronous=False)
        except confluent_kafka.KafkaException as error:
            # In the middle of a rebalance: what was read is read again by whoever is next.
            if error.args[0].code() not in REBALANCING:
                raise

    def _given(self, _: Any, places: list[confluent_kafka.TopicPartition]) -> None:
        self._ledger.take(self._name, [each.partition for each in places])

    def _revoked(self, _: Any, places: list[confluent_kafka.TopicPartition]) -> None:
        self._ledger.give_back(self._name, [each.partition for each in places])

    def _lost(self, _: Any, places: list[confluent_kafka.TopicPartition]) -> None:
        """Fenced.  Others may have had it before we knew: nothing in this test may lead to that."""
        self._ledger.wrong.append(f"{self._name} has lost {places}")
        self._revoked(_, places)


REBALANCING = (
    confluent_kafka.KafkaError.ILLEGAL_GENERATION,
    confluent_kafka.KafkaError.REBALANCE_IN_PROGRESS,
    confluent_kafka.KafkaError.STALE_MEMBER_EPOCH,
    confluent_kafka.KafkaError.UNKNOWN_MEMBER_ID,
    confluent_kafka.KafkaError._NO_OFFSET,
)


@contextmanager
def flowing(bootstrap: str, topic: str) -> Iterator[Callable[[], set[bytes]]]:
    """A thread that writes all the time.  What it has written, once it has been asked to stop."""
    written: set[bytes] = set()
    stops = threading.Event()
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "linger.ms": 1})

    def run() -> None:
        number = 0
        while not stops.wait(0.005):
            producer.produce(topic, str(number).encode(), partition=number % PARTITIONS)
            producer.poll(0)
            written.add(str(number).encode())
            number += 1

    def stop() -> set[bytes]:
        stops.set()
        thread.join()
        assert producer.flush(20) == 0
        return written

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield stop
    finally:
        stop()


def settings(bootstrap: str, group: str, protocol: str, strategy: str) -> dict[str, Any]:
    made: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "fetch.wait.max.ms": 50,
    }
    if protocol == "classic":
        made |= {
            "session.timeout.ms": SESSION_SECONDS * 1000,
            "heartbeat.interval.ms": int(BEAT_SECONDS * 1000),
            "partition.assignment.strategy": strategy,
        }
    return made


def wait_until(condition: Callable[[], bool], ledger: Ledger) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert ledger.wrong == []
        assert time.monotonic() < deadline, ledger.owners()
        time.sleep(0.05)


def kind(bootstrap: str, group: str) -> str:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    listed = {each.group_id: each for each in admin.list_consumer_groups().result(20).valid}
    return str(listed[group].type.name)


NEW, OLD = "consumer", "classic"
ROUND_TRIP = [(OLD, OLD), (NEW, OLD), (NEW, NEW), (OLD, NEW), (OLD, OLD)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "steps"),
    [
        ("range", ROUND_TRIP),
        # Back only: a group whose assignments carry notes of the assignor, as librdkafka's do here, is not upgraded.
        ("cooperative-sticky", ROUND_TRIP[2:]),
    ],
)
def test_a_group_is_rolled_from_one_protocol_to_the_other_while_records_flow(
    quick_bootstrap: str, strategy: str, steps: list[tuple[str, str]]
) -> None:
    bootstrap = quick_bootstrap
    topic, group = new_topic(bootstrap, PARTITIONS), f"rolled-{uuid.uuid4().hex[:8]}"
    ledger, kinds = Ledger(), []
    members: list[tuple[str, str, Member]] = []
    with flowing(bootstrap, topic) as stop, ExitStack() as living:

        def start(protocol: str) -> tuple[str, str, Member]:
            name = f"{protocol}-{uuid.uuid4().hex[:4]}"
            made = Member(name, ledger, topic, settings(bootstrap, group, protocol, strategy))
            living.callback(made.leave)
            return name, protocol, made

        for step in steps:
            for at, protocol in enumerate(step):
                if len(members) <= at:
                    members.append(start(protocol))
                elif members[at][1] != protocol:
                    members[at][2].leave()
                    members[at] = start(protocol)
            names = [name for name, _, _ in members]
            wait_until(lambda names=names: ledger.owners() == dict.fromkeys(names, 2), ledger)
            before = len(ledger.read)
            wait_until(lambda before=before: len(ledger.read) > before + 20, ledger)
            kinds.append(kind(bootstrap, group))
        written = stop()
        wait_until(lambda: ledger.read >= written, ledger)

    assert kinds == ["CONSUMER" if NEW in step else "CLASSIC" for step in steps]
    assert ledger.wrong == []
    assert ledger.read == written
