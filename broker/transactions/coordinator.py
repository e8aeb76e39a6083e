"""All transactional ids that hash to one partition of __transaction_state.

Told what happened and when, it answers with what to do: store, answer, write markers.  The law: `_known` is written
by `replay` and by nothing else.  Markers are written by somebody else (`broker/markers.py`), who says so afterwards
by `completed`.

Deadlines are kept in memory, in the time of `now`; records bear the wall's milliseconds.  `wall_ms` says what the
wall's clock shows at a time, and so brings deadlines back after a restart.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

from trilogue.broker.config import BrokerConfig
from trilogue.broker.machines.deadlines import Deadlines
from trilogue.broker.machines.effects import Effect, Put, Reply, Send, Store, effects
from trilogue.broker.names import TopicPartition
from trilogue.broker.transactions.records import from_value, to_put
from trilogue.broker.transactions.states import PREPARED, RESTING, State
from trilogue.broker.transactions.transaction import NOBODY, Identity, Transaction
from trilogue.wire.errors import BrokerError, ErrorCode
from trilogue.wire.internal.transactions import TransactionLogKey, TransactionLogValue

TOMBSTONES_PER_BATCH = 1000
"""An id has 32 KiB at most and some dozen bytes as a rule: this stays below the size of a message by far."""


class Outcome(NamedTuple):
    """What a request is answered with, whatever the API."""

    error: ErrorCode = ErrorCode.NONE
    producer_id: int = NOBODY
    epoch: int = NOBODY


@dataclass(frozen=True, slots=True)
class WriteMarkers:
    """To be sent: write the end of this transaction into each of its partitions, then call `completed`."""

    index: int
    """The partition of __transaction_state that it was decided in."""
    transactional_id: str
    producer_id: int
    epoch: int
    committed: bool
    partitions: frozenset[TopicPartition]
    version: int


class TransactionCoordinator:
    """See `effects.Machine`."""

    def __init__(self, index: int, config: BrokerConfig, wall_ms: Callable[[float], int]) -> None:
        self._index, self._wall_ms = index, wall_ms
        self._max_timeout_ms: int = config["transaction.max.timeout.ms"]
        self._expiration_ms: int = config["transactional.id.expiration.ms"]
        self._sweep_seconds: float = config["transaction.remove.expired.transaction.cleanup.interval.ms"] / 1000
        self._sweep_at = inf
        self._known: dict[str, Transaction] = {}
        self._last_epochs: dict[str, int] = {}
        """What the record does not hold; `replay` adds it."""
        self._deadlines = Deadlines()

    # -- requests ------------------------------------------------------------------------------

    def wants_new_id(self, transactional_id: str) -> bool:
        """Whether `initialise` or `end` may need a producer id that nobody has had."""
        known = self._known.get(transactional_id)
        return known is None or known.exhausted

    @effects
    def initialise(
        self, now: float, transactional_id: str, timeout_ms: int, who: Identity | None, new_id: int, ticket: Any
    ) -> Iterator[Effect]:
        """A producer takes over a transactional id, and fences whoever had it before."""
        now_ms = self._wall_ms(now)
        known = self._known.get(transactional_id)
        if not 0 < timeout_ms <= self._max_timeout_ms:
            yield Reply(ticket, Outcome(ErrorCode.INVALID_TRANSACTION_TIMEOUT))
            return
        try:
            if known is None:
                after = Transaction.new(new_id, timeout_ms, now_ms)
                if not self._known:
                    self._sweep_at = now + self._sweep_seconds
            else:
                known.admit(who)
                if known.state is State.ONGOING:
                    yield from self._abandon(now_ms, transactional_id, known)
                    # Not `after` at once: the epoch of a fence is given to nobody, so the producer asks again.
                    yield Reply(ticket, Outcome(ErrorCode.CONCURRENT_TRANSACTIONS))
                    return
                after = known.initialise(now_ms, timeout_ms, who, new_id)
        except BrokerError as error:
            yield Reply(ticket, Outcome(error.code))
            return
        yield self._store(transactional_id, after)
        yield Reply(ticket, Outcome(ErrorCode.NONE, after.producer_id, after.epoch))

    @effects
    def add(
        self,
        now: float,
        transactional_id: str,
        who: Identity,
        partitions: frozenset[TopicPartition],
        version: int,
        ticket: Any,
    ) -> Iterator[Effect]:
        """Partitions are going to be written to.  All of them are added, or none."""
        try:
            known = self._get(transactional_id)
            after = known.add(self._wall_ms(now), who, partitions, version)
        except BrokerError as error:
            yield Reply(ticket, Outcome(error.code))
            return
        if after is not known:
            if known.state is not State.ONGOING:
                self._deadlines.set(transactional_id, now + known.timeout_ms / 1000)
            yield self._store(transactional_id, after)
        yield Reply(ticket, Outcome())

    @effects
    def verify(
        self, now: float, transactional_id: str, who: Identity, partitions: frozenset[TopicPartition], ticket: Any
    ) -> Iterator[Effect]:
        """For each of these partitions whether it has been added, or else why it may not be written to."""
        try:
            known = self._get(transactional_id)
            known.check(who)
        except BrokerError as error:
            yield Reply(ticket, dict.fromkeys(partitions, error.code))
            return
        yield Reply(
            ticket,
            {
                place: ErrorCode.NONE if place in known.partitions else ErrorCode.TRANSACTION_ABORTABLE
                for place in partitions
            },
        )

    @effects
    def end(
        self,
        now: float,
        transactional_id: str,
        who: Identity,
        committed: bool,
        version: int,
        new_id: int,
        ticket: Any,
    ) -> Iterator[Effect]:
        """Commit or abort.  Stored, then answered; markers follow."""
        try:
            known = self._get(transactional_id)
            after = known.end(self._wall_ms(now), who, committed, version, new_id)
        except BrokerError as error:
            yield Reply(ticket, Outcome(error.code))
            return
        if after is not known:
            yield from self._decided(transactional_id, after)
        yield Reply(ticket, Outcome(ErrorCode.NONE, *after.identity))

    @effects
    def completed(self, now: float, markers: WriteMarkers) -> Iterator[Effect]:
        """Every partition has its marker.  Said twice, or too late, it does nothing."""
        known = self._known.get(markers.transactional_id)
        if known is None or known.state not in PREPARED:
            return
        if (known.producer_id, known.epoch) == (markers.producer_id, markers.epoch):
            yield self._store(markers.transactional_id, known.complete(self._wall_ms(now)))

    # -- questions -----------------------------------------------------------------------------

    @property
    def transactions(self) -> Mapping[str, Transaction]:
        return self._known

    # -- time ----------------------------------------------------------------------------------

    @property
    def deadline(self) -> float:
        return min(self._deadlines.earliest, self._sweep_at)

    @effects
    def tick(self, now: float) -> Iterator[Effect]:
        now_ms = self._wall_ms(now)
        for transactional_id in self._deadlines.due(now):
            yield from self._abandon(now_ms, transactional_id, self._known[transactional_id])
        if self._sweep_at <= now:
            self._sweep_at = now + self._sweep_seconds if self._known else inf
            yield from self._forget(now_ms)

    def _forget(self, now_ms: int) -> Iterator[Effect]:
        silent = [
            transactional_id
            for transactional_id, known in self._known.items()
            if known.state in RESTING and known.updated_ms <= now_ms - self._expiration_ms
        ]
        for at in range(0, len(silent), TOMBSTONES_PER_BATCH):
            yield Store(tuple(to_put(name, None) for name in silent[at : at + TOMBSTONES_PER_BATCH]))

    # -- what is stored ------------------------------------------------------------------------

    def replay(self, put: Put, offset: int, producer_id: int) -> None:
        assert isinstance(put.key, TransactionLogKey)
        transactional_id = put.key.transactional_id
        if put.value is None:
            self._known.pop(transactional_id, None)
            self._last_epochs.pop(transactional_id, None)
            return
        assert isinstance(put.value, TransactionLogValue)
        self._known[transactional_id] = from_value(put.value, self._last_epochs.get(transactional_id, NOBODY))

    def replay_end(self, producer_id: int, committed: bool) -> None:
        """Nobody writes to this topic in a transaction."""

    @effects
    def loaded(self, now: float) -> Iterator[Effect]:
        """Finish what was decided before the crash, and go on timing what was not."""
        now_ms = self._wall_ms(now)
        if self._known:
            self._sweep_at = now + self._sweep_seconds
        for transactional_id, known in self._known.items():
            if known.state in PREPARED:
                yield self._markers(transactional_id, known)
            elif known.state is State.ONGOING:
                left_ms = known.started_ms + known.timeout_ms - now_ms
                self._deadlines.set(transactional_id, now + left_ms / 1000)

    # -- deciding ------------------------------------------------------------------------------

    def _get(self, transactional_id: str) -> Transaction:
        known = self._known.get(transactional_id)
        if known is None:
            raise BrokerError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"nobody is known as {transactional_id}")
        return known

    def _abandon(self, now_ms: int, transactional_id: str, known: Transaction) -> Iterator[Effect]:
        yield from self._decided(transactional_id, known.fence(now_ms))

    def _decided(self, transactional_id: str, after: Transaction) -> Iterator[Effect]:
        self._deadlines.drop(transactional_id)  # it cannot time out any more
        yield self._store(transactional_id, after)
        yield self._markers(transactional_id, after)

    def _store(self, transactional_id: str, after: Transaction) -> Store:
        self._last_epochs[transactional_id] = after.last_epoch
        return Store((to_put(transactional_id, after),))

    def _markers(self, transactional_id: str, known: Transaction) -> Send:
        return Send(
            WriteMarkers(
                self._index,
                transactional_id,
                known.producer_id,
                known.epoch,
                known.committed,
                known.partitions,
                known.version,
            )
        )
