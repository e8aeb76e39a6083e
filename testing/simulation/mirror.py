"""What every replica's log holds, as far as laws about logs have to know it: batches by offset, epoch and checksum."""

from collections.abc import Iterable
from typing import NamedTuple

from trilogue.storage.log import Log


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
        while self.entries:
            last = self.entries[-1]
            if last.next <= log.end_offset:
                first = next(iter(log.batches(last.base)), None)
                if first is not None and same(first.header, last):
                    break
            self.entries.pop()
            del self._prefixes[last.next]
        new = []
        for batch in log.batches(self.end) if log.end_offset > self.end else ():
            header = batch.header
            before = self._prefixes[self.end]
            entry = Entry(
                header.base_offset,
                header.next_offset,
                header.partition_leader_epoch,
                header.crc,
                hash((before, header.base_offset, header.partition_leader_epoch, header.crc)),
            )
            self.entries.append(entry)
            self._prefixes[entry.next] = entry.prefix
            new.append(entry)
        return new


def same(header: object, entry: Entry) -> bool:
    return (
        header.base_offset == entry.base  # type: ignore[attr-defined]
        and header.partition_leader_epoch == entry.epoch  # type: ignore[attr-defined]
        and header.crc == entry.crc  # type: ignore[attr-defined]
    )


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
