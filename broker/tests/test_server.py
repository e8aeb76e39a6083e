"""A broker begins where it has ended, and its own tasks are supervised."""

import logging
from itertools import pairwise

import trio
from trio.testing import MockClock

from trilogue.broker.network.tests.test_transports import make_topic
from trilogue.broker.server import FIRST_PAUSE, LONGEST_PAUSE, supervised
from trilogue.broker.tests.running import Raw, running


def test_each_start_is_the_next_leader_epoch_and_clients_come_to_a_leader(tmp_path):
    """Nobody is elected in between, for want of anybody who is registered."""
    epochs = []
    for number in range(3):
        with running(log_dirs=str(tmp_path)) as server, Raw(server) as raw:
            if not number:
                make_topic(raw, "t")
            partition = server.broker.replicas.find("t", 0)
            epochs.append((partition.leads, partition.leader_epoch))

    assert epochs == [(True, 0), (True, 1), (True, 2)]


def test_a_task_that_fails_is_begun_again_after_pauses_that_grow(caplog):
    times = []

    async def work():
        times.append(trio.current_time())
        if len(times) < 12:
            raise ZeroDivisionError

    async def main():
        await supervised("retention", work)

    with caplog.at_level(logging.ERROR):
        trio.run(main, clock=MockClock(autojump_threshold=0))

    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert pauses[:3] == [FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE]
    assert pauses[-1] == LONGEST_PAUSE
    assert caplog.records[0].getMessage() == "retention failed, and is begun again in 0.5 s"
    assert len(caplog.records) == 11


def test_a_task_that_was_well_for_long_is_begun_again_soon():
    times = []

    async def work():
        times.append(trio.current_time())
        if len(times) < 3:
            await trio.sleep(LONGEST_PAUSE + 1)
            raise ZeroDivisionError

    async def main():
        await supervised("retention", work)

    trio.run(main, clock=MockClock(autojump_threshold=0))
    assert [later - earlier for earlier, later in pairwise(times)] == [LONGEST_PAUSE + 1.5] * 2
