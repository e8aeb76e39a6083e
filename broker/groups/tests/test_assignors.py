"""Who should have what: by range, and uniformly."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trilogue.broker.groups.assignors import ASSIGNORS, Subscriber, Task, by_range, uniformly

T, U = b"t" * 16, b"u" * 16


def task(members, partitions, before=None):
    """Members by name and topics; who has a capital letter is static."""
    subscribers = [
        Subscriber(name, name if name.isupper() else None, frozenset(topics)) for name, topics in members.items()
    ]
    return Task(subscribers, partitions, {name: frozenset(it) for name, it in (before or {}).items()})


def plain(shares):
    return {name: "".join(f"{topic.decode()[0]}{index}" for topic, index in sorted(it)) for name, it in shares.items()}


def test_everybody_gets_a_run_of_every_topic():
    shares = by_range(task({"b": [T, U], "a": [T, U], "c": [T]}, {T: 5, U: 3}))
    assert plain(shares) == {"a": "t0t1u0u1", "b": "t2t3u2", "c": "t4"}


def test_static_members_come_first_by_their_names():
    assert plain(by_range(task({"a": [T], "Z": [T], "Y": [T]}, {T: 3}))) == {"Y": "t0", "Z": "t1", "a": "t2"}


def test_equally_many_each_and_nothing_moves_that_need_not():
    before = {"a": [(T, 0), (T, 1), (T, 2), (T, 3)]}
    assert plain(uniformly(task({"a": [T], "b": [T]}, {T: 4}, before))) == {"a": "t0t1", "b": "t2t3"}
    before = {"a": [(T, 0)], "b": [(T, 1), (T, 2)]}
    assert plain(uniformly(task({"a": [T], "b": [T]}, {T: 3}, before))) == {"a": "t0", "b": "t1t2"}


def test_when_not_everybody_wants_everything_it_is_as_fair_as_can_be():
    before = {"a": [(T, 0), (T, 1), (T, 2), (T, 3)]}
    shares = uniformly(task({"a": [T], "b": [T, U]}, {T: 4, U: 2}, before))
    assert plain(shares) == {"a": "t0t1t2", "b": "t3u0u1"}


TOPICS = [bytes([each]) * 16 for each in range(3)]
MEMBERS = st.dictionaries(st.sampled_from("abcdefgh"), st.frozensets(st.sampled_from(TOPICS)), min_size=1)
PLACES = st.frozensets(st.tuples(st.sampled_from(TOPICS), st.integers(0, 7)))


@pytest.mark.parametrize("name", ASSIGNORS)
@settings(max_examples=150, deadline=None)
@given(
    members=MEMBERS,
    partitions=st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 8)),
    before=st.dictionaries(st.sampled_from("abcdefgh"), PLACES),
)
def test_every_partition_that_somebody_wants_has_one_member_who_wants_it(name, members, partitions, before):
    shares = ASSIGNORS[name](task(members, partitions, before))

    assert shares.keys() == members.keys()
    given = [partition for share in shares.values() for partition in share]
    wanted = frozenset().union(*members.values())
    assert sorted(given) == sorted(
        (topic, index) for topic, count in partitions.items() if topic in wanted for index in range(count)
    )
    assert all(topic in members[member] for member, share in shares.items() for topic, _ in share)


@settings(max_examples=150, deadline=None)
@given(
    count=st.integers(0, 20),
    members=st.sets(st.sampled_from("abcdefgh"), min_size=1),
    before=st.dictionaries(st.sampled_from("abcdefgh"), st.frozensets(st.tuples(st.just(T), st.integers(0, 19)))),
)
def test_uniform_shares_differ_by_one_at_most(count, members, before):
    shares = uniformly(task({name: [T] for name in members}, {T: count}, before))
    sizes = [len(share) for share in shares.values()]
    assert max(sizes) - min(sizes) <= 1


def test_what_is_fair_already_stays_as_it_is():
    it = task({"a": [T], "b": [T, U], "c": [U]}, {T: 3, U: 3})
    shares = uniformly(it)
    again = uniformly(it._replace(before={name: frozenset(share) for name, share in shares.items()}))
    assert again == shares
