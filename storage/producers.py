"""Who wrote last with which sequence number, and which transactions are open.

`check` decides and changes nothing; `appended` and `ended` follow when the batch is in the log.  A duplicate is
recognised among the last five batches of a producer: that many may be in flight.

A transaction is *open* from its first batch to its marker, and *unstable* until that marker is below the high
watermark: only then may a consumer that reads committed data go past it.

Before its first batch a transaction's coordinator is asked about it, which may take a while; a *guard* stands from
then until that batch, or a marker, is in the log (KIP-890).  Whoever finds another guard than his own, or none, was
vouched for in a transaction that is over.
"""

from collections import deque
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from trilogue.storage.aborted import AbortedTransaction
from trilogue.wire.errors import BrokerError, ErrorCode
from trilogue.wire.records import ControlType, EndTransaction

REMEMBERED_BATCHES = 5
MAX_EPOCH = 2**15 - 1
SEQUENCE_MASK = 2**31 - 1
"""After 2^31-1 comes 0."""


class Origin(Enum):
    """Who asks for an append; it decides what is checked."""

    CLIENT = "client"
    """Everything."""
    COORDINATOR = "coordinator"
    """Offset commits of a transaction and its markers: no sequence numbers, but epochs."""
    REPLICATION = "replication"
    """Nothing: the leader has checked."""


_CLIENT = Origin.CLIENT
_new = tuple.__new__
"""A NamedTuple's own constructor takes twice as long."""


class Appended(NamedTuple):
    """One of the last batches of a producer."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


class Producer:
    """What one producer did here last."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "id",
        "last_timestamp",
        "next_sequence",
        "transaction_start",
    )

    def __init__(self, producer_id: int, epoch: int) -> None:
        self.id = producer_id
        self.epoch = epoch
        self.coordinator_epoch = -1
        self.last_timestamp = -1
        self.transaction_start = -1
        self.next_sequence = 0
        self.batches: deque[Appended] = deque(maxlen=REMEMBERED_BATCHES)

    @property
    def last_sequence(self) -> int:
        """-1 if nothing of its epoch is known."""
        return self.batches[-1].last_sequence if self.batches else -1

    @property
    def last_offset(self) -> int:
        """Of its data; markers do not count."""
        return self.batches[-1].last_offset if self.batches else -1


class Guard:
    """A transaction's coordinator is being asked about a producer."""

    __slots__ = ("_bumps", "epoch", "lowest_sequence", "since_ms")

    def __init__(self, epoch: int, sequence: int, now_ms: int, bumps: bool) -> None:
        self.epoch, self.lowest_sequence, self.since_ms, self._bumps = epoch, sequence, now_ms, bumps

    def asked(self, epoch: int, sequence: int) -> None:
        """Once more, for this batch."""
        if epoch > self.epoch or (epoch == self.epoch and sequence < self.lowest_sequence):
            self.epoch, self.lowest_sequence = epoch, sequence

    def falls(self, epoch: int) -> bool:
        """By a marker of this epoch.  Where every end raises the epoch, the marker of the transaction before has that
        of the next: its producer may be asked about while the marker is on its way."""
        return not (self._bumps and epoch == self.epoch)


class Producers:
    """All producers of one log."""

    __slots__ = ("_by_id", "_ended", "_guards", "_open", "end_offset")

    def __init__(self, end_offset: int = 0) -> None:
        self._by_id: dict[int, Producer] = {}
        self._open: dict[int, int] = {}
        """First offset of every open transaction -> producer; offsets only grow, so the first is the
        oldest."""
        self._ended: dict[int, int] = {}
        """First offset -> marker's offset, of transactions whose marker may be above the high watermark."""
        self._guards: dict[int, Guard] = {}
        self.end_offset = end_offset
        """What is known here is known up to this offset."""

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Producer]:
        return iter(self._by_id.values())

    def get(self, producer_id: int) -> Producer | None:
        """What is known about one of them."""
        return self._by_id.get(producer_id)

    # ---- deciding ----------------------------------------------------------------------------------------

    def guard(self, producer_id: int, epoch: int, sequence: int, now_ms: int, transaction_version: int) -> Guard:
        """The coordinator is going to be asked about this batch: what stands until its transaction is open, or over."""
        guard = self._guards.get(producer_id)
        if guard is None:
            guard = self._guards[producer_id] = Guard(epoch, sequence, now_ms, transaction_version >= 2)
        else:
            guard.asked(epoch, sequence)
        return guard

    def stands(self, producer_id: int, guard: Guard | None) -> bool:
        return guard is not None and self._guards.get(producer_id) is guard

    def check(
        self,
        producer_id: int,
        epoch: int,
        first_sequence: int,
        last_sequence: int,
        transactional: bool,
        origin: Origin,
        verified: bool = True,
        transaction_version: int = 1,
    ) -> Appended | None:
        """The batch that this one repeats; or None if it may be appended.  Refusals raise `BrokerError`.

        A producer that is not known may begin with any sequence number: what it wrote before may have
        expired.  Not so in a transaction of version 2 (KIP-890), where every transaction has an epoch of its
        own; and not behind a batch that the coordinator was asked about first, and that will come again."""
        known = self._by_id.get(producer_id)
        if known is None:
            if transactional and not verified:
                raise BrokerError(ErrorCode.INVALID_TXN_STATE, f"producer {producer_id} has no transaction open here")
            if transactional and transaction_version >= 2 and first_sequence > 0:
                raise BrokerError(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"producer {producer_id} begins a transaction with sequence {first_sequence}, not 0",
                )
            if transactional and origin is _CLIENT:
                self._check_lowest(producer_id, epoch, first_sequence)
            return None
        if epoch == known.epoch and origin is _CLIENT:
            if first_sequence == known.next_sequence and transactional == (known.transaction_start >= 0):
                return None  # almost always
            for batch in known.batches:
                if batch.first_sequence == first_sequence and batch.last_sequence == last_sequence:
                    return batch
        if transactional and not verified and known.transaction_start < 0:
            raise BrokerError(ErrorCode.INVALID_TXN_STATE, f"producer {producer_id} has no transaction open here")
        if epoch < known.epoch:
            raise BrokerError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {producer_id} writes under epoch {epoch}, and has been seen under {known.epoch}",
            )
        if origin is Origin.CLIENT:
            _check_sequence(known, epoch, first_sequence)
        if known.transaction_start >= 0 and not transactional:
            raise BrokerError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {producer_id} writes outside of the transaction it began at {known.transaction_start}",
            )
        return None

    def _check_lowest(self, producer_id: int, epoch: int, first_sequence: int) -> None:
        guard = self._guards.get(producer_id)
        if guard is not None and guard.epoch == epoch and guard.lowest_sequence < first_sequence:
            raise BrokerError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {producer_id} sent sequence {first_sequence}, and {guard.lowest_sequence} is still to come",
            )

    def check_marker(self, producer_id: int, epoch: int, marker: EndTransaction, transaction_version: int) -> None:
        """Refuse the marker of a fenced producer or of a deposed coordinator.

        From transaction version 2 on (KIP-890) every transaction ends with a raised epoch, so a marker that
        does not raise it is late, and would end the wrong transaction.  One that repeats the last is
        harmless."""
        known = self._by_id.get(producer_id)
        if known is None:
            return
        repeated = epoch == known.epoch and (known.transaction_start < 0 or epoch == MAX_EPOCH)
        late = epoch <= known.epoch and not repeated if transaction_version >= 2 else epoch < known.epoch
        if late:
            raise BrokerError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"a marker of epoch {epoch} for producer {producer_id}, whose epoch is {known.epoch}",
            )
        if marker.coordinator_epoch < known.coordinator_epoch:
            raise BrokerError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"a marker from coordinator epoch {marker.coordinator_epoch} after {known.coordinator_epoch}",
            )

    # ---- what happened -----------------------------------------------------------------------------------

    def appended(
        self,
        producer_id: int,
        epoch: int,
        first_sequence: int,
        last_sequence: int,
        first_offset: int,
        last_offset: int,
        timestamp: int,
        transactional: bool,
    ) -> None:
        """A batch of data is in the log."""
        known = self._by_id.get(producer_id)
        if known is None:
            known = self._by_id[producer_id] = Producer(producer_id, epoch)
        elif known.epoch != epoch:
            known.epoch = epoch
            known.batches.clear()
        known.last_timestamp = timestamp
        known.next_sequence = last_sequence + 1 & SEQUENCE_MASK
        known.batches.append(_new(Appended, (first_sequence, last_sequence, first_offset, last_offset, timestamp)))
        if transactional and known.transaction_start < 0:
            known.transaction_start = first_offset
            self._open[first_offset] = producer_id
            self._guards.pop(producer_id, None)

    def ended(
        self, producer_id: int, epoch: int, marker: EndTransaction, offset: int, timestamp: int
    ) -> AbortedTransaction | None:
        """A marker is in the log.  Returns what belongs into the index of aborted transactions, if anything
        does."""
        guard = self._guards.get(producer_id)
        if guard is not None and guard.falls(epoch):
            del self._guards[producer_id]
        known = self._by_id.get(producer_id)
        if known is None:
            known = self._by_id[producer_id] = Producer(producer_id, epoch)
        elif known.epoch != epoch:
            known.epoch = epoch
            known.next_sequence = 0
            known.batches.clear()
        known.coordinator_epoch = marker.coordinator_epoch
        known.last_timestamp = timestamp
        start, known.transaction_start = known.transaction_start, -1
        if start < 0:
            return None  # an empty transaction leaves no trace
        self._open.pop(start, None)
        self._ended[start] = offset
        if marker.type is not ControlType.ABORT:
            return None
        return AbortedTransaction(producer_id, start, offset, min(self._open, default=offset + 1))

    def restore(self, producer: Producer) -> None:
        """From a snapshot."""
        self._by_id[producer.id] = producer
        if producer.transaction_start >= 0:
            self._open[producer.transaction_start] = producer.id

    # ---- asking ------------------------------------------------------------------------------------------

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """Where the first transaction begins whose end is not known below the high watermark."""
        for start in [start for start, marker in self._ended.items() if marker < high_watermark]:
            del self._ended[start]
        if not self._open and not self._ended:
            return None
        return min(min(self._open, default=2**63), min(self._ended, default=2**63))

    def first_open_offset(self) -> int | None:
        """Where the oldest transaction without a marker begins."""
        return min(self._open, default=None)

    def expire(self, now_ms: int, after_ms: int) -> int:
        """Forget producers that have been silent for `after_ms` and have no transaction open.  How many."""
        gone = [
            known.id
            for known in self._by_id.values()
            if known.transaction_start < 0 and now_ms - known.last_timestamp >= after_ms
        ]
        for producer_id in gone:
            del self._by_id[producer_id]
        for producer_id in [each for each, guard in self._guards.items() if now_ms - guard.since_ms >= after_ms]:
            del self._guards[producer_id]  # it was refused, and has not come again
        return len(gone)

    def clear(self, end_offset: int) -> None:
        """Forget all; the log begins anew at `end_offset`."""
        self._by_id.clear()
        self._open.clear()
        self._ended.clear()
        self._guards.clear()
        self.end_offset = end_offset


def _check_sequence(known: Producer, epoch: int, first_sequence: int) -> None:
    if epoch != known.epoch:
        if first_sequence != 0:
            raise BrokerError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {known.id} begins epoch {epoch} with sequence {first_sequence}, not 0",
            )
        return
    if first_sequence != known.next_sequence:
        raise BrokerError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {known.id} sent sequence {first_sequence} after {known.last_sequence}",
        )
