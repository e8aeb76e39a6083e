"""Compaction of one log, in three steps.

`plan` decides whether and what, on the thread that owns the log.  `Plan.run` does the work, on any thread: it
reads segments that nobody writes and makes new ones beside them (.cleaned).  `adopt` swaps them in, on the
first thread again; if the log has changed under the work, the work is thrown away.  A crash at any point
leaves the old segments or the new.

Memory is bounded by the key map (`KeyMap`) and one batch; when the map is full the round ends there, and the
next goes on."""

import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

from trilogue.storage import names, system
from trilogue.storage.aborted import AbortedTransaction
from trilogue.storage.compaction import DEDUPE_BYTES, Filter, KeyMap, LastWrite, Transactions
from trilogue.storage.config import LogConfig
from trilogue.storage.files import Handle, OpenFiles, unlink_if_there
from trilogue.storage.log import Log
from trilogue.storage.scan import batches
from trilogue.storage.segment import LARGEST_RELATIVE_OFFSET, Segment
from trilogue.wire.errors import MalformedMessage
from trilogue.wire.records import Batch, read_header


class Interrupted(Exception):
    """Somebody wanted the cleaner to stop; nothing has changed."""


class Source(NamedTuple):
    """A segment as the cleaner sees it: held open, whatever happens to it."""

    segment: Segment
    handle: Handle
    size: int
    end: int
    """The next segment's first offset."""

    def batches(self) -> Iterator[Batch]:
        """All of them; each valid until the next is asked for."""
        for _, batch in batches(self.handle, 0, self.size):
            yield batch


class Cleaned(NamedTuple):
    """What a round has made."""

    groups: list[tuple[list[Segment], int]]
    """The segments that were merged, and the first offset of what they became."""
    clean_to: int
    bytes_read: int
    bytes_written: int
    records_mapped: int


class Plan(NamedTuple):
    """What to compact."""

    folder: str
    config: LogConfig
    sources: list[Source]
    first_dirty: int
    end: int
    aborted: list[AbortedTransaction]
    last_writes: dict[int, LastWrite]
    now_ms: int

    def run(self, *, dedupe_bytes: int = DEDUPE_BYTES, stop: Callable[[], bool] = lambda: False) -> Cleaned:
        """Do the work.  Raises Interrupted as soon as `stop` says so."""
        keys = KeyMap(dedupe_bytes)
        read = _map_keys(self, keys, stop)
        staying = Filter(
            keys, Transactions(self.aborted), self.last_writes, self.now_ms, self.config.delete_retention_ms
        )
        groups: list[tuple[list[Segment], int]] = []
        written = 0
        pool = OpenFiles()
        try:
            for group in _groups(
                [source for source in self.sources if source.segment.base_offset <= keys.latest], self.config
            ):
                base = group[0].segment.base_offset
                groups.append(([source.segment for source in group], base))
                written += _merge(self, group, base, staying, pool, stop)
                read += sum(source.size for source in group)
            system.sync_directory(self.folder)
        except BaseException:
            pool.clear()
            discard(self.folder, groups)
            raise
        return Cleaned(groups, max(keys.latest + 1, self.first_dirty), read, written, len(keys))


def plan(log: Log, now_ms: int, high_watermark: int, *, at_once: bool = False) -> Plan | None:
    """What there is to compact, if it is worth it by now: the dirty ratio, or max.compaction.lag.ms; or `at_once`."""
    config, segments = log.config, log.segments
    if not config.compact or len(segments) < 2:
        return None
    first_dirty = max(log.clean_offset, log.start_offset, segments[0].base_offset)
    closed = segments[: _first_uncleanable(log, now_ms, high_watermark)]
    dirty = [segment for segment, after in zip(closed, segments[1:], strict=False) if after.base_offset > first_dirty]
    dirty_bytes = sum(segment.size for segment in dirty)
    if not dirty_bytes:
        return None
    total = sum(segment.size for segment in closed)
    oldest = min((time for segment in dirty if (time := segment.rolling_timestamp()) >= 0), default=now_ms)
    overdue = now_ms - oldest > config.max_compaction_lag_ms
    if dirty_bytes / total < config.min_cleanable_dirty_ratio and not overdue and not at_once:
        return None
    ends = [after.base_offset for after in segments[1:]]
    return Plan(
        log.path,
        config,
        [Source(segment, segment.handle(), segment.size, end) for segment, end in zip(closed, ends, strict=False)],
        first_dirty,
        ends[len(closed) - 1],
        log.aborted_between(segments[0].base_offset, ends[len(closed) - 1]),
        {known.id: LastWrite(known.last_offset, known.epoch) for known in log.producers()},
        now_ms,
    )


def _first_uncleanable(log: Log, now_ms: int, high_watermark: int) -> int:
    """How many of the oldest segments may be compacted: not the active one, nothing undecided, nothing too
    fresh."""
    stable = log.last_stable_offset(high_watermark)
    lag = log.config.min_compaction_lag_ms
    number = 0
    for segment, after in zip(log.segments, log.segments[1:], strict=False):
        if after.base_offset > stable or (lag > 0 and segment.time()[0] > now_ms - lag):
            break
        number += 1
    return number


def _map_keys(plan: Plan, keys: KeyMap, stop: Callable[[], bool]) -> int:
    """Fill the map from the dirty part of the log, as far as it goes.  Returns the bytes read."""
    transactions = Transactions(plan.aborted)
    read = 0
    for source in plan.sources:
        if source.end <= plan.first_dirty:
            continue
        for batch in source.batches():
            if stop():
                raise Interrupted
            header = batch.header
            read += header.size
            if header.control:
                transactions.marker_is_idle(batch)
            elif not transactions.aborted(header):
                try:
                    for record in batch.records():
                        if record.key is not None and record.offset >= plan.first_dirty:
                            if keys.full and keys.last_offset(record.key) < 0:
                                return read
                            keys.put(record.key, record.offset)
                except MalformedMessage:
                    if not batch.crc_ok():
                        raise
                    # Otherwise it stays as it is (`Filter.what_stays`).
            if header.last_offset >= plan.first_dirty:
                keys.latest = header.last_offset
        keys.latest = max(keys.latest, source.end - 1)
    return read


def _groups(sources: list[Source], config: LogConfig) -> Iterator[list[Source]]:
    """Neighbours that fit into one segment together."""
    group: list[Source] = []
    for source in sources:
        if group and (
            sum(member.size for member in group) + source.size > config.segment_bytes
            or source.end - group[0].segment.base_offset > LARGEST_RELATIVE_OFFSET
        ):
            yield group
            group = []
        group.append(source)
    if group:
        yield group


def _merge(
    plan: Plan, group: list[Source], base: int, staying: Filter, pool: OpenFiles, stop: Callable[[], bool]
) -> int:
    """Write what stays of a group into one new segment, complete and synced.  Returns its size."""
    for kind in names.SEGMENT_FILES:
        unlink_if_there(os.path.join(plan.folder, names.numbered(base, kind) + names.CLEANED))
    target = Segment(plan.folder, base, pool, created_ms=plan.now_ms, suffix=names.CLEANED)
    target.create()
    staying.transactions.kept.clear()
    for source in group:
        for batch in source.batches():
            if stop():
                raise Interrupted
            left = staying.what_stays(batch)
            if left is not None:
                header = read_header(left)
                target.append(
                    left, header.size, header.last_offset, header.max_timestamp, plan.config.index_interval_bytes
                )
    if stop():
        raise Interrupted  # what follows takes as long as the disk does
    for entry in staying.transactions.kept:
        target.aborted.append(entry)
    target.aborted.create()  # also an empty one, to take the place of what was there
    target.finish()
    for handle in (*target.handles(), target.aborted.handle()):
        system.fsync(handle.fd)
    newest = system.fstat(group[-1].handle.fd)
    target.sleep()  # first: closing a file may be a change to it
    os.utime(target.path(names.LOG), ns=(newest.st_atime_ns, newest.st_mtime_ns))
    return target.size


def discard(folder: str, groups: list[tuple[list[Segment], int]]) -> None:
    """Throw away what a round has made."""
    for _, base in groups:
        for kind in names.SEGMENT_FILES:
            unlink_if_there(os.path.join(folder, names.numbered(base, kind) + names.CLEANED))


def adopt(log: Log, cleaned: Cleaned, now_ms: int) -> bool:
    """Swap the new segments in.  False if the log has changed meanwhile: then nothing is done, and they are
    discarded."""
    current = set(map(id, log.segments))
    if log.failed is not None or not all(id(segment) in current for old, _ in cleaned.groups for segment in old):
        discard(log.path, cleaned.groups)
        return False
    for number, (old, base) in enumerate(cleaned.groups):
        try:
            log.replace(old, base, now_ms)
        except OSError:
            discard(log.path, cleaned.groups[number:])
            raise
    log.clean_offset = cleaned.clean_to
    return True
