"""The broker's own tasks are supervised."""

import logging
from itertools import pairwise

import trio
from trio.testing import MockClock

from trilogue.broker.server import FIRST_PAUSE, LONGEST_PAUSE, supervised


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
