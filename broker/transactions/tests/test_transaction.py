"""One transactional id: every state, everything that may happen in it, both generations."""

from dataclasses import replace

import pytest

from trilogue.broker.transactions.records import from_value, to_put
from trilogue.broker.transactions.states import BY_NUMBER, NEXT, State
from trilogue.broker.transactions.transaction import MAX_EPOCH, NOBODY, Identity, Transaction
from trilogue.wire.errors import BrokerError, ErrorCode

ORDERS, BILLS = frozenset({("orders", 0)}), frozenset({("bills", 2)})
ME, LATER, BEFORE, STRANGER = Identity(7, 5), Identity(7, 6), Identity(7, 4), Identity(8, 5)
NEW_ID = 99

E = ErrorCode
S = State
CONCURRENT, FENCED, INVALID, MAPPING = (
    E.CONCURRENT_TRANSACTIONS,
    E.PRODUCER_FENCED,
    E.INVALID_TXN_STATE,
    E.INVALID_PRODUCER_ID_MAPPING,
)
COLUMNS = (S.EMPTY, S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT, S.COMPLETE_COMMIT, S.COMPLETE_ABORT)


def transaction(state: State, **changes: object) -> Transaction:
    """Of producer 7 in epoch 5, since 10 s."""
    busy = state in (S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT)
    return replace(
        Transaction(7, 5, 60_000, 10_000, state, ORDERS if busy else frozenset(), 10_000, 2, 7, last_epoch=4),
        **changes,
    )


def outcome(act: object) -> object:
    """The state that follows; "same" if nothing is to be stored; the code if it is refused."""
    try:
        return act()
    except BrokerError as error:
        return error.code


def after(before: Transaction, following: object) -> object:
    if isinstance(following, Transaction):
        return "same" if following is before else following.state
    return following


def admitted(known: Transaction, who: Identity | None) -> Transaction:
    known.admit(who)
    return known.fence(11_000) if known.state is S.ONGOING else known.initialise(11_000, 30_000, who, NEW_ID)


# What happens, and what follows in each of the states above.  Kafka 4.3.1 answers the same, column by column.
MATRIX = {
    "init": (lambda t: admitted(t, None),
             S.EMPTY, S.PREPARE_ABORT, CONCURRENT, CONCURRENT, S.EMPTY, S.EMPTY),
    "init again as I was": (lambda t: admitted(t, ME),
             S.EMPTY, S.PREPARE_ABORT, CONCURRENT, CONCURRENT, S.EMPTY, S.EMPTY),
    "init repeated": (lambda t: admitted(t, BEFORE),
             S.EMPTY, S.PREPARE_ABORT, CONCURRENT, CONCURRENT, S.EMPTY, S.EMPTY),
    "init by one long gone": (lambda t: admitted(t, Identity(7, 3)),
             FENCED, S.PREPARE_ABORT, CONCURRENT, CONCURRENT, FENCED, FENCED),
    "init by a stranger": (lambda t: admitted(t, STRANGER),
             FENCED, FENCED, FENCED, FENCED, FENCED, FENCED),
    "add": (lambda t: t.add(11_000, ME, BILLS, 0),
             S.ONGOING, S.ONGOING, CONCURRENT, CONCURRENT, S.ONGOING, S.ONGOING),
    "add what is there": (lambda t: t.add(11_000, ME, ORDERS, 0),
             S.ONGOING, "same", CONCURRENT, CONCURRENT, S.ONGOING, S.ONGOING),
    "add too late": (lambda t: t.add(11_000, BEFORE, BILLS, 0),
             FENCED, FENCED, FENCED, FENCED, FENCED, FENCED),
    "add by a stranger": (lambda t: t.add(11_000, STRANGER, BILLS, 0),
             MAPPING, MAPPING, MAPPING, MAPPING, MAPPING, MAPPING),
    "commit": (lambda t: t.end(11_000, ME, True, 0, NEW_ID),
             INVALID, S.PREPARE_COMMIT, CONCURRENT, INVALID, "same", INVALID),
    "abort": (lambda t: t.end(11_000, ME, False, 0, NEW_ID),
             INVALID, S.PREPARE_ABORT, INVALID, CONCURRENT, INVALID, "same"),
    "commit too late": (lambda t: t.end(11_000, BEFORE, True, 0, NEW_ID),
             FENCED, FENCED, FENCED, FENCED, FENCED, FENCED),
    "commit by a stranger": (lambda t: t.end(11_000, STRANGER, True, 0, NEW_ID),
             MAPPING, MAPPING, MAPPING, MAPPING, MAPPING, MAPPING),
    "commit 2": (lambda t: t.end(11_000, ME, True, 2, NEW_ID),
             INVALID, S.PREPARE_COMMIT, FENCED, FENCED, INVALID, INVALID),
    "abort 2": (lambda t: t.end(11_000, ME, False, 2, NEW_ID),
             S.PREPARE_ABORT, S.PREPARE_ABORT, FENCED, FENCED, S.PREPARE_ABORT, S.PREPARE_ABORT),
    "commit 2 repeated": (lambda t: t.end(11_000, BEFORE, True, 2, NEW_ID),
             FENCED, FENCED, CONCURRENT, INVALID, "same", INVALID),
    "abort 2 repeated": (lambda t: t.end(11_000, BEFORE, False, 2, NEW_ID),
             FENCED, FENCED, INVALID, CONCURRENT, INVALID, "same"),
    "commit 2 too early": (lambda t: t.end(11_000, LATER, True, 2, NEW_ID),
             FENCED, FENCED, FENCED, FENCED, FENCED, FENCED),
    "commit 2 by a stranger": (lambda t: t.end(11_000, STRANGER, True, 2, NEW_ID),
             MAPPING, MAPPING, MAPPING, MAPPING, MAPPING, MAPPING),
}  # fmt: skip


@pytest.mark.parametrize("what", MATRIX)
def test_what_follows_in_every_state(what):
    act, *expected = MATRIX[what]

    assert [
        after(known := transaction(state), outcome(lambda known=known: act(known))) for state in COLUMNS
    ] == expected


def test_every_way_in_the_table_is_taken_and_no_other():
    taken = {
        (state, following.state)
        for act, *_ in MATRIX.values()
        for state in COLUMNS
        if isinstance(following := outcome(lambda: act(transaction(state))), Transaction)  # noqa: B023
    }
    taken |= {(state, transaction(state).complete(0).state) for state in (S.PREPARE_COMMIT, S.PREPARE_ABORT)}
    repeated = {(S.COMPLETE_COMMIT, S.COMPLETE_COMMIT), (S.COMPLETE_ABORT, S.COMPLETE_ABORT)}

    # Dead is a tombstone: `test_transactions.py` buries them.
    assert taken - repeated == {(state, to) for state in COLUMNS for to in NEXT[state] if to is not S.DEAD}


@pytest.mark.parametrize("state", [S.EMPTY, S.ONGOING, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_what_was_not_prepared_cannot_be_completed(state):
    with pytest.raises(AssertionError, match=f"{state}"):
        transaction(state).complete(0)


def test_a_commit_of_the_first_generation_leaves_the_epoch_alone():
    prepared = transaction(S.ONGOING).end(11_000, ME, True, 0, NEW_ID)

    assert prepared == Transaction(7, 5, 60_000, 11_000, S.PREPARE_COMMIT, ORDERS, 10_000, 0, 7, last_epoch=4)
    assert prepared.complete(12_000) == Transaction(
        7, 5, 60_000, 12_000, S.COMPLETE_COMMIT, frozenset(), 10_000, 0, 7, last_epoch=4
    )


@pytest.mark.parametrize("committed", [True, False])
def test_who_was_fenced_is_not_mistaken_for_a_successor_of_the_first_generation(committed):
    done = transaction(S.COMPLETE_COMMIT if committed else S.COMPLETE_ABORT, version=0)

    assert outcome(lambda: done.end(11_000, BEFORE, committed, 2, NEW_ID)) == FENCED


def test_a_commit_of_the_second_generation_raises_the_epoch():
    prepared = transaction(S.ONGOING).end(11_000, ME, True, 2, NEW_ID)

    assert prepared == Transaction(7, 6, 60_000, 11_000, S.PREPARE_COMMIT, ORDERS, 10_000, 2, 7, last_epoch=5)
    assert prepared.identity == prepared.complete(12_000).identity == Identity(7, 6)


def test_an_abort_of_nothing_begins_and_ends_at_once():
    assert transaction(S.EMPTY, started_ms=-1).end(11_000, ME, False, 2, NEW_ID) == Transaction(
        7, 6, 60_000, 11_000, S.PREPARE_ABORT, frozenset(), 11_000, 2, 7, last_epoch=5
    )


@pytest.mark.parametrize(
    ("epoch", "prepared", "complete"),
    [
        (MAX_EPOCH - 2, (7, MAX_EPOCH - 1), (7, MAX_EPOCH - 1)),
        (MAX_EPOCH - 1, (7, MAX_EPOCH), (NEW_ID, 0)),
    ],
)
def test_when_epochs_are_used_up_a_new_producer_id_takes_over(epoch, prepared, complete):
    decided = transaction(S.ONGOING, epoch=epoch).end(11_000, Identity(7, epoch), True, 2, NEW_ID)
    done = decided.complete(12_000)

    assert (decided.producer_id, decided.epoch) == prepared  # what the markers say
    assert decided.identity == done.identity == complete
    assert done.end(13_000, Identity(7, epoch), True, 2, NEW_ID) is done  # the answer was lost
    assert done.add(13_000, Identity(*complete), BILLS, 2).state is S.ONGOING


def test_who_repeats_across_a_new_producer_id_must_have_had_the_last_epoch():
    done = transaction(S.COMPLETE_COMMIT, producer_id=NEW_ID, epoch=0, previous_producer_id=7)

    assert done.end(0, Identity(7, MAX_EPOCH - 1), True, 2, 100) is done
    assert outcome(lambda: done.end(0, Identity(7, MAX_EPOCH - 2), True, 2, 100)) == MAPPING


@pytest.mark.parametrize(
    ("epoch", "who", "identity", "last_epoch"),
    [
        (4, None, (7, 5), NOBODY),
        (4, Identity(7, 4), (7, 5), 4),
        (MAX_EPOCH - 2, None, (7, MAX_EPOCH - 1), NOBODY),
        (MAX_EPOCH - 1, None, (NEW_ID, 0), NOBODY),
        (MAX_EPOCH - 1, Identity(7, MAX_EPOCH - 1), (NEW_ID, 0), MAX_EPOCH - 1),
        (MAX_EPOCH, None, (NEW_ID, 0), NOBODY),
    ],
)
def test_a_producer_that_begins_gets_an_epoch_of_its_own(epoch, who, identity, last_epoch):
    begun = transaction(S.COMPLETE_ABORT, epoch=epoch).initialise(11_000, 30_000, who, NEW_ID)

    assert begun == Transaction(
        *identity, 30_000, 11_000, S.EMPTY, frozenset(), -1, 2, previous_producer_id=7, last_epoch=last_epoch
    )


def test_who_repeats_its_init_gets_the_same_epoch_until_somebody_else_has_come():
    begun = transaction(S.EMPTY).initialise(11_000, 60_000, ME, NEW_ID)
    again = begun.initialise(12_000, 60_000, ME, NEW_ID)
    taken_over = again.initialise(13_000, 60_000, None, NEW_ID)

    assert [begun.identity, again.identity, taken_over.identity] == [(7, 6), (7, 6), (7, 7)]
    assert outcome(lambda: taken_over.initialise(14_000, 60_000, ME, NEW_ID)) == FENCED


def test_who_was_fenced_by_time_may_come_back():
    late = transaction(S.ONGOING).fence(99_000).complete(99_000)

    assert late.initialise(100_000, 60_000, ME, NEW_ID).identity == (7, 6)


@pytest.mark.parametrize(("epoch", "fenced"), [(5, 6), (MAX_EPOCH - 1, MAX_EPOCH), (MAX_EPOCH, MAX_EPOCH)])
def test_a_fence_raises_the_epoch_as_far_as_it_goes(epoch, fenced):
    assert transaction(S.ONGOING, epoch=epoch).fence(11_000) == Transaction(
        7, fenced, 60_000, 11_000, S.PREPARE_ABORT, ORDERS, 10_000, 2, 7, last_epoch=epoch
    )


@pytest.mark.parametrize("state", COLUMNS)
def test_what_is_stored_comes_back(state):
    known = transaction(state, next_producer_id=12)

    put = to_put("shop", known)

    assert from_value(put.value, known.last_epoch) == known
    assert put.version == 1
    assert (put.value.transaction_partitions is None) == (state is S.EMPTY)


def test_states_have_the_numbers_that_kafka_stores():
    assert " ".join(BY_NUMBER[number].value for number in range(8)) == (
        "Empty Ongoing PrepareCommit PrepareAbort CompleteCommit CompleteAbort Dead PrepareEpochFence"
    )
