"""Brokers and copiers die, hang and stop while records are copied exactly once: every record is copied, once, in order,
and no transaction is left open.

TRILOGUE_FAULTS says how often each fault is brought about (`make faults`).
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from compat_tests.brokers import Cluster
from compat_tests.copying import PARTITIONS, SINK, SOURCE, Copiers, Feeder, check, copied, go_on
from compat_tests.inquiry import GROUP, NOBODY, TRANSACTION, coordinator
from compat_tests.trial import SESSION_MS, TIMES, Trial, tried

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
        feeder, copiers = Feeder(it.cluster.bootstrap), Copiers(it.cluster.bootstrap, folder, 2, IMPATIENT)
        feeder.start()
        copiers.start()
        try:
            go_on(it, copiers)
            yield it, copiers
            go_on(it, copiers)
        finally:
            feeder.stop()
            try:
                it.until("everything is copied", lambda: done(it, copiers, feeder))
                copiers.stop()
            finally:
                copiers.kill_all()
        assert feeder.errors == []
        check(it, feeder.given)
        print(
            f"\n{sum(map(len, feeder.given))} records, {copiers.said('committed')} transactions,"
            f" {copiers.said('aborted')} aborted, {copiers.ended} copiers ended",
            end=" ",
        )


def done(it: Trial, copiers: Copiers, feeder: Feeder) -> bool:
    copiers.revive()
    return sum(map(len, copied(it.cluster.bootstrap))) >= sum(map(len, feeder.given))


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
        for _ in range(TIMES):
            kill_and_restart(it, copiers, lambda: coordinator(it, TRANSACTION, f"{copiers.group}-0"))
            kill_and_restart(it, copiers, lambda: coordinator(it, GROUP, copiers.group))
            kill_and_restart(it, copiers, lambda: it.leader(0, SINK))


def test_copiers_are_killed_and_brokers_hang(tmp_path: Path) -> None:
    with copying(tmp_path) as (it, copiers):
        for number in range(TIMES):
            copiers.kill(number % 2)
            go_on(it, copiers)
            victim = coordinator(it, TRANSACTION, f"{copiers.group}-0")
            with it.hanging(victim):
                time.sleep(2 * SESSION_MS / 1000)
                go_on(it, copiers)
            it.all_in_sync()
