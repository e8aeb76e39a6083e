"""A timer expires once each time it is set, and an epoll hears of it."""

import contextlib
import select

import pytest
from posix_only import posix_only

from trilogue.broker.network.timerfd import TimerFd

pytestmark = posix_only("the gate's timer is Linux's")


@pytest.fixture
def timer():
    with contextlib.closing(TimerFd()) as made:
        yield made


@pytest.fixture
def epoll(timer):
    with select.epoll() as made:
        made.register(timer.fileno(), select.EPOLLIN)
        yield made


@pytest.mark.parametrize("seconds", [0.0, 1e-12, 0.001, 0.02])
def test_it_is_readable_until_that_is_acknowledged(timer, epoll, seconds):
    assert not timer.armed
    timer.set(seconds)
    assert timer.armed

    for _ in range(2):
        assert epoll.poll(10) == [(timer.fileno(), select.EPOLLIN)]
    timer.acknowledge()

    assert not timer.armed
    assert epoll.poll(0) == []


def test_the_last_time_counts(timer, epoll):
    timer.set(3600.5)
    assert epoll.poll(0) == []
    timer.set(0.001)
    assert epoll.poll(10) == [(timer.fileno(), select.EPOLLIN)]


def test_what_has_not_rung_cannot_be_heard(timer):
    timer.set(3600)
    with pytest.raises(BlockingIOError):
        timer.acknowledge()
    assert timer.armed


def test_one_that_cannot_be_set_says_so():
    timer = TimerFd()
    timer.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        timer.set(1)
