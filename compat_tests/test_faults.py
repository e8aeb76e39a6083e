"""Brokers die, hang and stop under a producer and a reader: nothing acknowledged is lost, doubled or moved, and in the
end all replicas are the same, byte for byte.

TRILOGUE_FAULTS says how often each fault is brought about (`make faults`).
"""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from zookeeper import ZooKeeper

from compat_tests.trial import ROUNDS, SESSION_MS, TIMES, trial

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.usefixtures("only_ours")]


def test_a_leader_is_killed(tmp_path: Path) -> None:
    with trial(tmp_path) as it:
        for _ in range(TIMES):
            victim = it.leader()
            it.cluster.brokers[victim].kill()
            it.until("another leads", lambda victim=victim: it.leader() not in (victim, -1))
            it.writes_go_on()
            it.cluster.brokers[victim].start()
            it.all_in_sync()


def test_the_controller_is_killed(tmp_path: Path) -> None:
    with trial(tmp_path) as it:
        for _ in range(TIMES):
            victim = it.controller()
            it.cluster.brokers[victim].kill()
            it.until("another is", lambda victim=victim: it.controller() not in (victim, -1))
            it.cluster.brokers[victim].start()
            it.all_in_sync()


def test_all_are_killed_at_once(tmp_path: Path) -> None:
    with trial(tmp_path) as it:
        for _ in range(TIMES):
            for each in it.cluster.brokers.values():
                each.kill()
            for each in it.cluster.brokers.values():
                each.start()
            it.all_in_sync()
            it.writes_go_on()


def test_one_after_the_other_is_restarted(tmp_path: Path) -> None:
    """No error reaches the producer, which has stock settings but for its patience."""
    with trial(tmp_path) as it:
        for broker in it.cluster.brokers.values():
            it.history.begin_gap()
            assert broker.stop() == 0
            broker.start()
            it.all_in_sync()
        assert it.history.errors == []


def test_a_leader_hangs_and_comes_back_as_a_zombie(tmp_path: Path) -> None:
    with trial(tmp_path) as it:
        for _ in range(TIMES):
            victim = it.leader()
            with it.hanging(victim):
                time.sleep(2 * SESSION_MS / 1000)
                it.until("another leads", lambda victim=victim: it.leader() not in (victim, -1))
                it.writes_go_on()
            it.all_in_sync()


def test_a_follower_hangs(tmp_path: Path) -> None:
    with trial(tmp_path) as it:
        for _ in range(TIMES):
            leader = it.leader()
            victim = next(each for each in it.cluster.brokers if each != leader)
            with it.hanging(victim):
                it.until("it is out of sync", lambda: it.in_sync(0) == 2)
                it.writes_go_on()
            it.all_in_sync()


@pytest.mark.parametrize("sessions", [0.5, 3.0])
@pytest.mark.parametrize("end", [ZooKeeper.stop, ZooKeeper.kill])
def test_zookeeper_is_away(tmp_path: Path, end: Callable[[ZooKeeper], None], sessions: float) -> None:
    with trial(tmp_path) as it:
        for _ in range(ROUNDS):
            end(it.cluster.zookeeper)
            time.sleep(sessions * SESSION_MS / 1000)
            assert it.in_sync(0) == len(it.cluster.brokers), "nobody is thrown out meanwhile"
            it.writes_go_on()
            it.cluster.zookeeper.start()
            it.until("all are registered", lambda: it.brokers() == len(it.cluster.brokers))
            it.all_in_sync()
