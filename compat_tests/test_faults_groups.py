"""Members of groups die, and their coordinators die, stop and hang: no partition has two owners in one generation, what
is committed never goes back, everything is read, and each group works again soon.

TRILOGUE_FAULTS says how often each fault is brought about (`make faults`).
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from compat_tests.brokers import BEAT_SECONDS, Cluster
from compat_tests.brokers import SETTINGS as OFTEN
from compat_tests.copying import PARTITIONS as COPIED
from compat_tests.copying import SINK, SOURCE, Copiers, Feeder, copier_commands, go_on
from compat_tests.history import History
from compat_tests.inquiry import GROUP, NOBODY, coordinator
from compat_tests.membership import Group, Offsets
from compat_tests.trial import ROUNDS, SESSION_MS, Trial, tried

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.usefixtures("only_ours")]

MEMBER_MS = 6000
"""How long a member may be silent.  So long it also waits for a coordinator: less than another takes to be one, and
librdkafka begins anew as somebody else, whose commits of before are fenced."""
PARTITIONS = 3
PER_SECOND = 60
SETTINGS = {
    **OFTEN,
    "offsets.topic.num.partitions": "1",  # so that one broker coordinates all of them
    "group.consumer.session.timeout.ms": str(MEMBER_MS),
    "group.consumer.min.session.timeout.ms": str(MEMBER_MS),
}
CLASSIC = {
    "session.timeout.ms": str(MEMBER_MS),
    "heartbeat.interval.ms": str(int(BEAT_SECONDS * 1000)),
    "socket.timeout.ms": "3000",  # of a broker that hangs; a minute as it comes
}
KINDS = {
    "eager": {**CLASSIC, "partition.assignment.strategy": "range"},
    "cooperative": {**CLASSIC, "partition.assignment.strategy": "cooperative-sticky"},
    "static": {**CLASSIC, "partition.assignment.strategy": "range", "group.instance.id": "member-{}"},
    "consumer": {"group.protocol": "consumer", "socket.timeout.ms": "3000"},
}
SOON_SECONDS = 6.0
"""Beyond the sessions of members and brokers: on two busy cores."""


class Reading(Trial):
    """A producer, and a group of every kind that reads what it writes."""

    def __init__(self, several: Cluster, folder: Path) -> None:
        super().__init__(several, {"t": PARTITIONS})
        self.groups = [Group(self, folder, kind, "t", 2, given) for kind, given in KINDS.items()]
        self.offsets = Offsets(self, [each.name for each in self.groups])
        self.took: dict[str, float] = {}
        """How long it was, at most, until every group worked again; by what had happened."""

    def work_on(self, what: str, since: float, sessions_ms: int) -> None:
        seconds = sessions_ms / 1000 + SOON_SECONDS
        self.until(f"all groups work after: {what}", lambda: all(each.works(since) for each in self.groups), seconds)
        self.took[what] = max(self.took.get(what, 0), time.monotonic() - since)

    def coordinator(self) -> int:
        return coordinator(self, GROUP, self.groups[0].name)


@contextmanager
def reading(folder: Path) -> Iterator[Reading]:
    with tried(folder, lambda several: Reading(several, folder), SETTINGS) as it:
        history = History(it.cluster.bootstrap, "t", PARTITIONS, PER_SECOND)
        offsets = it.offsets
        try:
            history.start()
            offsets.start()
            it.until("all groups work", lambda: all(each.works(0) for each in it.groups))
            yield it
        finally:
            history.stop()
            try:
                ends = [len(history.log()[part]) for part in range(PARTITIONS)]
                it.until("everything is read", lambda: not any(each.problems(ends) for each in it.groups), seconds=20)
            finally:
                offsets.stop()
                for each in it.groups:
                    each.kill_all()
        assert history.check() == []
        assert offsets.went_back == []
        assert offsets.answers > 10
        print(f"\n{ends} read; {offsets.answers} times offsets were asked for; worked again after {it.took}", end=" ")


def goes(it: Reading, what: str, end: Callable[[int], object]) -> None:
    """The coordinator, and comes back."""
    it.until("there is one", lambda: it.coordinator() != NOBODY)
    victim, since = it.coordinator(), time.monotonic()
    end(victim)
    it.work_on(what, since, SESSION_MS + MEMBER_MS)
    it.cluster.brokers[victim].start()
    it.all_in_sync()


def test_members_and_coordinators_come_and_go(tmp_path: Path) -> None:
    with reading(tmp_path) as it:
        for number in range(ROUNDS):
            since = time.monotonic()
            for each in it.groups:
                each.kill(number % 2)
            it.work_on("members were killed", since, MEMBER_MS)
            for each in it.groups:
                each.revive(number % 2)
            goes(it, "their coordinator was killed", lambda victim: it.cluster.brokers[victim].kill())
            goes(it, "their coordinator was stopped", lambda victim: it.cluster.brokers[victim].stop())
            since, victim = time.monotonic(), it.coordinator()
            with it.offsets.asked_while_hanging(victim):
                time.sleep(2 * SESSION_MS / 1000)
                it.work_on("their coordinator hung", since + 1, 2 * SESSION_MS + MEMBER_MS)
            it.all_in_sync()


def test_brokers_are_restarted_one_after_the_other_and_nobody_hears_of_it(tmp_path: Path) -> None:
    """Members and a copier with stock settings are told nothing that they have to do something about."""
    topics = {SOURCE: COPIED, SINK: COPIED}
    with tried(tmp_path, lambda several: Trial(several, topics)) as it:
        bootstrap = it.cluster.bootstrap
        feeder, copiers = Feeder(bootstrap), Copiers(copier_commands(bootstrap, 1, {}), tmp_path)
        stock = {"enable.auto.commit": "true"}
        groups = [
            Group(it, tmp_path, "classic", SOURCE, 2, stock),
            Group(it, tmp_path, "consumer", SOURCE, 2, {**stock, "group.protocol": "consumer"}),
        ]
        feeder.start()
        copiers.start()
        try:
            it.until("all groups work", lambda: all(each.works(0) for each in groups))
            go_on(it, copiers)
            for broker in it.cluster.brokers.values():
                since = time.monotonic()
                assert broker.stop() == 0
                broker.start()
                it.all_in_sync()
                it.until("all groups work", lambda since=since: all(each.works(since) for each in groups))
                go_on(it, copiers)
        finally:
            feeder.stop()
            copiers.stop()
            for each in groups:
                each.kill_all()
        heard = {each.name: each.failed() for each in groups}
        heard["copiers"] = [f"{copiers.said(word)} {word}" for word in ("again", "aborted") if copiers.said(word)]
        assert (feeder.errors, heard, copiers.ended) == ([], {"classic": [], "consumer": [], "copiers": []}, 0)
