"""ListOffsets: from a time to an offset.

Timestamps of producers do not have to grow, so a later segment may hold earlier ones; the answer is the first
record, in the order of offsets, that is not older than what was asked for."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from trilogue.storage.config import FOREVER
from trilogue.storage.segment import Segment
from trilogue.storage.validation import QUICK_LOOK_BYTES, TakesLong
from trilogue.wire.records import Batch
from trilogue.wire.skim import skim

if TYPE_CHECKING:
    from trilogue.storage.log import Log

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6


class Found(NamedTuple):
    """A record, or a place; -1 for what is not known or not there."""

    timestamp: int
    offset: int
    leader_epoch: int


NOTHING = Found(-1, -1, -1)


class Search(NamedTuple):
    """For the first record from offset `start` on, below `end`, whose timestamp is at least `timestamp`."""

    segments: list[Segment]
    timestamp: int
    start: int
    end: int

    def run(self, in_loop: bool = False) -> Found | None:
        """All of it; with `in_loop` TakesLong is raised if that takes long."""
        for number, batch in enumerate(self.batches()):
            if in_loop and number:
                raise TakesLong  # what a header says of its records is wrong, and may be so again
            found = self.within(batch, in_loop)
            if found is not None:
                return found if found.offset < self.end else None
        return None

    def batches(self) -> Iterator[Batch]:
        """Those that may hold it, by their headers; each valid until the next is asked for."""
        timestamp, start, end = self.timestamp, self.start, self.end
        for number, segment in enumerate(self.segments):
            if segment.base_offset >= end:
                return
            if number + 1 < len(self.segments) and self.segments[number + 1].base_offset <= start:
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
                    return
                if header.max_timestamp >= timestamp and header.last_offset >= start:
                    yield batch

    def within(self, batch: Batch, in_loop: bool = False) -> Found | None:
        """What one of these batches holds, also if that lies beyond the end.  Touches nothing but the batch."""
        if in_loop and (batch.header.codec or len(batch.view) > QUICK_LOOK_BYTES):
            raise TakesLong
        data = batch.inflated()
        for offset, timestamp, _ in skim(data, batch.header):
            if timestamp >= self.timestamp and offset >= self.start:
                return Found(timestamp, offset, batch.header.partition_leader_epoch)
        return None


def by_timestamp(log: "Log", timestamp: int, end: int) -> Search:
    return Search(list(log.segments), timestamp, log.start_offset, end)


def of_max_timestamp(log: "Log") -> Search | None:
    """For the first record of the largest timestamp."""
    largest = max((segment.time()[0] for segment in log.segments if segment.size), default=-1)
    return by_timestamp(log, largest, FOREVER) if largest >= 0 else None


def search(log: "Log", timestamp: int, latest: int) -> Search | None:
    """How a point in time, or the largest, is looked for; None if it need not be."""
    if timestamp == MAX_TIMESTAMP:
        return of_max_timestamp(log)
    return by_timestamp(log, timestamp, latest) if timestamp >= 0 else None


def list_offset(log: "Log", timestamp: int, latest: int, in_loop: bool = False) -> Found:
    """The answer to one partition of ListOffsets.  Nothing is tiered here, so local is all and uploaded is
    none."""
    if timestamp == LATEST:
        return Found(-1, latest, log.latest_epoch if log.latest_epoch is not None else -1)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        epoch = log.epoch_at(log.start_offset)
        return Found(-1, log.start_offset, -1 if epoch is None else epoch)
    searched = search(log, timestamp, latest)
    return (searched.run(in_loop) if searched else None) or NOTHING
