"""What fails is left alone for a while that grows, and counted."""

from trilogue.broker.partitions.replicas import Attempt
from trilogue.broker.partitions.troubles import FIRST_PAUSE_MS, LONGEST_PAUSE_MS, SAID_AGAIN_MS, Troubles

T0, T1 = ("t", 0), ("t", 1)


def test_what_failed_rests_and_nothing_else_does():
    troubles = Troubles()
    assert troubles.failed("compaction", T0, 0) == FIRST_PAUSE_MS

    assert troubles.rests("compaction", T0, FIRST_PAUSE_MS - 1)
    assert not troubles.rests("compaction", T0, FIRST_PAUSE_MS)
    assert not troubles.rests("compaction", T1, 0)
    assert not troubles.rests("retention", T0, 0)


def test_whoever_puts_the_clock_back_does_not_make_it_rest_longer():
    troubles = Troubles()
    troubles.failed("compaction", T0, 5000)

    assert [troubles.rests("compaction", T0, now) for now in (5000, 4999)] == [True, False]


def test_a_log_is_tried_again_in_time_whoever_puts_the_clock_back():
    attempt = Attempt(at_ms=6000, pause_ms=1000, error=OSError())

    assert [attempt.is_due(now) for now in (4999, 5000, 5999, 6000)] == [True, False, False, True]


def test_it_rests_longer_each_time_until_it_succeeds():
    troubles = Troubles()
    pauses = [troubles.failed("compaction", T0, 0) for _ in range(14)]

    assert pauses[:3] == [FIRST_PAUSE_MS, 2 * FIRST_PAUSE_MS, 4 * FIRST_PAUSE_MS]
    assert pauses[-1] == LONGEST_PAUSE_MS
    assert troubles.failures == {"compaction": 14}
    troubles.succeeded("compaction", T0)
    assert not troubles.rests("compaction", T0, 0)
    assert troubles.failed("compaction", T0, 0) == FIRST_PAUSE_MS


def test_what_has_not_passed_is_said_again_after_a_while():
    troubles = Troubles()
    assert troubles.news("/data", 28, 1000)

    assert not troubles.news("/data", 28, 1000 + SAID_AGAIN_MS - 1)
    assert troubles.news("/data", 24, 1000)
    assert troubles.news("/other", 28, 1000)
    assert troubles.news("/data", 28, 1000 + SAID_AGAIN_MS)
    assert troubles.news("/data", 28, 0), "the clock was put back"
