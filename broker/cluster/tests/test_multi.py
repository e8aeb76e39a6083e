"""Commits as ZooKeeper can do them."""

import pytest

from trilogue.broker.cluster.multi import Place, Step, ancestors, doubtful_places, plan, touched
from trilogue.broker.cluster.store import Check, Create, Delete, Update


def on_the_way(op):
    return Step(op, asked=False)


def asked(op):
    return Step(op, asked=True)


def test_the_parents_of_a_path():
    assert ancestors("/a/b/c") == ["/a", "/a/b"]
    assert ancestors("/a") == []


def test_parents_are_looked_for_unless_they_are_known_or_certainly_missing():
    ops = [Create("/t/x", b""), Create("/t/x/p/0/state", b""), Update("/u/v", b""), Create("/c/d/e", b"")]
    assert doubtful_places(ops, known={"/c"}) == ["/t", "/c/d"]


def test_parents_are_made_first_and_once():
    ops = [Create("/t/x", b"1"), Create("/t/x/p/0", b""), Create("/t/x/p/1", b""), Check("/c", 3)]
    assert plan(ops, there={"/t"}, below={}) == [
        asked(ops[0]),
        on_the_way(Place("/t/x/p")),
        asked(ops[1]),
        asked(ops[2]),
        asked(ops[3]),
    ]


def test_what_lies_below_is_deleted_first_the_deepest_before_the_others():
    ops = [Delete("/t", 4)]
    steps = plan(ops, there=(), below={"/t": ["/t/p", "/t/p/0", "/t/p/0/state", "/t/p/1"]})
    assert [step.op.path for step in steps] == ["/t/p/0/state", "/t/p/0", "/t/p/1", "/t/p", "/t"]
    assert steps[-1] == asked(ops[0])
    assert not any(step.asked for step in steps[:-1])


def test_nothing_is_deleted_twice_and_what_was_just_made_goes_too():
    ops = [Delete("/a/b"), Create("/a/c/d", b""), Delete("/a"), Create("/a", b"")]
    steps = plan(ops, there={"/a"}, below={"/a/b": [], "/a": ["/a/b"]})
    assert [step.op for step in steps] == [
        Delete("/a/b"),
        Place("/a/c"),
        Create("/a/c/d", b""),
        Delete("/a/c/d"),
        Delete("/a/c"),
        Delete("/a"),
        Create("/a", b""),
    ]


@pytest.mark.parametrize(
    ("op", "paths"),
    [(Create("/a", b""), ["/a"]), (Update("/a", b""), ["/a"]), (Delete("/a"), ["/a"]), (Check("/a", 0), [])],
    ids=str,
)
def test_what_a_commit_touches(op, paths):
    assert touched([asked(op), asked(op), on_the_way(Place("/p"))]) == paths
