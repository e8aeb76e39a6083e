"""Which records of a compacted log stay.  Pure: batches in, bytes out.

A record stays if no later one has its key; a tombstone, a record without a value, stays `delete.retention.ms`
longer, so that consumers can learn of it (KIP-534: the time is noted in the batch when it is first
compacted).  Records of aborted transactions go at once, markers after the records they decide on.  Offsets
never change.  The last batch of an active producer stays, if only as a header: it knows the sequence number.
"""

import hashlib
import logging
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from trilogue.storage.aborted import AbortedTransaction
from trilogue.storage.config import FOREVER
from trilogue.storage.files import Bytes
from trilogue.wire.errors import MalformedMessage
from trilogue.wire.records import Batch, ControlType, Header, Record, emptied, end_transaction, rebuild, walk

logger = logging.getLogger(__name__)

DIGEST_BYTES = 16
ENTRY_BYTES = 200
"""What a key takes in the map, measured: its digest, its offset, and their places in the dict."""
DEDUPE_BYTES = 128 << 20
"""Kafka's `log.cleaner.dedupe.buffer.size`."""


class KeyMap:
    """Key -> the last offset that has it, for as many keys as fit."""

    def __init__(self, limit_bytes: int = DEDUPE_BYTES) -> None:
        self._offsets: dict[bytes, int] = {}
        self._limit = max(limit_bytes // ENTRY_BYTES, 1)
        self.latest = -1
        """The map speaks for all offsets up to this one."""

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def full(self) -> bool:
        """Whether no other key fits."""
        return len(self._offsets) >= self._limit

    def put(self, key: Bytes, offset: int) -> None:
        """`key` was written at `offset`, later than all before."""
        self._offsets[_digest(key)] = offset

    def last_offset(self, key: Bytes) -> int:
        """-1 if the key is not in the map."""
        return self._offsets.get(_digest(key), -1)


def _digest(key: Bytes) -> bytes:
    """Short keys are their own digest."""
    return bytes(key) if len(key) < DIGEST_BYTES else hashlib.blake2b(key, digest_size=DIGEST_BYTES).digest()


class LastWrite(NamedTuple):
    """Of a producer that is still known."""

    last_offset: int
    """Of its data; -1 if only a marker is left of it."""
    epoch: int


class Transactions:
    """Follows the batches in their order and knows which of them belong to aborted transactions."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._coming = sorted(aborted, key=lambda entry: entry.first_offset, reverse=True)
        self._aborting: dict[int, AbortedTransaction] = {}
        self._seen: set[int] = set()
        """Producers of whose aborted transaction a batch is still there."""
        self._committing: set[int] = set()
        self.kept: list[AbortedTransaction] = []
        """Aborted transactions of which something is left, since `kept` was last emptied."""

    def _up_to(self, offset: int) -> None:
        while self._coming and self._coming[-1].first_offset <= offset:
            entry = self._coming.pop()
            self._aborting.setdefault(entry.producer_id, entry)

    def aborted(self, header: Header) -> bool:
        """Whether a batch of data was aborted."""
        self._up_to(header.last_offset)
        if not header.transactional:
            return False
        if header.producer_id in self._aborting:
            self._seen.add(header.producer_id)
            return True
        self._committing.add(header.producer_id)
        return False

    def marker_is_idle(self, batch: Batch) -> bool:
        """Whether a control batch decides on nothing that is still there."""
        self._up_to(batch.header.last_offset)
        producer_id = batch.header.producer_id
        if batch.header.count == 0:
            return True
        marker = end_transaction(batch)
        if marker is None:
            return False
        if marker.type is ControlType.COMMIT:
            idle = producer_id not in self._committing
            self._committing.discard(producer_id)
            return idle
        entry = self._aborting.pop(producer_id, None)
        if entry is None or producer_id not in self._seen:
            return True
        self._seen.discard(producer_id)
        self.kept.append(entry)
        return False


class Filter:
    """Decides batch by batch what stays of a log."""

    def __init__(
        self,
        keys: KeyMap,
        transactions: Transactions,
        last_writes: dict[int, LastWrite],
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        self._keys = keys
        self.transactions = transactions
        self._last_writes = last_writes
        self._now_ms = now_ms
        self._delete_retention_ms = delete_retention_ms

    def what_stays(self, batch: Batch) -> Bytes | None:
        """The batch itself, or what is left of it, or None."""
        header = batch.header
        horizon = header.base_timestamp if header.has_delete_horizon else None
        if header.control:
            idle = self.transactions.marker_is_idle(batch)
            gone = idle and horizon is not None and horizon <= self._now_ms
            wants_horizon = idle
        else:
            gone = self.transactions.aborted(header)
            wants_horizon = False
        if gone:
            return self._emptied(header)
        if header.control:
            left, tombstones = header.count, False
        else:
            try:
                data = batch.inflated()
                left, tombstones = self._count(data, header, horizon)
            except MalformedMessage as problem:
                if not batch.crc_ok():
                    raise  # the disk is to blame, which has to be known
                # A producer has signed it, while the topic was not compacted.  What cannot be read is left as it is.
                logger.warning("records from %d on stay as they are: %s", header.base_offset, problem)
                return batch.view
            wants_horizon = tombstones
        if not left:
            return self._emptied(header)
        if wants_horizon and horizon is None:
            due = min(self._now_ms + self._delete_retention_ms, FOREVER)  # it has to fit into the header
            return rebuild(header, self._kept(batch, horizon), delete_horizon_ms=due)
        if left == header.count:
            return batch.view
        return rebuild(header, self._kept(batch, horizon), delete_horizon_ms=horizon)

    def _emptied(self, header: Header) -> Bytes | None:
        return emptied(header) if self._empty_stays(header) else None

    def _count(self, data: memoryview, header: Header, horizon: int | None) -> tuple[int, bool]:
        """How many records stay, and whether there are tombstones among them.  Counted before they are gathered: a
        batch may hold a million, and as objects they take a hundred times their bytes."""
        left, tombstones, before = 0, False, header.base_offset - 1
        for record in walk(data, header):
            if not before < record.offset <= header.last_offset:
                raise MalformedMessage(f"offset {record.offset} after {before}")
            before = record.offset
            if self._stays(record, horizon):
                left += 1
                tombstones = tombstones or record.value is None
        return left, tombstones

    def _kept(self, batch: Batch, horizon: int | None) -> Iterator[Record]:
        control = batch.header.control
        return (record for record in batch.records() if control or self._stays(record, horizon))

    def _stays(self, record: Record, horizon: int | None) -> bool:
        if record.offset > self._keys.latest:
            return True
        if record.key is None or record.offset < self._keys.last_offset(record.key):
            return False
        return record.value is not None or horizon is None or self._now_ms < horizon

    def _empty_stays(self, header: Header) -> bool:
        if header.next_offset == self._keys.latest + 1:
            return True  # the last of the round: or the log would seem to end before it
        last = self._last_writes.get(header.producer_id) if header.producer_id >= 0 else None
        if last is None:
            return False
        if last.last_offset >= 0:
            return header.last_offset == last.last_offset
        return header.control and header.producer_epoch == last.epoch
