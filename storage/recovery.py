"""Opening a log, after a clean end or a crash.

After a clean end only the tail of the last segment is looked at, and a snapshot tells about producers.  After
a crash every batch from the recovery point on is checked: its checksum; and, because the checksum does not
cover them, its magic, its length, its offset (they grow, and without gaps where nothing is ever compacted)
and its epoch (the one that the checkpoint has for that offset).  The log ends before the first batch that
fails; nothing after it is kept.  Indexes, aborted transactions and producers are made anew from what was
checked.

Side files are never a reason not to open: what is damaged is made again.  What was done is said in one line
of the log."""

import logging
import os
from typing import NamedTuple

from trilogue.storage import checkpoint, names, snapshot, system
from trilogue.storage.chain import Chain
from trilogue.storage.checkpoint import DamagedFile
from trilogue.storage.config import LogConfig
from trilogue.storage.epochs import Epochs
from trilogue.storage.files import OpenFiles
from trilogue.storage.folder import Folder, read_folder
from trilogue.storage.producers import Producers
from trilogue.storage.replay import producers_at, take_over
from trilogue.storage.scan import Damaged
from trilogue.storage.segment import LARGEST_RELATIVE_OFFSET, Segment
from trilogue.wire.errors import MalformedMessage
from trilogue.wire.records import end_transaction

logger = logging.getLogger(__name__)

NO_BOUND = 2**63 - 1


class Loaded(NamedTuple):
    """A log as it was found, or made sound."""

    chain: Chain
    epochs: Epochs
    producers: Producers
    topic_id: bytes | None
    start_offset: int
    end_offset: int


def load(
    path: str,
    config: LogConfig,
    now_ms: int,
    start_offset: int,
    recovery_point: int,
    clean: bool,
    pool: OpenFiles,
) -> Loaded:
    """See `Log.open`."""
    folder = read_folder(path, pool)
    epochs_path = os.path.join(path, names.EPOCHS)
    if folder is None:
        chain = Chain(path, pool, [], [])
        return Loaded(chain, Epochs(epochs_path), Producers(start_offset), None, start_offset, start_offset)
    topic_id = _topic_id(path, folder)
    epochs, epochs_known = _epochs(epochs_path, folder)
    scan_from, end_offset = _sound_end(folder, start_offset, recovery_point, clean)
    if scan_from < len(folder.segments):
        check = _Checked(path, folder, config, now_ms, epochs if epochs_known else None)
        end_offset, producers = check.run(scan_from)
    else:
        producers, odd = producers_at(path, folder.segments, folder.snapshots, end_offset, config, now_ms)
        folder.notes += odd
    chain = Chain(path, pool, folder.segments, folder.snapshots)
    if folder.segments:
        start_offset = max(start_offset, folder.segments[0].base_offset)
    if start_offset > end_offset:
        # What lay between was lost; offsets must not be given out a second time.
        folder.notes.append(f"it ended at {end_offset}, before its start {start_offset}, and begins anew there")
        chain.clear()
        epochs.clear()
        producers.clear(start_offset)
        end_offset = start_offset
        chain.add(start_offset, now_ms)
    epochs.truncate_end(end_offset)
    epochs.truncate_start(start_offset)
    epochs.save()
    if folder.notes:
        logger.warning("%s: opened with repairs: %s", os.path.basename(path), "; ".join(folder.notes))
    for segment in chain.segments:
        segment.sleep()
    return Loaded(chain, epochs, producers, topic_id, start_offset, end_offset)


def _topic_id(path: str, folder: Folder) -> bytes | None:
    try:
        return checkpoint.read_partition_metadata(os.path.join(path, names.PARTITION_METADATA))
    except DamagedFile as damage:
        folder.notes.append(f"partition.metadata is damaged ({damage})")
        system.unlink(os.path.join(path, names.PARTITION_METADATA))
        return None


def _epochs(path: str, folder: Folder) -> tuple[Epochs, bool]:
    """The leader epochs, and whether they are from the file; otherwise they are from the batches."""
    try:
        epochs = Epochs.load(path)
    except DamagedFile as damage:
        folder.notes.append(f"leader epochs are damaged ({damage})")
        epochs = Epochs(path)
    if epochs.entries:
        return epochs, True
    try:
        for segment in folder.segments:
            for _, header in segment.headers():
                epochs.assign(header.partition_leader_epoch, header.base_offset)
    except Damaged:
        pass  # the check that follows says so
    return epochs, False


def _sound_end(folder: Folder, start_offset: int, recovery_point: int, clean: bool) -> tuple[int, int]:
    """The first segment that has to be checked batch by batch (past the last if none has), and where the log
    ends."""
    segments = folder.segments
    first, end = len(segments), start_offset
    if not clean:
        first = 0
        while first + 1 < len(segments) and segments[first + 1].base_offset <= recovery_point:
            first += 1
    elif segments:
        try:
            end = segments[-1].end()
        except Damaged as damage:
            folder.notes.append(f"segment {segments[-1].base_offset} does not end well ({damage})")
            first = len(segments) - 1
    for number, segment in enumerate(segments[:first]):
        size = segment.found_size(names.TXNINDEX)
        if size and not segment.aborted.sound(segment.base_offset, size):
            folder.notes.append(f"the aborted transactions of segment {segment.base_offset} are damaged")
            first = number
            break
    for segment in segments[:first]:
        if segment in folder.lost_indexes:
            segment.reindex("an index is missing or cut")
            segment.finish()
    return first, end


class _Checked:
    """The walk over everything that cannot be trusted."""

    def __init__(self, path: str, folder: Folder, config: LogConfig, now_ms: int, epochs: Epochs | None) -> None:
        self.path, self.folder, self.config, self.now_ms = path, folder, config, now_ms
        self.epochs = epochs
        """The checkpoint, if there was one to believe."""
        self.expected = 0
        """The offset that comes next."""
        self.latest_epoch = -1

    def run(self, scan_from: int) -> tuple[int, Producers]:
        """Check every segment from `scan_from` on, and cut what is not sound.  Where the log ends, and its
        producers."""
        segments, notes = self.folder.segments, self.folder.notes
        begin = segments[scan_from].base_offset
        producers = self._producers(segments[:scan_from], begin)
        size = sum(segment.size for segment in segments[scan_from:])
        notes.insert(0, f"checked {size} bytes in {len(segments) - scan_from} segments from offset {begin} on")
        for number in range(scan_from, len(segments)):
            segment, later = segments[number], segments[number + 1 :]
            self.expected = segment.base_offset
            bound = later[0].base_offset if later else NO_BOUND
            damage = self._segment(segment, bound, not later and not self.config.compact, producers)
            if damage is None and later and self.expected < bound and not self.config.compact:
                # Written before the next, and not synced before it: a power failure can take the end of this one only.
                damage = Damaged(segment.size, f"it ends at {self.expected}, and the next begins at {bound}")
            if damage is not None:
                lost = segment.size - damage.position + sum(gone.size for gone in later)
                notes.append(f"cut {lost} bytes at offset {self.expected}: {damage}")
                segment.truncate(damage.position, self.expected)
                for gone in later:
                    gone.remove()
                del segments[number + 1 :]
                producers = self._producers(segments, self.expected)
                break
            if later:
                segment.finish()
                self._take_snapshot(bound, producers)
        for segment in segments[scan_from:]:
            segment.synced = 0
        return self.expected, producers

    def _take_snapshot(self, offset: int, producers: Producers) -> None:
        """Those in the range were not trusted and are gone; without them producers would go with old
        segments."""
        snapshot.write(os.path.join(self.path, names.numbered(offset, names.SNAPSHOT)), producers)
        self.folder.snapshots.append(offset)

    def _producers(self, segments: list[Segment], end_offset: int) -> Producers:
        producers, odd = producers_at(self.path, segments, self.folder.snapshots, end_offset, self.config, self.now_ms)
        self.folder.notes += odd
        return producers

    def _segment(self, segment: Segment, bound: int, contiguous: bool, producers: Producers) -> Damaged | None:
        """Check one segment, and make all its side files anew.  Returns where it stops being sound, if it
        does.

        `bound` is where the next one begins.  `contiguous`: it cannot have gaps, being the last of a log that
        is not compacted."""
        segment.clear_indexes()
        segment.aborted.remove()
        bound = min(bound, segment.base_offset + LARGEST_RELATIVE_OFFSET + 1)
        interval = self.config.index_interval_bytes
        position = 0
        jump: tuple[int, int] | None = None
        """(position, expected offset) of the batch before, if it left a gap: then it may have been the one
        that lied."""
        try:
            for position, batch in segment.batches():
                header = batch.header
                base, expected = header.base_offset, self.expected
                following = base + header.last_offset_delta + 1
                if not expected <= base < following <= bound or (contiguous and base > expected):
                    if jump is not None and jump[1] <= base < following <= bound:
                        position, self.expected = jump
                    return Damaged(position, f"offset {base} where {expected} comes next")
                if problem := self._wrong_epoch(header.partition_leader_epoch, base):
                    return Damaged(position, problem)
                if not batch.crc_ok():
                    return Damaged(position, "a wrong checksum")
                if header.producer_id >= 0:
                    marker = end_transaction(batch) if header.control else None
                    aborted = take_over(producers, header, marker)
                    if aborted is not None:
                        segment.aborted.append(aborted)
                segment.note(position, header.size, following - 1, header.max_timestamp, interval)
                jump = (position, expected) if base > expected else None
                self.expected = following
        except Damaged as damage:
            return damage.with_traceback(None)  # in which the walk would hold the file open
        except MalformedMessage as problem:
            return Damaged(position, str(problem))
        return None

    def _wrong_epoch(self, epoch: int, offset: int) -> str | None:
        if epoch < self.latest_epoch:
            return f"epoch {epoch} after {self.latest_epoch}"
        if self.epochs is not None and (known := self.epochs.epoch_at(offset)) not in (epoch, None):
            return f"epoch {epoch} where {known} wrote"
        self.latest_epoch = epoch
        return None
