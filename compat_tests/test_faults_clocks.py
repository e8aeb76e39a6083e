"""The clocks of one broker jump, or stand still, under a producer and a reader: nobody is taken for dead or behind,
nothing is deleted early, and nothing acknowledged is lost.

TRILOGUE_FAULTS says how often each fault is brought about (`make faults`).
"""

import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from compat_tests.brokers import Place
from compat_tests.keeper import Keeper, keeper
from compat_tests.lies import Lies, compiled
from compat_tests.trial import PARTITIONS, TIMES, Loaded, trial

pytestmark = [pytest.mark.java, pytest.mark.slow]

AHEAD_SECONDS = 3590.0
"""A little less than producers' clocks may be ahead of a broker's (`message.timestamp.after.max.ms`)."""

LAG_SECONDS = 3
SETTINGS = {
    "replica.lag.time.max.ms": str(LAG_SECONDS * 1000),
    "zookeeper.session.timeout.ms": "12000",  # longer than time stands still
    "log.retention.ms": "7200000",  # longer than clocks jump
    "log.retention.check.interval.ms": "200",
    "log.roll.ms": "1000",
}


class Lied(NamedTuple):
    trial: Loaded
    lies: dict[int, Lies]
    zookeeper: Keeper

    def changes(self) -> list[int]:
        """How often anything was decided about each partition, and the life that each broker is in."""
        states = [f"/brokers/topics/t/partitions/{index}/state" for index in range(PARTITIONS)]
        return [
            *(self.zookeeper.exists(path).version for path in states),
            *(self.zookeeper.exists(f"/brokers/ids/{each}").czxid for each in self.lies),
        ]


@pytest.fixture(scope="module")
def lied(only_ours: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lied]:
    folder = tmp_path_factory.mktemp("clocks")
    library = compiled(folder)
    lies = {each: Lies(library, folder / f"lies-{each}") for each in (1, 2, 3)}
    places = {each: Place(variables=lies[each].variables) for each in lies}
    with trial(folder, SETTINGS, places) as it, keeper(it.cluster.zookeeper.address) as zookeeper:
        it.all_in_sync()
        yield Lied(it, lies, zookeeper)
        assert it.history.errors == []


@pytest.mark.parametrize("seconds", [AHEAD_SECONDS, -AHEAD_SECONDS], ids=["ahead", "back"])
def test_the_wall_clock_of_a_broker_jumps(lied: Lied, seconds: float) -> None:
    it = lied.trial
    for number in range(TIMES):
        victim, before = (it.leader(), it.controller())[number % 2], lied.changes()
        for _ in range(2):  # there and back again
            with lied.lies[victim].wall_clock_ahead(seconds):
                it.writes_go_on()
                time.sleep(1)
            it.writes_go_on()
        assert lied.changes() == before


def test_time_stands_still_and_then_goes_on(lied: Lied) -> None:
    """For longer than a follower may be behind, which by the leader's clock they all are then, and not for so long that
    ZooKeeper misses it."""
    it = lied.trial
    for _ in range(TIMES):
        victim, before = it.leader(), lied.changes()
        with lied.lies[victim].time_stands_still():
            it.writes_go_on()
            time.sleep(1.2 * LAG_SECONDS)
        it.writes_go_on()
        time.sleep(LAG_SECONDS)
        assert lied.changes() == before
