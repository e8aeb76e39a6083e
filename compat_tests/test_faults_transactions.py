"""Brokers and copiers die, hang and stop while records are copied exactly once: every record is copied, once, in order,
and no transaction is left open.

TRILOGUE_FAULTS says how often each fault is brought about (`make faults`).
"""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import confluent_kafka
import pytest

from compat_tests.brokers import Cluster
from compat_tests.copying import (
    COPIERS,
    PARTITIONS,
    SINK,
    SOURCE,
    Copiers,
    Feeder,
    check,
    copied,
    copier_commands,
    fill,
    go_on,
)
from compat_tests.inquiry import GROUP, NOBODY, TRANSACTION, coordinator, open_transactions
from compat_tests.trial import ROUNDS, SESSION_MS, TIMES, Trial, tried
from compat_tests.workers import java

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.usefixtures("only_ours")]

SETTINGS = {"offsets.topic.num.partitions": "3", "transaction.state.log.num.partitions": "3"}
IMPATIENT = {"socket.timeout.ms": "3000", "session.timeout.ms": "6000", "transaction.timeout.ms": "10000"}
"""Of clients: of a broker that hangs, or for whoever takes over from a copier that was killed."""


def topics(several: Cluster) -> Trial:
    return Trial(several, {SOURCE: PARTITIONS, SINK: PARTITIONS})


@contextmanager
def copying(folder: Path) -> Iterator[tuple[Trial, Copiers]]:
    """While it lasts records are written and copied; in the end all of them are there."""
    with tried(folder, topics, SETTINGS) as it:
        bootstrap = it.cluster.bootstrap
        feeder, copiers = Feeder(bootstrap), Copiers(copier_commands(bootstrap, 2, IMPATIENT), folder)
        feeder.start()
        copiers.start()
        try:
            go_on(it, copiers)
            yield it, copiers
            go_on(it, copiers)
        finally:
            feeder.stop()
            try:
                it.until("everything is copied", lambda: done(it, copiers, feeder.given))
                copiers.stop()
            finally:
                copiers.kill_all()
        assert feeder.errors == []
        check(it, feeder.given)
        print(
            f"\n{sum(map(len, feeder.given))} records, {copiers.said('committed')} transactions,"
            f" {copiers.said('aborted')} aborted, {copiers.ended} copiers ended, {copiers.hung} hung",
            end=" ",
        )


def done(it: Trial, copiers: Copiers, given: list[list[str]]) -> bool:
    copiers.revive()
    return sum(map(len, copied(it.cluster.bootstrap))) >= sum(map(len, given))


def kill_and_restart(it: Trial, copiers: Copiers, find: Callable[[], int]) -> None:
    """Whoever is found, until somebody else is and all goes on."""
    it.until("somebody is it", lambda: find() != NOBODY)
    victim = find()
    it.cluster.brokers[victim].kill()
    it.until("another is", lambda: find() not in (victim, NOBODY))
    go_on(it, copiers)
    it.cluster.brokers[victim].start()
    it.all_in_sync()


def test_coordinators_and_leaders_are_killed(tmp_path: Path) -> None:
    with copying(tmp_path) as (it, copiers):
        for _ in range(ROUNDS):
            kill_and_restart(it, copiers, lambda: coordinator(it, TRANSACTION, f"{COPIERS}-0"))
            kill_and_restart(it, copiers, lambda: coordinator(it, GROUP, COPIERS))
            kill_and_restart(it, copiers, lambda: it.leader(0, SINK))


def test_copiers_are_killed_and_brokers_hang(tmp_path: Path) -> None:
    with copying(tmp_path) as (it, copiers):
        for number in range(ROUNDS):
            copiers.kill(number % 2)
            go_on(it, copiers)
            victim = coordinator(it, TRANSACTION, f"{COPIERS}-0")
            with it.hanging(victim):
                time.sleep(2 * SESSION_MS / 1000)
                go_on(it, copiers)
            it.all_in_sync()


def test_the_coordinator_is_killed_in_the_middle_of_a_commit(tmp_path: Path) -> None:
    """Before it has decided, after that, and between the markers: the commit succeeds all the same."""
    chance = random.Random(7)
    with tried(tmp_path, topics, SETTINGS) as it:
        producer = transactional(it, "cut", timeout_ms=60_000)
        producer.init_transactions(30)
        given: list[list[str]] = [[] for _ in range(PARTITIONS)]
        for number in range(2 * TIMES):
            producer.begin_transaction()
            for part in range(PARTITIONS):
                producer.produce(SINK, f"N{number}", partition=part)
                given[part].append(f"N{number}")
            assert producer.flush(30) == 0
            victim = coordinator(it, TRANSACTION, "cut")
            cut = threading.Timer(chance.uniform(0, 0.02), it.cluster.brokers[victim].kill)
            cut.start()
            insist(producer.commit_transaction)
            cut.join()
            it.cluster.brokers[victim].start()
            it.all_in_sync()
        check(it, given)


def test_a_transaction_that_was_left_open_is_aborted_in_time_though_its_coordinator_dies(tmp_path: Path) -> None:
    with tried(tmp_path, topics, SETTINGS) as it:
        for number in range(ROUNDS):
            producer = transactional(it, f"left-{number}", timeout_ms=4000)
            producer.init_transactions(30)
            producer.begin_transaction()
            producer.produce(SINK, "never", partition=0)
            began = time.monotonic()
            assert producer.flush(30) == 0
            assert open_transactions(it) != []
            victim = coordinator(it, TRANSACTION, f"left-{number}")
            it.cluster.brokers[victim].kill()
            it.cluster.brokers[victim].start()
            it.until("it is aborted", lambda: open_transactions(it) == [], seconds=4 + SESSION_MS / 1000 + 5)
            print(f"\naborted after {time.monotonic() - began:.1f} s", end=" ")
            it.all_in_sync()
        check(it, [[], []])
        assert copied(it.cluster.bootstrap, "read_uncommitted")[0] == ["never"] * ROUNDS


def transactional(it: Trial, name: str, timeout_ms: int) -> confluent_kafka.Producer:
    return confluent_kafka.Producer(
        {
            "bootstrap.servers": it.cluster.bootstrap,
            "transactional.id": name,
            "transaction.timeout.ms": timeout_ms,
            "linger.ms": 0,
        }
    )


def insist(call: Callable[[float], None]) -> None:
    """As librdkafka asks: what may be tried again is."""
    while True:
        try:
            return call(30)
        except confluent_kafka.KafkaException as problem:
            if not problem.args[0].retriable():
                raise


RECORDS, A_TRANSACTION = 3000, 20
"""What Java copies in a round, and in how large pieces."""


def test_java_copies_in_the_second_generation_while_brokers_are_killed(tmp_path: Path) -> None:
    """It ends with any error, and is started again: as a static member, so that nobody waits for the one before."""
    with tried(tmp_path, topics, SETTINGS) as it:
        bootstrap = it.cluster.bootstrap
        given = [[f"p{part}-n{number}" for number in range(RECORDS * ROUNDS // 2)] for part in range(PARTITIONS)]
        fill(bootstrap, given)
        command = [*java("Copy", "clients-4.4.0", tmp_path), bootstrap, "java", SOURCE, SINK, str(A_TRANSACTION)]
        copiers = Copiers([command], tmp_path)
        copiers.start()
        try:
            go_on(it, copiers)
            for _ in range(ROUNDS):
                kill_and_restart(it, copiers, lambda: coordinator(it, TRANSACTION, "java"))
                kill_and_restart(it, copiers, lambda: it.leader(0, SINK))
            it.until("everything is copied", lambda: done(it, copiers, given))
        finally:
            copiers.kill_all()
        check(it, given)
        print(
            f"\n{copiers.said('committed')} transactions, {copiers.ended} copiers ended, {copiers.hung} hung", end=" "
        )
