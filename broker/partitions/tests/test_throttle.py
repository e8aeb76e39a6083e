"""What is counted, when it is too much, and who is meant."""

from math import inf

import pytest

from trilogue.broker.cluster.image import Image
from trilogue.broker.config import BrokerConfig
from trilogue.broker.partitions.throttle import Throttle, Throttles, replicas_here


def throttle(rate: float) -> Throttle:
    made = Throttle(samples=11, sample_seconds=1)
    made.update(rate, {"t": None})
    return made


def test_nothing_has_been_copied_and_nothing_is_too_much():
    assert not throttle(0).exceeded(now=5)


def test_the_first_second_counts_as_a_whole_one():
    made = throttle(1000)

    made.count(1000, now=5)
    assert not made.exceeded(now=5)
    made.count(1, now=5.2)
    assert made.exceeded(now=5.2)
    assert made.exceeded(now=6.0)
    assert not made.exceeded(now=6.002)


def test_what_was_too_much_is_too_much_for_as_long_as_it_takes_at_that_rate():
    made = throttle(1000)

    made.count(5001, now=0)

    assert made.exceeded(now=5)
    assert not made.exceeded(now=5.002)


def test_after_all_samples_everything_is_forgotten():
    made = throttle(1)

    made.count(1_000_000, now=0)

    assert made.exceeded(now=10.9)
    assert not made.exceeded(now=11)


def test_a_steady_rate_is_the_rate():
    slow, fast = throttle(100), throttle(100)
    for second in range(40):
        slow.count(90, now=second)
        fast.count(110, now=second)

    assert not slow.exceeded(now=40)
    assert fast.exceeded(now=40)


@pytest.mark.parametrize(
    ("text", "here"),
    [
        ("*", None),
        ("", frozenset()),
        ("0:1,1:2,2:1", {0, 2}),
        (" 0:1 , 7:1", {0, 7}),
        ("0:11", frozenset()),
        ("somebody wrote this", frozenset()),
    ],
)
def test_replicas_are_named_by_partition_and_broker(text, here):
    assert replicas_here(text, 1) == here


def test_the_brokers_own_rate_comes_before_that_of_all():
    throttles = Throttles(1, BrokerConfig.parse({}))
    rate = "leader.replication.throttled.rate"
    lists = {"leader.replication.throttled.replicas": "3:1"}

    def with_rates(**brokers: str) -> Image:
        rates = {("brokers", name): {rate: value} for name, value in brokers.items()}
        return Image(configs={("topics", "t"): lists, ("topics", "u"): {}, **rates})

    def limit(image: Image) -> float:
        throttles.update(image)
        return throttles.leader._rate

    assert limit(with_rates(**{"<default>": "5", "1": "7", "2": "9"})) == 7
    assert limit(with_rates(**{"<default>": "5", "2": "9"})) == 5
    assert limit(with_rates(**{"2": "9"})) == limit(with_rates(**{"1": "fast"})) == inf
    assert throttles.leader.covers("t", 3)
    assert not throttles.leader.covers("t", 2)
    assert not throttles.leader.covers("u", 3)
    assert throttles.leader
    assert not throttles.follower
