"""One transactional id: who may write under it, and how far its transaction has come.

The law: a `Transaction` does not change; what happens to it makes the next one, by `_enter` and by nothing else,
which looks into the table of `states.py`.  What may not happen raises `BrokerError`.

Two generations.  Version 1: partitions are added before they are written to, and the epoch is raised only to fence.
Version 2 (KIP-890): the first write adds the partition, and every end raises the epoch, so that what comes late
from one transaction cannot end up in the next.  A client of version 2 that repeats an EndTxn is known by its epoch:
it is one behind.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from trilogue.broker.names import TopicPartition
from trilogue.broker.transactions.states import NEXT, PREPARED, RESTING, State
from trilogue.wire.errors import BrokerError, ErrorCode

NOBODY = -1
"""No producer id, and no epoch."""

MAX_EPOCH = 2**15 - 1
"""Never handed out: it is kept to fence whoever has the one before."""

BUMPS = 2
"""From this version on the end of a transaction raises the epoch."""


class Identity(NamedTuple):
    """Whom a producer says it is."""

    producer_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Transaction:
    """Everything that is known about one transactional id.  All but `last_epoch` is stored."""

    producer_id: int
    epoch: int
    timeout_ms: int
    updated_ms: int
    state: State = State.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    started_ms: int = -1
    version: int = 0
    """Of the client that moved it last."""
    previous_producer_id: int = NOBODY
    next_producer_id: int = NOBODY
    """Takes over when the markers are written: the epochs of the present one are used up."""
    last_epoch: int = NOBODY
    """Who says this epoch repeats what has succeeded.  Not in the record: after a failover it is fenced instead."""

    @classmethod
    def new(cls, producer_id: int, timeout_ms: int, now_ms: int) -> "Transaction":
        return cls(producer_id, 0, timeout_ms, now_ms, previous_producer_id=producer_id)

    @property
    def identity(self) -> Identity:
        """Who may write next: after the markers, if a new producer id is to take over then."""
        if self.next_producer_id != NOBODY:
            return Identity(self.next_producer_id, 0)
        return Identity(self.producer_id, self.epoch)

    @property
    def exhausted(self) -> bool:
        return self.epoch >= MAX_EPOCH - 1

    @property
    def committed(self) -> bool:
        return self.state in (State.PREPARE_COMMIT, State.COMPLETE_COMMIT)

    # -- a producer comes ----------------------------------------------------------------------

    def admit(self, who: Identity | None) -> None:
        """Refuse a producer that says whom it was before, and is not the one we know."""
        if who is not None and who.producer_id != self.producer_id:
            outlived = who.producer_id == self.previous_producer_id and who.epoch >= MAX_EPOCH - 1
            if not outlived:
                raise BrokerError(ErrorCode.PRODUCER_FENCED, f"producer {who.producer_id} is not {self.producer_id}")
        if self.state in PREPARED:
            raise BrokerError(ErrorCode.CONCURRENT_TRANSACTIONS, "markers are on their way")

    def wants_new_id(self, who: Identity | None) -> bool:
        """Whether initialising this producer takes a new producer id."""
        return self.exhausted and self.state in RESTING and (who is None or who.epoch in (self.epoch, self.last_epoch))

    def initialise(self, now_ms: int, timeout_ms: int, who: Identity | None, new_id: int) -> "Transaction":
        """A producer begins, or comes back after an error: it gets an epoch of its own."""
        again: dict[str, Any] = {
            "timeout_ms": timeout_ms,
            "updated_ms": now_ms,
            "started_ms": -1,
            "partitions": frozenset(),
        }
        if self.wants_new_id(who):
            last = NOBODY if who is None else self.epoch
            return self._enter(State.EMPTY, producer_id=new_id, epoch=0, last_epoch=last, **again)
        if who is None:
            return self._enter(State.EMPTY, epoch=self.epoch + 1, last_epoch=NOBODY, **again)
        if who.epoch == self.epoch:
            return self._enter(State.EMPTY, epoch=self.epoch + 1, last_epoch=self.epoch, **again)
        if who.epoch == self.last_epoch:
            return self._enter(State.EMPTY, **again)  # its answer was lost; nobody else has come since
        raise BrokerError(ErrorCode.PRODUCER_FENCED, f"epoch {who.epoch} has been succeeded by {self.epoch}")

    def fence(self, now_ms: int) -> "Transaction":
        """Abort, and let nobody write any more who has written until now."""
        return self._enter(
            State.PREPARE_ABORT,
            epoch=min(self.epoch + 1, MAX_EPOCH),
            last_epoch=self.epoch,
            updated_ms=now_ms,
            version=BUMPS,
        )

    # -- it writes -----------------------------------------------------------------------------

    def check(self, who: Identity) -> None:
        """Refuse whoever may not write now."""
        self._check_id(who)
        if who.epoch != self.epoch:
            raise BrokerError(ErrorCode.PRODUCER_FENCED, f"epoch {who.epoch}, where {self.epoch} is current")
        if self.state in PREPARED:
            raise BrokerError(ErrorCode.CONCURRENT_TRANSACTIONS, "the transaction before is not complete")

    def add(self, now_ms: int, who: Identity, partitions: frozenset[TopicPartition], version: int) -> "Transaction":
        """Partitions are going to be written to; the first begins the transaction.  Itself, if nothing is new."""
        self.check(who)
        if self.state is not State.ONGOING:
            return self._enter(
                State.ONGOING, partitions=partitions, started_ms=now_ms, updated_ms=now_ms, version=version
            )
        if partitions <= self.partitions:
            return self
        return self._enter(State.ONGOING, partitions=self.partitions | partitions, updated_ms=now_ms, version=version)

    # -- it ends -------------------------------------------------------------------------------

    def end(self, now_ms: int, who: Identity, committed: bool, version: int, new_id: int) -> "Transaction":
        """Commit or abort.  Itself, if that has been done already."""
        repeated = version >= BUMPS and self._repeats(who)
        if not repeated:
            self._check_id(who)
        self._check_ending(who, version, repeated)
        if self.state in PREPARED:
            self._must_agree(committed)
            raise BrokerError(ErrorCode.CONCURRENT_TRANSACTIONS, "markers are on their way")
        if self.state is State.ONGOING:
            return self._decide(now_ms, committed, version, new_id)
        if version < BUMPS or repeated:
            self._must_agree(committed)
            return self
        if committed:
            raise BrokerError(ErrorCode.INVALID_TXN_STATE, f"there is nothing to commit in {self.state.value}")
        # An abort of nothing raises the epoch all the same: a write may be on its way to a partition.
        return replace(self, started_ms=now_ms)._decide(now_ms, False, version, new_id)

    def complete(self, now_ms: int) -> "Transaction":
        """Every partition has its marker."""
        state = State.COMPLETE_COMMIT if self.committed else State.COMPLETE_ABORT
        return self._enter(
            state,
            producer_id=self.identity.producer_id,
            epoch=self.identity.epoch,
            next_producer_id=NOBODY,
            partitions=frozenset(),
            updated_ms=now_ms,
        )

    def _repeats(self, who: Identity) -> bool:
        # Only where the end raised the epoch is the one before the one who ended it.  Elsewhere it is a predecessor,
        # whom Kafka mistakes for the successor, and hands the successor's identity.
        if self.state in (State.EMPTY, State.ONGOING) or self.version < BUMPS:
            return False
        if who.producer_id == self.producer_id:
            return who.epoch + 1 == self.epoch
        outlived = who.producer_id == self.previous_producer_id and who.epoch == MAX_EPOCH - 1
        return outlived and self.epoch == 0 and self.state in RESTING

    def _check_id(self, who: Identity) -> None:
        if who.producer_id != self.producer_id:
            raise BrokerError(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"producer {who.producer_id} is not {self.producer_id}"
            )

    def _check_ending(self, who: Identity, version: int, repeated: bool) -> None:
        # Under version 2 a prepared transaction has a raised epoch: who knows it already is not the one who ended it.
        current = who.epoch == self.epoch and not (version >= BUMPS and self.state in PREPARED)
        if not repeated and not current:
            raise BrokerError(ErrorCode.PRODUCER_FENCED, f"epoch {who.epoch}, where {self.epoch} is current")

    def _must_agree(self, committed: bool) -> None:
        """What has been decided cannot be decided otherwise; where nothing was, nothing can be repeated."""
        if self.state is State.EMPTY or committed != self.committed:
            end = "committed" if committed else "aborted"
            raise BrokerError(ErrorCode.INVALID_TXN_STATE, f"it is {self.state.value}, and cannot be {end}")

    def _decide(self, now_ms: int, committed: bool, version: int, new_id: int) -> "Transaction":
        state = State.PREPARE_COMMIT if committed else State.PREPARE_ABORT
        if version < BUMPS:
            return self._enter(state, updated_ms=now_ms, version=version)
        return self._enter(
            state,
            epoch=min(self.epoch + 1, MAX_EPOCH),
            last_epoch=self.epoch,
            next_producer_id=new_id if self.exhausted else NOBODY,
            updated_ms=now_ms,
            version=version,
        )

    def _enter(self, state: State, **changes: Any) -> "Transaction":
        assert state in NEXT[self.state], f"{self.state} -> {state}"
        return replace(self, state=state, previous_producer_id=self.producer_id, **changes)
