"""What a log does besides being written and read: roll, fail, follow leader epochs, grow shorter, reach the
disk, end.

`Log` is this and appending and reading.  The law for everything that touches files: an OSError is the last
thing that happens (`_final`), because after it nobody knows what is on the disk.  Unless it is of those that pass
(`passing.py`) and met something that can be done again from its beginning (`_again`): then that was all, and whoever
asked may ask later."""

import logging
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import groupby
from typing import ParamSpec, TypeVar

from trilogue.storage import checkpoint, names, retention, system
from trilogue.storage.chain import Chain
from trilogue.storage.config import LogConfig
from trilogue.storage.epochs import Epochs
from trilogue.storage.flush import Flush, flush_due
from trilogue.storage.passing import lacks_descriptors, passes
from trilogue.storage.producers import Producers
from trilogue.storage.replay import producers_at
from trilogue.storage.segment import Segment
from trilogue.storage.validation import plain_attributes
from trilogue.wire.errors import BrokerError, ErrorCode
from trilogue.wire.records import Batch

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


class Upkeep:
    """The state of a log, and its upkeep."""

    __slots__ = (
        "_broken",
        "_chain",
        "_config",
        "_epoch",
        "_epochs",
        "_plain",
        "_producers",
        "_room_bytes",
        "_room_offset",
        "_room_timestamp",
        "_short",
        "_tail",
        "clean_offset",
        "end_offset",
        "last_flush_ms",
        "name",
        "path",
        "recovery_point",
        "start_offset",
        "topic_id",
    )

    def __init__(
        self,
        config: LogConfig,
        chain: Chain,
        epochs: Epochs,
        producers: Producers,
        *,
        topic_id: bytes | None,
        start_offset: int,
        end_offset: int,
        recovery_point: int,
        clean_offset: int,
        now_ms: int,
    ) -> None:
        self.path = chain.folder
        self.name = os.path.basename(chain.folder)
        self.topic_id = topic_id
        self.config = config
        self._chain = chain
        self._epochs = epochs
        self._epoch = epochs.latest
        self._producers = producers
        self._broken: OSError | None = None
        self._short: tuple[int, OSError] | None = None
        """Where the log ended when something was short last, and what."""
        self._tail = (-1, 0, 0)
        """(base offset, position, size) of the last batch: where most reads begin."""
        self.start_offset = start_offset
        """The first offset that may be read."""
        self.end_offset = end_offset
        """The offset that the next record gets."""
        self.recovery_point = recovery_point
        """Everything before it has reached the disk."""
        self.clean_offset = clean_offset
        """How far compaction has been."""
        self.last_flush_ms = now_ms

    def __repr__(self) -> str:
        return f"Log({self.name}, {self.start_offset} to {self.end_offset})"

    @property
    def config(self) -> LogConfig:
        """The topic's settings; may be replaced at any time."""
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self._config = config
        self._plain = plain_attributes(config)
        self._forget_room()

    @property
    def size(self) -> int:
        """Bytes of all segments, without their indexes."""
        return sum(segment.size for segment in self._chain.segments)

    @property
    def segments(self) -> list[Segment]:
        """Oldest first; the last is the active one.  For the cleaner and for tests."""
        return self._chain.segments

    # ---- rolling ----------------------------------------------------------------------------------------

    def roll(self, now_ms: int, next_offset: int | None = None) -> Segment:
        """Finish the active segment and begin another at the end of the log, with a snapshot of the
        producers."""
        base = self.end_offset if next_offset is None else max(next_offset, self.end_offset)
        active = self._chain.active
        if active is not None:
            if active.base_offset == base:
                return active
            self._again(active.finish)
            active.sleep()
            self._forget_room()
            self._again(self._chain.take_snapshot, base, self._producers)
        return self._begin_segment(base, now_ms)

    def _begin_segment(self, base_offset: int, now_ms: int) -> Segment:
        if not self._chain.segments:
            self._again(self._make_folder)
        return self._again(self._chain.add, base_offset, now_ms)

    def _make_folder(self) -> None:
        if not os.path.isdir(self.path):
            os.makedirs(self.path)
            system.sync_directory(os.path.dirname(self.path))
        metadata = os.path.join(self.path, names.PARTITION_METADATA)
        if self.topic_id is not None and not os.path.exists(metadata):
            checkpoint.write_partition_metadata(metadata, self.topic_id)
        self._epochs.save()

    def _forget_room(self) -> None:
        self._room_bytes = self._room_offset = self._room_timestamp = -2

    # ---- when the disk fails -----------------------------------------------------------------------------

    @property
    def failed(self) -> OSError | None:
        """Why nothing is written any more, if so."""
        return self._broken

    def fail(self, error: OSError) -> None:
        """The disk has failed: nothing is written any more.  Reading goes on as far as it can."""
        if self._broken is None:
            self._broken = error
            logger.error("%s: takes no more writes: %s", self.name, error)

    def is_there(self) -> bool:
        """Whether the file that is written to is where it should be; a log without files has none to miss."""
        active = self._chain.active
        return active is None or self._broken is not None or active.is_there()

    def _final(self, action: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do something to the files; if that fails, it was the last thing."""
        if self._broken is not None:
            raise self._broken
        try:
            return action(*args, **kwargs)
        except OSError as error:
            self.fail(error)
            raise

    def _again(self, action: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same for what can be done again from its beginning: a failure that passes is not the last thing."""
        if self._broken is not None:
            raise self._broken
        try:
            return action(*args, **kwargs)
        except OSError as error:
            if passes(error):
                self._short = self.end_offset, error
            else:
                self.fail(error)
            raise

    def _undo(self, segment: Segment, position: int, error: OSError) -> None:
        """A write failed: cut off what of it may have arrived.  What was acknowledged lies before."""
        if passes(error):
            self._short = self.end_offset, error
        else:
            self.fail(error)
        segment.size = position
        self._forget_room()
        if segment.file.handle is None and passes(error):
            return  # it could not be opened: nothing has arrived
        try:
            segment.cut_off()
        except OSError as again:
            self.fail(error)
            logger.error("%s: a torn batch at %d stays until recovery: %s", self.name, position, again)

    # ---- leader epochs -----------------------------------------------------------------------------------

    def begin_epoch(self, epoch: int) -> None:
        """We lead under this epoch from now on: what comes next belongs to it.  Followers will ask where it
        began.  That we lead is so whether it can be written down or not: if not, the next append will want to."""
        if epoch != self._epoch:
            with suppress(OSError):
                self._begin_epoch(epoch, self.end_offset)

    def _begin_epoch(self, epoch: int, start: int) -> None:
        foreseen = self._epochs.knows(epoch, start)
        if not foreseen:
            self._epochs.assign(epoch, start)
        self._save_epochs()
        if foreseen:  # and others that come later
            self._epoch = epoch

    def _save_epochs(self) -> None:
        """Nothing may be written before the file says what the batches will; if it cannot, the next append wants it."""
        self._epoch = None
        if self._chain.segments:  # before the first there is no folder, and nothing in it to be misjudged
            self._again(self._epochs.save)
        self._epoch = self._epochs.latest

    def _foresee_epochs(self, batches: Iterable[Batch]) -> None:
        """These are about to be written.  A replica that is new gets all epochs that there ever were at once, and to
        save each by itself would take a sync or two for every one of them."""
        for epoch, first in groupby(batches, lambda batch: batch.header.partition_leader_epoch):
            if epoch != self._epoch:
                self._epochs.assign(epoch, next(first).header.base_offset)

    def _forget_foreseen(self) -> None:
        """Not all of them were written: others may come instead."""
        self._epochs.truncate_end(self.end_offset)
        self._epoch = None

    @property
    def latest_epoch(self) -> int | None:
        """The epoch of the last batch, or of the leader if it has written nothing yet."""
        return self._epochs.latest

    def epoch_end_offset(self, epoch: int) -> tuple[int, int]:
        """(the largest epoch not above `epoch`, where it ends); (-1, -1) if unknown.
        OffsetForLeaderEpoch."""
        return self._epochs.end_offset(epoch, self.end_offset)

    def epoch_at(self, offset: int) -> int | None:
        """The epoch that `offset` was written under."""
        return self._epochs.epoch_at(offset)

    # ---- shortening --------------------------------------------------------------------------------------

    def truncate_to(self, offset: int, now_ms: int) -> bool:
        """Cut the log so that it ends at `offset`, or before if that lies inside a batch.  True if anything
        went.

        An epoch that we led, and wrote nothing in, begins at the end: whoever cuts there has to forget that too."""
        if offset >= self.end_offset:
            self._epochs.truncate_end(offset)
            self._save_epochs()
            return False
        if not self._chain.bases or offset < self._chain.bases[0]:
            self.truncate_fully_and_start_at(max(offset, 0), now_ms)
            return True
        self.end_offset = self._final(self._chain.truncate, offset)
        self._final(self._read_producers, now_ms)
        self._after_cut()
        self._save_epochs()
        return True

    def truncate_fully_and_start_at(self, offset: int, now_ms: int) -> None:
        """Forget everything; the log is empty and goes on at `offset`."""
        self._final(self._chain.clear)
        self.start_offset = self.end_offset = offset
        self._producers.clear(offset)
        self._epochs.clear()
        self._after_cut()
        self._begin_segment(offset, now_ms)

    def _after_cut(self) -> None:
        self._tail = (-1, 0, 0)
        self._forget_room()
        self.start_offset = min(self.start_offset, self.end_offset)
        self.recovery_point = min(self.recovery_point, self.end_offset)
        self.clean_offset = min(self.clean_offset, self.end_offset)
        self._epochs.truncate_end(self.end_offset)
        self._epoch = self._epochs.latest

    def _read_producers(self, now_ms: int) -> None:
        chain = self._chain
        self._producers, notes = producers_at(
            self.path, chain.segments, chain.snapshots, self.end_offset, self._config, now_ms
        )
        if notes:
            logger.warning("%s: %s", self.name, "; ".join(notes))

    def raise_start(self, offset: int, high_watermark: int) -> bool:
        """Nothing before `offset` may be read any more (DeleteRecords); files go with the next `expire`."""
        if offset > high_watermark:
            raise BrokerError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.name}: offset {offset} is past the high watermark {high_watermark}",
            )
        if offset <= self.start_offset:
            return False
        self.start_offset = offset
        self._epochs.truncate_start(offset)
        if self._chain.segments:
            self._again(self._epochs.save)
        return True

    def expire(self, now_ms: int, high_watermark: int) -> int:
        """Delete the oldest segments that retention gives up: by time, by size, and below the start.  How
        many.

        Nothing at or above the high watermark goes.  If even the active segment is too old, a new one is
        begun first."""
        chain = self._chain
        doomed = retention.expired(
            chain.segments, self._config, now_ms, high_watermark, self.start_offset, self.end_offset
        )
        if not doomed:
            return 0
        if doomed == len(chain.segments):
            self.roll(now_ms)
        try:
            self._again(chain.retire, chain.segments[:doomed], now_ms + self._config.file_delete_delay_ms)
        finally:
            self.start_offset = max(self.start_offset, chain.bases[0])
            self._epochs.truncate_start(self.start_offset)
        if chain.bases[0] not in chain.snapshots:  # it was damaged; producers must not be forgotten
            self._again(chain.take_snapshot, self.end_offset, self._producers)
        for taken_at in [taken_at for taken_at in chain.snapshots if taken_at < chain.bases[0]]:
            self._again(chain.drop_snapshot, taken_at)
        self._again(self._epochs.save)
        logger.info("%s: %d segments expired; it starts at %d", self.name, doomed, self.start_offset)
        return doomed

    def replace(self, old: list[Segment], base_offset: int, now_ms: int) -> None:
        """Put a compacted segment in the place of those it was made of.  The cleaner's last step."""
        new = self._again(self._chain.successor, old, base_offset)
        self._final(self._chain.replace, old, new, now_ms + self._config.file_delete_delay_ms)

    def sweep(self, now_ms: int) -> int | None:
        """Delete the files of expired segments whose delay has passed.  Returns when to come again, if there
        is more."""
        return self._again(self._chain.sweep, now_ms)

    # ---- durability --------------------------------------------------------------------------------------

    def must_flush(self, now_ms: int) -> bool:
        """Whether flush.messages or flush.ms asks for a flush before anybody is told that the data is safe."""
        return flush_due(self._config, self.end_offset - self.recovery_point, self.last_flush_ms, now_ms)

    def flush_due(self, now_ms: int) -> bool:
        """Whether to flush at leisure: also when a segment was finished and is not on the disk yet."""
        segments = self._chain.segments
        finished = len(segments) > 1 and segments[-2].synced < segments[-2].size
        return finished or self.must_flush(now_ms)

    def start_flush(self) -> Flush:
        """What has to be synced so that everything appended so far is safe.  `run` it anywhere, then
        `finish_flush`."""
        return self._again(Flush.of, self.path, self._chain.segments, self.end_offset)

    def finish_flush(self, flush: Flush, now_ms: int) -> None:
        """The flush has run: what it covered is safe."""
        flush.mark()
        self.recovery_point = min(max(self.recovery_point, flush.end_offset), self.end_offset)
        self.last_flush_ms = now_ms

    def flush(self, now_ms: int) -> None:
        """Sync everything here and now.  A failure is final."""
        flush = self.start_flush()
        try:
            flush.run()
        except OSError as error:
            self.flush_failed(error)
            raise
        self.finish_flush(flush, now_ms)

    def flush_failed(self, error: OSError) -> None:
        """A flush has failed while it ran.  If it could not open the folder it can be done again; otherwise what it
        was to bring to the disk may be lost, and nothing is written any more, even if there was only no space."""
        if not lacks_descriptors(error):
            self.fail(error)

    def close(self, *, clean: bool, now_ms: int = 0) -> None:
        """Let go of all files.  A clean close brings everything to the disk first, and leaves nothing to
        recover."""
        active = self._chain.active
        try:
            if clean and self._broken is None and active is not None:
                self._final(active.finish)
                self._final(self._chain.take_snapshot, self.end_offset, self._producers)
                self._final(self._epochs.save)
                self.flush(now_ms)
        finally:
            self._chain.close()

    def delete(self, unique: str) -> str | None:
        """Move the folder out of the way, to be removed later; `unique` is 32 hex digits.  Its new path, if
        it had one."""
        self._chain.close()
        if self._broken is None:
            self._broken = OSError(f"{self.name} was deleted")
        if not os.path.isdir(self.path):
            return None
        topic, _, partition = self.name.rpartition("-")
        folder = names.deleted_folder(topic, int(partition), unique)
        target = os.path.join(os.path.dirname(self.path), folder)
        system.rename(self.path, target)
        system.sync_directory(os.path.dirname(self.path))
        return target
