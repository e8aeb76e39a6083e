"""The coordinator of transactions: what it stores, sends and answers, and what time does to it."""

from math import inf

import pytest

from trilogue.broker.machines.deadlines import Deadlines
from trilogue.broker.machines.effects import Reply, Send, Store
from trilogue.broker.transactions.coordinator import Outcome, WriteMarkers
from trilogue.broker.transactions.records import to_put
from trilogue.broker.transactions.states import State
from trilogue.broker.transactions.tests.transacting import BILLS_0, INDEX, ORDERS_0, ORDERS_1, Desk
from trilogue.broker.transactions.transaction import Identity, Transaction
from trilogue.wire.errors import ErrorCode

FIRST = Identity(1000, 0)
NONE, CONCURRENT, FENCED = ErrorCode.NONE, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.PRODUCER_FENCED


def ongoing(now: float, **settings: str) -> Desk:
    """A producer has begun to write at `now`, with a minute to do so."""
    desk = Desk(**settings)
    desk.init(now)
    desk.add(now, FIRST, ORDERS_0)
    return desk


def markers(epoch: int, committed: bool, *places: tuple[str, int], version: int = 0) -> WriteMarkers:
    return WriteMarkers(INDEX, "shop", 1000, epoch, committed, frozenset(places), version)


def test_a_new_id_is_stored_before_it_is_answered():
    desk = Desk()

    assert desk.machine.initialise(1, "shop", 60_000, None, 1000, "ticket") == [
        Store((to_put("shop", Transaction(1000, 0, 60_000, 1000, previous_producer_id=1000)),)),
        Reply("ticket", Outcome(NONE, 1000, 0)),
    ]


@pytest.mark.parametrize(
    ("timeout_ms", "code"),
    [
        (0, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        (1, NONE),
        (900_000, NONE),
        (900_001, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
    ],
)
def test_timeouts_have_bounds(timeout_ms, code):
    assert Desk().init(0, timeout_ms=timeout_ms).error == code


def test_a_commit_is_stored_then_carried_out_then_answered():
    desk = ongoing(0)
    decided = Transaction(1000, 0, 60_000, 5_000, State.PREPARE_COMMIT, frozenset({ORDERS_0}), 0, 0, 1000)

    assert desk.machine.end(5, "shop", FIRST, True, 0, -1, "ticket") == [
        Store((to_put("shop", decided),)),
        Send(markers(0, True, ORDERS_0)),
        Reply("ticket", Outcome(NONE, 1000, 0)),
    ]


def test_a_transaction_from_beginning_to_end():
    desk = Desk()
    assert desk.init(0) == Outcome(NONE, 1000, 0)
    assert desk.add(1, FIRST, ORDERS_0) == Outcome()
    assert desk.add(2, FIRST, ORDERS_1, BILLS_0) == Outcome()
    assert desk.verify(3, FIRST, ORDERS_0, ("orders", 2)) == {
        ORDERS_0: NONE,
        ("orders", 2): ErrorCode.TRANSACTION_ABORTABLE,
    }
    assert desk.end(4, FIRST, True) == Outcome(NONE, 1000, 0)
    assert desk.sent == [markers(0, True, ORDERS_0, ORDERS_1, BILLS_0)]
    assert desk.end(5, FIRST, True).error == CONCURRENT
    assert desk.add(5, FIRST, ORDERS_0).error == CONCURRENT
    assert desk.verify(5, FIRST, ORDERS_0) == {ORDERS_0: CONCURRENT}
    assert desk.init(5).error == CONCURRENT

    desk.write_markers(6)

    assert desk.state() == "CompleteCommit"
    assert desk.end(7, FIRST, True) == Outcome(NONE, 1000, 0)
    assert desk.verify(7, FIRST, ORDERS_0) == {ORDERS_0: ErrorCode.TRANSACTION_ABORTABLE}


def test_a_partition_that_is_there_is_not_stored_again():
    desk = ongoing(0)

    assert desk.machine.add(1, "shop", FIRST, frozenset({ORDERS_0}), 0, "ticket") == [Reply("ticket", Outcome())]


def test_nobody_is_known_who_has_not_begun():
    desk = Desk()

    assert desk.add(0, FIRST, ORDERS_0).error == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert desk.end(0, FIRST, True).error == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert desk.verify(0, FIRST, ORDERS_0) == {ORDERS_0: ErrorCode.INVALID_PRODUCER_ID_MAPPING}


@pytest.mark.parametrize("version", [0, 2])
def test_a_successor_fences_whoever_writes(version):
    desk = Desk()
    desk.init(0)
    desk.add(1, FIRST, ORDERS_0, version=version)

    assert desk.init(2).error == CONCURRENT
    assert desk.sent == [markers(1, False, ORDERS_0, version=2)]
    assert desk.init(2).error == CONCURRENT
    desk.write_markers(3)
    assert desk.init(4) == Outcome(NONE, 1000, 2)
    assert desk.end(5, FIRST, True, version).error == FENCED
    assert desk.add(5, FIRST, ORDERS_0).error == FENCED


def test_abandoned_transaction_is_aborted_and_its_producer_fenced():
    desk = ongoing(now=10)

    desk.tick(69.9)
    assert (desk.machine.deadline, desk.sent) == (70, [])
    desk.tick(70)
    assert desk.sent == [markers(1, False, ORDERS_0, version=2)]
    assert desk.end(71, FIRST, True).error == FENCED
    desk.write_markers(72)
    assert desk.state() == "CompleteAbort"
    assert desk.end(73, FIRST, True).error == FENCED


def test_more_partitions_do_not_buy_more_time():
    desk = ongoing(now=0)
    desk.add(59, FIRST, ORDERS_1)

    assert desk.machine.deadline == 60


def test_what_is_decided_cannot_time_out():
    desk = ongoing(now=0)
    desk.end(59, FIRST, True)
    desk.tick(61)

    assert desk.state() == "PrepareCommit"


def test_the_next_transaction_has_time_of_its_own():
    desk = ongoing(now=0)
    desk.end(50, FIRST, True)
    desk.write_markers(50)
    desk.add(51, FIRST, ORDERS_0)
    desk.tick(61)

    assert (desk.state(), desk.machine.deadline) == ("Ongoing", 111)


def test_the_first_write_of_the_second_generation_begins_and_the_end_raises_the_epoch():
    desk = Desk()
    desk.init(0)
    for epoch in range(3):
        me = Identity(1000, epoch)
        desk.add(1, me, ORDERS_0, version=2)
        assert desk.end(2, me, True, 2) == Outcome(NONE, 1000, epoch + 1)
        assert desk.sent == [markers(epoch + 1, True, ORDERS_0, version=2)]
        desk.write_markers(3)
        assert desk.end(4, me, True, 2) == Outcome(NONE, 1000, epoch + 1)  # the answer was lost
        assert desk.add(4, me, ORDERS_0, version=2).error == FENCED  # a write that comes late


def test_markers_that_were_written_twice_or_late_change_nothing():
    desk = ongoing(0)
    desk.end(1, FIRST, True)
    (sent,) = desk.sent
    desk.write_markers(2)

    assert desk.machine.completed(3, sent) == []
    desk.add(4, FIRST, ORDERS_0)
    desk.end(5, FIRST, False, 2)
    assert desk.machine.completed(6, sent) == []  # of an earlier epoch
    assert desk.state() == "PrepareAbort"


@pytest.mark.parametrize("committed", [True, False])
def test_after_a_crash_what_was_decided_is_carried_out(committed):
    before = ongoing(0)
    before.end(1, FIRST, committed)

    after = before.restart(100)

    assert after.sent == [markers(0, committed, ORDERS_0)]
    after.write_markers(101)
    assert after.state() == ("CompleteCommit" if committed else "CompleteAbort")


@pytest.mark.parametrize(("at", "left"), [(30, 30), (60, 0), (100, -40)])
def test_after_a_crash_time_goes_on(at, left):
    after = ongoing(0).restart(at)

    assert after.machine.deadline == at + left
    after.tick(max(at, 60))
    assert after.state() == "PrepareAbort"


def test_after_a_crash_who_repeats_its_init_is_fenced():
    before = Desk()
    before.init(0)
    before.init(1, who=FIRST)

    assert before.init(2, who=FIRST) == Outcome(NONE, 1000, 1)
    assert before.restart(3).init(4, who=FIRST).error == FENCED


def test_ids_are_forgotten_after_a_long_silence():
    desk = Desk(transactional_id_expiration_ms="7000000")
    desk.init(0, "shop")
    desk.init(3600, "bank")
    desk.init(3600, "busy")
    desk.add(3600, Identity(1002, 0), ORDERS_0, name="busy")
    desk.end(3600, Identity(1002, 0), True, name="busy")
    desk.tick(3600)
    assert list(desk.machine.transactions) == ["shop", "bank", "busy"]

    desk.tick(7200)
    assert desk.log[-1] == Store((to_put("shop", None),))
    assert list(desk.machine.transactions) == ["bank", "busy"]

    desk.write_markers(7200)
    desk.tick(10_799.9)
    assert desk.machine.deadline == 10_800
    desk.tick(10_800)
    assert list(desk.machine.transactions) == ["busy"]
    desk.tick(14_400)
    desk.tick(18_000)
    assert (dict(desk.machine.transactions), desk.machine.deadline) == ({}, inf)
    assert desk.init(20_000, "shop") == Outcome(NONE, 1003, 0)


def test_an_id_is_remembered_up_to_its_last_millisecond():
    desk = Desk(transactional_id_expiration_ms="3600001")
    desk.init(0)
    desk.tick(3600)

    assert desk.state() == "Empty"
    desk.tick(7200)
    assert desk.state() is None


def test_many_are_forgotten_in_several_batches():
    desk = Desk(transactional_id_expiration_ms="1")
    for number in range(1001):
        desk.init(0, str(number))
    stored = len(desk.log)
    desk.tick(3600)

    assert [len(store.records) for store in desk.log[stored:]] == [1000, 1]


def test_deadlines_know_the_earliest_whatever_has_changed():
    deadlines = Deadlines()
    assert deadlines.earliest == inf
    deadlines.set("a", 5)
    deadlines.set("b", 3)
    deadlines.set("b", 7)
    assert deadlines.earliest == 5
    deadlines.drop("a")
    deadlines.set("c", 9)
    assert (deadlines.earliest, deadlines.due(6.9), deadlines.due(9)) == (7, [], ["b", "c"])
    assert deadlines.earliest == inf
