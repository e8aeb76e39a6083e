"""ListOffsets: from a time to an offset.

Timestamps of producers do not have to grow, so a later segment may hold earlier ones; the answer is the first
record, in the order of offsets, that is not older than what was asked for."""

from typing import TYPE_CHECKING, NamedTuple

from trilogue.storage.segment import Segment

if TYPE_CHECKING:
    from trilogue.storage.log import Log

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6


class Found(NamedTuple):
    """A record, or a place; -1 for what is not known or not there."""

    timestamp: int
    offset: int
    leader_epoch: int


NOTHING = Found(-1, -1, -1)


def by_timestamp(segments: list[Segment], timestamp: int, start: int, end: int) -> Found | None:
    """The first record from offset `start` on, below `end`, whose timestamp is at least `timestamp`."""
    for number, segment in enumerate(segments):
        if segment.base_offset >= end:
            return None
        if number + 1 < len(segments) and segments[number + 1].base_offset <= start:
            continue
        if not segment.size or segment.time()[0] < timestamp:
            continue
        noted, offset = segment.timeindex.lookup(timestamp)
        if noted >= 0 and not segment.has_time_entry(noted, offset):
            segment.reindex("the time index speaks of no batch")
            noted, offset = segment.timeindex.lookup(timestamp)
        # Up to the entry nothing is newer than `noted`.  If that is what was asked for, its batch has the answer,
        # and `find` begins at that batch, not behind it.
        found = segment.find(max(offset, start))
        for _, batch in segment.batches(found[0]) if found else ():
            header = batch.header
            if header.base_offset >= end:
                return None
            if header.max_timestamp < timestamp or header.last_offset < start:
                continue
            for record in batch.records():
                if record.timestamp >= timestamp and record.offset >= start:
                    if record.offset >= end:
                        return None
                    return Found(record.timestamp, record.offset, header.partition_leader_epoch)
    return None


def of_max_timestamp(segments: list[Segment], start: int) -> Found | None:
    """The first record, from offset `start` on, of the largest timestamp."""
    largest = max((segment.time()[0] for segment in segments if segment.size), default=-1)
    return by_timestamp(segments, largest, start, 2**63 - 1) if largest >= 0 else None


def list_offset(log: "Log", timestamp: int, latest: int) -> Found:
    """The answer to one partition of ListOffsets.  Nothing is tiered here, so local is all and uploaded is
    none."""
    if timestamp == LATEST:
        return Found(-1, latest, log.latest_epoch if log.latest_epoch is not None else -1)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        epoch = log.epoch_at(log.start_offset)
        return Found(-1, log.start_offset, -1 if epoch is None else epoch)
    if timestamp == MAX_TIMESTAMP:
        return log.offset_of_max_timestamp() or NOTHING
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return NOTHING
    return log.offset_for_timestamp(timestamp, latest) or NOTHING
