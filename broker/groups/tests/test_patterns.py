"""What patterns match: whole names, what comes and goes, and one set for all that match the same."""

import pytest

from trilogue.broker.groups import patterns
from trilogue.broker.groups.patterns import matching, shared
from trilogue.wire.errors import BrokerError, ErrorCode

TOPICS = dict.fromkeys(["orders", "orders.eu", "payments", "x"])


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("orders.*", {"orders", "orders.eu"}),
        ("orders", {"orders"}),
        ("order", set()),
        ("^pay.*$", {"payments"}),
        ("x|orders", {"orders", "x"}),
        ("(?i)ORDERS", {"orders"}),
        ("none", set()),
        ("", set()),
        (".*", set(TOPICS)),
    ],
)
def test_a_pattern_matches_whole_names(pattern, found):
    assert matching(pattern, dict(TOPICS)) == found


def test_what_comes_and_goes_is_looked_at_and_nothing_else(monkeypatch):
    first = dict(TOPICS)
    assert matching("o.*", first) == {"orders", "orders.eu"}
    looked = []
    real = patterns._match
    monkeypatch.setattr(patterns, "_match", lambda pattern, names: looked.append(names) or real(pattern, names))

    second = {name: None for name in TOPICS if name != "orders"} | {"offers": None, "other": None}
    assert matching("o.*", second) == {"orders.eu", "offers", "other"}
    assert matching("o.*", second) == {"orders.eu", "offers", "other"}
    assert matching("o.*", dict(second)) == {"orders.eu", "offers", "other"}
    assert looked == [{"offers", "other"}]


def test_another_cluster_of_the_same_process_is_another_matter():
    here, there = dict(TOPICS), {"oranges": None}

    for _ in range(2):
        assert matching("ora.*|orders", here) == {"orders"}
        assert matching("ora.*|orders", there) == {"oranges"}


def test_patterns_that_match_the_same_share_one_set():
    topics = dict(TOPICS)

    assert matching("orders.*|a", topics) is matching("orders.*|b", topics) is shared(["orders.eu", "orders"])


def test_what_is_no_pattern_is_refused_each_time():
    for _ in range(2):
        with pytest.raises(BrokerError) as refused:
            matching("((", TOPICS)
        assert refused.value.code == ErrorCode.INVALID_REGULAR_EXPRESSION
        assert "`((`" in refused.value.message
