"""Log: one partition's batches on disk.  Appending and reading; `upkeep.py` has the rest.

The law: a decision and its write are one call.  Everything that can refuse, refuses before the first byte is
written; what a failed write leaves behind is cut off again.  If it failed for lack of space or descriptors that is
all; otherwise the log takes no more until it is opened anew.

`append_as_leader` is the hot path of the broker and is written out in one piece: unpack, checksum, sequence,
patch, one `pwrite`.  What is not plain there goes through `validation.py` first."""

import logging
import os
from collections.abc import Iterator
from struct import Struct
from struct import error as StructError
from typing import NamedTuple

from trilogue.storage import lookup, system
from trilogue.storage.aborted import AbortedTransaction
from trilogue.storage.config import LogConfig
from trilogue.storage.files import OpenFiles, write_all
from trilogue.storage.index import TIME_ENTRY
from trilogue.storage.lookup import Found
from trilogue.storage.producers import SEQUENCE_MASK, Guard, Origin, Producer
from trilogue.storage.replay import take_over
from trilogue.storage.scan import Damaged
from trilogue.storage.segment import LARGEST_RELATIVE_OFFSET, Segment
from trilogue.storage.slices import Slice
from trilogue.storage.upkeep import Upkeep
from trilogue.storage.validation import FEW_RECORDS, HEADER, holds_records, lengths_add_up, validated
from trilogue.wire import records
from trilogue.wire.errors import BrokerError, ErrorCode, MalformedMessage
from trilogue.wire.records import (
    CHECKED_FROM,
    CODEC_MASK,
    CONTROL,
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL,
    Batch,
    Header,
    set_log_append_time,
)
from trilogue.wire.skim import SHORTEST_RECORD

logger = logging.getLogger(__name__)

SHARED_FILES = OpenFiles()
"""The pool of a process that does not care."""

_PLACE = Struct(">qii")
"""Base offset, length, leader epoch: what a leader writes over the beginning of a batch."""

_unpack = Struct(">qi4xbIhiqqqhii").unpack_from
"""A batch's header without leader epoch, which no leader looks at."""

_NOT_PLAIN = -1
"""The attributes of bytes too short to have any."""

# Names that the hot path finds without asking a module or a class.
_CLIENT = Origin.CLIENT
_pwrite = system.pwrite
_new = tuple.__new__
"""A NamedTuple's own constructor takes twice as long."""


class AppendResult(NamedTuple):
    """What became of an append."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int = -1
    """-1 where the topic keeps the producer's timestamps."""
    log_start_offset: int = 0
    duplicate: bool = False
    """It was in the log already; the offsets are those it got then."""


class Log(Upkeep):
    """The log of one partition.  Made by `Log.open`; `DataDirectory.open_log` knows what to give it."""

    __slots__ = ()

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        config: LogConfig,
        now_ms: int,
        *,
        topic_id: bytes | None = None,
        start_offset: int = 0,
        recovery_point: int = 0,
        clean_offset: int = 0,
        clean: bool = False,
        pool: OpenFiles = SHARED_FILES,
    ) -> "Log":
        """Open the log in a folder, or one that has no folder yet.

        `clean` says that whoever had it open before closed it properly; otherwise everything from
        `recovery_point` on is checked, and what a crash has torn is cut off.  The offsets come from the
        checkpoints."""
        from trilogue.storage.recovery import load

        loaded = load(os.fspath(path), config, now_ms, start_offset, recovery_point, clean, pool)
        log = cls(
            config,
            loaded.chain,
            loaded.epochs,
            loaded.producers,
            topic_id=loaded.topic_id or topic_id,
            start_offset=loaded.start_offset,
            end_offset=loaded.end_offset,
            recovery_point=loaded.end_offset if clean else min(recovery_point, loaded.end_offset),
            clean_offset=min(clean_offset, loaded.end_offset),
            now_ms=now_ms,
        )
        if loaded.topic_id is None and loaded.chain.segments:
            log._final(log._make_folder)
        return log

    # ---- appending ---------------------------------------------------------------------------------------

    def append_as_leader(
        self,
        buf: memoryview,
        *,
        leader_epoch: int,
        now_ms: int,
        origin: Origin = Origin.CLIENT,
        verified: bool = True,
        transaction_version: int = 1,
        room: bytearray | None = None,
        checked: LogConfig | None = None,
    ) -> AppendResult:
        """Append the one batch in `buf`, giving it the next offsets.  The bytes are changed in place.

        `verified`: the coordinator has confirmed that a transaction of this producer includes this partition,
        if the batch belongs to one (KIP-890).  `room` is for those who cannot wait: TakesLong is raised if its
        records take long to look at.  `checked`: that was done, under these settings, with `validated`.
        Raises BrokerError, or OSError when the disk fails."""
        if self._broken is not None:
            raise self._broken
        size = len(buf)
        config = self._config
        try:
            (base, length, magic, crc, attributes, delta, first, max_timestamp, producer_id, epoch, sequence, count) = (
                _unpack(buf)
            )
        except StructError:
            attributes = _NOT_PLAIN
        if not (
            attributes in self._plain
            and length + LOG_OVERHEAD == size
            and magic == MAGIC
            and base == 0
            and origin is _CLIENT
            and size <= config.max_message_bytes
            and 0 < count == delta + 1
            and first <= max_timestamp <= now_ms + config.message_timestamp_after_max_ms
            and (producer_id < 0 or sequence >= 0)
            and (
                (count > FEW_RECORDS and count * SHORTEST_RECORD < size)
                or attributes & CODEC_MASK
                or lengths_add_up(buf, count)
            )
            and records.checksum(buf[CHECKED_FROM:]) == crc
            and (not attributes or not attributes & CODEC_MASK or checked is config or holds_records(buf, config, room))
        ):
            if buf.readonly:
                buf = memoryview(bytearray(buf))
            if checked is not config:
                buf = validated(buf, config, now_ms, origin, room)
            elif config.log_append_time:
                set_log_append_time(buf, 0, now_ms)  # not when it was looked at
            size = len(buf)
            _, length, _, _, attributes, delta, _, max_timestamp, producer_id, epoch, sequence, count = _unpack(buf)
        if producer_id >= 0:
            if attributes & CONTROL:
                return self._append_marker(buf, leader_epoch, now_ms, transaction_version)
            last_sequence = sequence + delta & SEQUENCE_MASK if sequence >= 0 else sequence
            transactional = attributes & TRANSACTIONAL != 0
            try:
                repeated = self._producers.check(
                    producer_id, epoch, sequence, last_sequence, transactional, origin, verified, transaction_version
                )
            except BrokerError as error:
                self._blame_what_is_short(error)
                raise
            if repeated is not None:
                return AppendResult(
                    repeated.first_offset, repeated.last_offset, repeated.timestamp, self.start_offset, True
                )
        first = self.end_offset
        last = first + delta
        segment = self._chain.active
        if (
            segment is None
            or segment.size + size > self._room_bytes
            or last > self._room_offset
            or max_timestamp > self._room_timestamp
        ):
            segment = self._make_room(size, first, last, max_timestamp, now_ms)
        if leader_epoch != self._epoch:
            self._begin_epoch(leader_epoch, first)
        if buf.readonly:
            buf = memoryview(bytearray(buf))
        _PLACE.pack_into(buf, 0, first, length, leader_epoch)
        position = segment.size
        since = segment.since_index
        newest = segment.newest or segment.time()
        if max_timestamp > newest[0]:
            segment.newest = (max_timestamp, last)
        try:
            handle = segment.file.handle or segment.file.open()
            if _pwrite(handle.fd, buf, position) != size:
                write_all(handle.fd, buf, position)
            if since > config.index_interval_bytes:
                segment.mark(last, position)
                since = 0
        except OSError as error:
            segment.newest = newest
            self._undo(segment, position, error)
            raise
        segment.size = position + size
        segment.since_index = since + size
        self._tail = (first, position, size)
        self.end_offset = last + 1
        if producer_id >= 0:
            self._producers.appended(
                producer_id, epoch, sequence, last_sequence, first, last, max_timestamp, transactional
            )
        time = max_timestamp if config.log_append_time else -1
        return _new(AppendResult, (first, last, time, self.start_offset, False))

    def _blame_what_is_short(self, error: BrokerError) -> None:
        """A batch is missing because we have just refused it, and this one was sent behind it: it is refused for the
        same reason, so that its producer sends both again.  That a sequence is broken would end a transaction."""
        if (
            error.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            and self._short is not None
            and self._short[0] == self.end_offset
        ):
            raise self._short[1] from None

    def _make_room(self, size: int, first: int, last: int, max_timestamp: int, now_ms: int) -> Segment:
        """The segment that a batch goes into, and how far the next ones may go without asking again."""
        config = self._config
        segment = self._room_for(size, first, last, max_timestamp, now_ms)
        if segment.size == 0:
            segment.first_timestamp = max_timestamp
        if segment.size + size > segment.reserved:
            self._again(segment.reserve)
        self._room_bytes = min(config.segment_bytes, segment.reserved)
        if self._room_bytes > (config.segment_index_bytes // TIME_ENTRY.size - 2) * config.index_interval_bytes:
            self._room_bytes = -1  # so large that an index may fill up: ask every time
        self._room_offset = segment.base_offset + LARGEST_RELATIVE_OFFSET
        began = segment.rolling_timestamp()
        self._room_timestamp = began + config.segment_age_ms if began >= 0 else -2
        return segment

    def _append_marker(self, buf: memoryview, leader_epoch: int, now_ms: int, transaction_version: int) -> AppendResult:
        batch = Batch(Header._make(HEADER.unpack_from(buf)), buf)
        header = batch.header
        if (marker := _marker_of(batch)) is not None:
            self._producers.check_marker(header.producer_id, header.producer_epoch, marker, transaction_version)
        header = header._replace(base_offset=self.end_offset, partition_leader_epoch=leader_epoch)
        HEADER.pack_into(buf, 0, *header)
        self._write(Batch(header, buf), now_ms)
        stamped = header.max_timestamp if self._config.log_append_time else -1
        return AppendResult(header.base_offset, header.last_offset, stamped, self.start_offset)

    def append_as_follower(
        self, buf: memoryview, *, now_ms: int, leader_epoch: int | None = None
    ) -> AppendResult | None:
        """Append batches as the leader sent them, offsets and epochs included.  What is cut short at the end
        is left out, and so is what lies behind the first batch of a later epoch than `leader_epoch`.  None if
        nothing remains."""
        if self._broken is not None:
            raise self._broken
        batches: list[Batch] = []
        expected = self.end_offset
        try:
            for batch in records.batches(buf, partial_ok=True):
                header = batch.header
                if leader_epoch is not None and header.partition_leader_epoch > leader_epoch:
                    break
                if header.base_offset < expected:
                    raise BrokerError(
                        ErrorCode.OFFSET_OUT_OF_RANGE,
                        f"{self.name}: a batch from {header.base_offset} where {expected} comes next",
                    )
                if not batch.crc_ok():
                    raise BrokerError(
                        ErrorCode.CORRUPT_MESSAGE, f"{self.name}: a wrong checksum at {header.base_offset}"
                    )
                expected = header.next_offset
                batches.append(batch)
        except MalformedMessage as problem:
            raise BrokerError(ErrorCode.CORRUPT_MESSAGE, f"{self.name}: {problem}") from None
        if not batches:
            return None
        self._foresee_epochs(batches)
        try:
            for batch in batches:
                self._write(batch, now_ms)
        finally:
            if self.end_offset < expected:
                self._forget_foreseen()
        first, last = batches[0].header.base_offset, batches[-1].header.last_offset
        return AppendResult(first, last, -1, self.start_offset)

    def _write(self, batch: Batch, now_ms: int) -> None:
        """Append a batch that is final.  The path of everything that is not a plain produce."""
        header = batch.header
        marker = _marker_of(batch) if header.control else None
        segment = self._room_for(header.size, header.base_offset, header.last_offset, header.max_timestamp, now_ms)
        if header.partition_leader_epoch != self._epoch:
            self._begin_epoch(header.partition_leader_epoch, header.base_offset)
        position = segment.size
        interval = self._config.index_interval_bytes
        try:
            segment.append(batch.view, header.size, header.last_offset, header.max_timestamp, interval)
        except OSError as error:
            self._undo(segment, position, error)
            raise
        self._tail = (header.base_offset, position, header.size)
        self.end_offset = header.next_offset
        if header.producer_id >= 0:
            aborted = take_over(self._producers, header, marker)
            if aborted is not None:
                self._final(segment.aborted.append, aborted)

    def _room_for(self, size: int, first: int, last: int, max_timestamp: int, now_ms: int) -> Segment:
        """The segment that a batch of this size goes into; a new one if the active one is full or old
        enough."""
        config = self._config
        if size > config.segment_bytes:
            raise BrokerError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"{size} bytes do not fit into a segment of {config.segment_bytes}",
            )
        segment = self._chain.active
        if segment is None:
            return self._begin_segment(first, now_ms)
        too_far = last - segment.base_offset > LARGEST_RELATIVE_OFFSET
        if segment.size == 0:
            return self.roll(now_ms, first) if too_far else segment
        began = segment.rolling_timestamp()
        waited = max_timestamp - began if began >= 0 else now_ms - segment.created_ms
        if (
            too_far
            or segment.size + size > config.segment_bytes
            or waited > config.segment_age_ms
            or segment.index_full(config.segment_index_bytes)
        ):
            return self.roll(now_ms, first)
        return segment

    # ---- reading -----------------------------------------------------------------------------------------

    def read(self, offset: int, max_bytes: int, *, up_to: int, min_one: bool = True) -> Slice | None:
        """Batches from the one that holds `offset`, below offset `up_to`; None if there is nothing to read.

        Never crosses a segment.  With `min_one` the first batch comes whole even if it is larger than
        `max_bytes`; otherwise it comes whole or not at all."""
        if not self.start_offset <= offset <= self.end_offset:
            raise BrokerError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.name}: offset {offset} is not in {self.start_offset} to {self.end_offset}",
            )
        limit = min(up_to, self.end_offset)
        if offset >= limit:
            return None
        chain = self._chain
        number = chain.number_for(offset)
        last = len(chain.segments) - 1
        while True:
            segment = chain.segments[number]
            if offset == self._tail[0] and number == last:
                base, position, first_size = self._tail
                break
            if (found := segment.find(offset)) is not None:
                base, position, first_size = found[1].base_offset, found[0], found[1].size
                break
            if number == last:
                return None
            number += 1
        end = segment.size
        if limit < (self.end_offset if number == last else chain.bases[number + 1]):
            bound = segment.find(limit)
            end = bound[0] if bound else end
        if end - position < first_size or (max_bytes < first_size and not min_one):
            return None
        return Slice(segment.handle(), position, min(max(max_bytes, first_size), end - position), base)

    def batches(self, offset: int, up_to: int | None = None) -> Iterator[Batch]:
        """Every batch from the one that holds `offset` on, for coordinators that load their state.  A batch
        is valid until the next is asked for."""
        end = self.end_offset if up_to is None else min(up_to, self.end_offset)
        for segment in self._chain.segments[self._chain.number_for(offset) :]:
            if (found := segment.find(offset)) is not None:
                for _, batch in segment.batches(found[0]):
                    if batch.header.base_offset >= end:
                        return
                    yield batch

    def salvage(self) -> Iterator[Batch | Damaged]:
        """Every batch that can be read and has its checksum, and between them what cannot: coordinators go on without
        it.  A batch is valid until the next is asked for."""
        for segment in self._chain.segments[self._chain.number_for(self.start_offset) :]:
            for found in segment.salvage():
                if isinstance(found, Damaged) or found.header.last_offset >= self.start_offset:
                    yield found

    def offset_for_timestamp(self, timestamp: int, up_to: int | None = None) -> Found | None:
        """The first record that is not older than `timestamp`, below `up_to`; also inside compressed
        batches."""
        end = self.end_offset if up_to is None else up_to
        return lookup.by_timestamp(self, timestamp, end).run()

    def offset_of_max_timestamp(self) -> Found | None:
        """The first record of the largest timestamp; None if the log is empty."""
        searched = lookup.of_max_timestamp(self)
        return searched.run() if searched else None

    def list_offset(self, timestamp: int, latest: int, *, in_loop: bool = False) -> Found:
        """What ListOffsets answers for one partition, special timestamps included.  `latest` is the high
        watermark or the last stable offset, whichever the client may see.  `in_loop`: raise TakesLong if it is
        to be `searched` in a thread."""
        return lookup.list_offset(self, timestamp, latest, in_loop)

    def searched(self, timestamp: int, latest: int) -> lookup.Search | None:
        """The same as a search that can be done batch by batch."""
        return lookup.search(self, timestamp, latest)

    # ---- producers and transactions ----------------------------------------------------------------------

    def last_stable_offset(self, high_watermark: int) -> int:
        """How far a consumer of committed data may read."""
        unstable = self._producers.first_unstable_offset(high_watermark)
        if unstable is None:
            return high_watermark
        return min(high_watermark, max(unstable, self.start_offset))

    def aborted_between(self, first: int, last: int) -> list[AbortedTransaction]:
        """The aborted transactions that overlap the offsets from `first` up to, and without, `last`; by first
        offset."""
        found = []
        for segment in self._chain.segments[self._chain.number_for(first) :]:
            entries = list(segment.aborted.entries())
            found += [entry for entry in entries if entry.last_offset >= first and entry.first_offset < last]
            if any(entry.last_stable_offset >= last for entry in entries):
                break
        return sorted(found, key=lambda entry: entry.first_offset)

    def producers(self) -> list[Producer]:
        """Who writes here; DescribeProducers."""
        return list(self._producers)

    def producer(self, producer_id: int) -> Producer | None:
        """One of them."""
        return self._producers.get(producer_id)

    def guard(self, producer_id: int, epoch: int, sequence: int, now_ms: int, transaction_version: int) -> Guard:
        """See `Producers.guard`."""
        return self._producers.guard(producer_id, epoch, sequence, now_ms, transaction_version)

    def stands(self, producer_id: int, guard: Guard | None) -> bool:
        """Whether nothing of that producer's transactions has been written since that guard was put up."""
        return self._producers.stands(producer_id, guard)

    def expire_producers(self, now_ms: int) -> int:
        """Forget who has been silent for producer.id.expiration.ms.  How many."""
        return self._producers.expire(now_ms, self._config.producer_id_expiration_ms)


def _marker_of(batch: Batch) -> records.EndTransaction | None:
    try:
        return records.end_transaction(batch)
    except MalformedMessage as problem:
        raise BrokerError(ErrorCode.INVALID_RECORD, str(problem)) from None
