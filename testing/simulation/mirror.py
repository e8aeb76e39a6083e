"""What every replica's log holds, as far as laws about logs have to know it: batches by offset, epoch and checksum."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from trilogue.storage.log import Log
from trilogue.wire.records import Batch, Header


class Entry(NamedTuple):
    base: int
    next: int
    epoch: int
    crc: int
    prefix: int
    """Of all that comes before its end: two logs that have the same there are the same up to there."""


class Mirror:
    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._prefixes: dict[int, int] = {0: 0}
        """By offset."""
        self._looked_at: tuple[int, int | None] = (-1, None)

    @property
    def end(self) -> int:
        return self.entries[-1].next if self.entries else 0

    @property
    def last_epoch(self) -> int:
        return self.entries[-1].epoch if self.entries else -1

    def prefix(self, offset: int) -> int | None:
        """None where no batch ends."""
        return self._prefixes.get(offset)

    def update(self, log: Log) -> list[Entry]:
        """Look at the log again, and answer what is new in it."""
        now = log.end_offset, log.latest_epoch
        if now == self._looked_at:
            return []
        self._looked_at = now
        while self.entries and self.entries[-1].next > log.end_offset:
            self._forget_last()
        found: Iterator[Batch] = iter(())
        while self.entries:
            last = self.entries[-1]
            found = log.batches(last.base)
            first = next(found, None)
            if first is not None and same(first.header, last):
                break
            self._forget_last()
        else:
            found = log.batches(0)
        return [self._add(batch.header) for batch in found]

    def _forget_last(self) -> None:
        del self._prefixes[self.entries.pop().next]

    def _add(self, header: Header) -> Entry:
        base, epoch, crc = header.base_offset, header.partition_leader_epoch, header.crc
        entry = Entry(base, header.next_offset, epoch, crc, hash((self._prefixes[self.end], base, epoch, crc)))
        self.entries.append(entry)
        self._prefixes[entry.next] = entry.prefix
        return entry


def same(header: Header, entry: Entry) -> bool:
    return (header.base_offset, header.partition_leader_epoch, header.crc) == (entry.base, entry.epoch, entry.crc)


def common_end(one: Mirror, other: Mirror) -> int:
    """How far they are the same."""
    end = 0
    for mine, theirs in zip(one.entries, other.entries, strict=False):
        if mine.prefix != theirs.prefix:
            break
        end = mine.next
    return end


def told(entries: Iterable[Entry], around: int) -> str:
    return " ".join(f"{each.base}-{each.next - 1}@{each.epoch}" for each in entries if abs(each.base - around) < 10)
