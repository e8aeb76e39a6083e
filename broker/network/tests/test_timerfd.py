"""An alarm rings once each time it is set, and an epoll hears it."""

import contextlib
import select

import pytest

from trilogue.broker.network.timerfd import Alarm


@pytest.fixture
def alarm():
    with contextlib.closing(Alarm()) as made:
        yield made


@pytest.fixture
def epoll(alarm):
    with select.epoll() as made:
        made.register(alarm.fileno(), select.EPOLLIN)
        yield made


@pytest.mark.parametrize("seconds", [0.0, 1e-12, 0.001, 0.02])
def test_it_rings_until_it_is_heard(alarm, epoll, seconds):
    assert not alarm.armed
    alarm.set(seconds)
    assert alarm.armed

    for _ in range(2):
        assert epoll.poll(10) == [(alarm.fileno(), select.EPOLLIN)]
    alarm.hear()

    assert not alarm.armed
    assert epoll.poll(0) == []


def test_the_last_time_counts(alarm, epoll):
    alarm.set(3600.5)
    assert epoll.poll(0) == []
    alarm.set(0.001)
    assert epoll.poll(10) == [(alarm.fileno(), select.EPOLLIN)]


def test_what_has_not_rung_cannot_be_heard(alarm):
    alarm.set(3600)
    with pytest.raises(BlockingIOError):
        alarm.hear()
    assert alarm.armed


def test_one_that_cannot_be_set_says_so():
    alarm = Alarm()
    alarm.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        alarm.set(1)
