"""The states of a transactional id, and which may follow which."""

from enum import Enum


class State(Enum):
    """The name is what DescribeTransactions says; the number is what the log keeps."""

    number: int

    def __new__(cls, name: str, number: int) -> "State":
        state = object.__new__(cls)
        state._value_ = name
        state.number = number
        return state

    EMPTY = "Empty", 0
    """A producer has come; nothing is written.  EndTxn hears INVALID_TXN_STATE, but for an abort of version 2."""
    ONGOING = "Ongoing", 1
    """Partitions are being written to.  Ends by EndTxn; is aborted at the deadline, or when a successor comes."""
    PREPARE_COMMIT = "PrepareCommit", 2
    """Decided and stored: there is no way back.  Markers are on their way; everybody hears CONCURRENT_TRANSACTIONS."""
    PREPARE_ABORT = "PrepareAbort", 3
    """As above, the other way."""
    COMPLETE_COMMIT = "CompleteCommit", 4
    """Every partition has its marker.  A repeated EndTxn hears success; the next transaction may begin."""
    COMPLETE_ABORT = "CompleteAbort", 5
    """As above, the other way."""
    DEAD = "Dead", 6
    """Forgotten after a long silence.  A tombstone in the log; nobody is ever seen in this state."""
    PREPARE_EPOCH_FENCE = "PrepareEpochFence", 7
    """Kafka passes through here on the way to PrepareAbort and never stores it.  Nor do we; the name is known."""


BY_NUMBER = {state.number: state for state in State}

RESTING = frozenset({State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT})
"""No transaction: a new one may begin, the producer may be replaced, or the id be forgotten."""

PREPARED = frozenset({State.PREPARE_COMMIT, State.PREPARE_ABORT})

NEXT: dict[State, frozenset[State]] = {
    # From rest an abort may be prepared: under version 2 a producer does not know whether anything was added.
    State.EMPTY: frozenset({State.EMPTY, State.ONGOING, State.PREPARE_ABORT, State.DEAD}),
    State.COMPLETE_COMMIT: frozenset({State.EMPTY, State.ONGOING, State.PREPARE_ABORT, State.DEAD}),
    State.COMPLETE_ABORT: frozenset({State.EMPTY, State.ONGOING, State.PREPARE_ABORT, State.DEAD}),
    State.ONGOING: frozenset({State.ONGOING, State.PREPARE_COMMIT, State.PREPARE_ABORT}),
    State.PREPARE_COMMIT: frozenset({State.COMPLETE_COMMIT}),
    State.PREPARE_ABORT: frozenset({State.COMPLETE_ABORT}),
    State.DEAD: frozenset(),
    State.PREPARE_EPOCH_FENCE: frozenset(),
}
