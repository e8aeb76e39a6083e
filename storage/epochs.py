"""Leader epoch -> first offset written under it; the file `leader-epoch-checkpoint`.

Followers find with it where their log parts from the leader's (KIP-101, KIP-279).  Epochs and offsets only
grow; an entry that contradicts a newer one makes the older give way.  The file is written before the first
batch of an epoch, so a batch whose epoch is not in it was never written by us: recovery counts on that."""

from bisect import bisect_right
from itertools import pairwise

from trilogue.storage.checkpoint import DamagedFile, parse_lines, render_lines
from trilogue.storage.files import read_file, replace_file

UNKNOWN = (-1, -1)


class Epochs:
    """The epochs of one log, oldest first."""

    __slots__ = ("_path", "_saved", "entries")

    def __init__(self, path: str, entries: list[tuple[int, int]] | None = None) -> None:
        self._path = path
        self.entries = entries or []
        self._saved = True

    @classmethod
    def load(cls, path: str) -> "Epochs":
        """From the file; empty where there is none.  Raises `DamagedFile`."""
        try:
            entries = [(int(epoch), int(start)) for epoch, start in parse_lines(read_file(path) or b"", 2)]
        except ValueError as error:
            raise DamagedFile(str(error)) from None
        for (epoch, start), (next_epoch, next_start) in pairwise(entries):
            if next_epoch <= epoch or next_start < start:
                raise DamagedFile(f"epoch {next_epoch} from {next_start} after epoch {epoch} from {start}")
        if entries and min(entries[0]) < 0:
            raise DamagedFile(f"epoch {entries[0][0]} from {entries[0][1]}")
        return cls(path, entries)

    @property
    def latest(self) -> int | None:
        """The newest epoch; None if there is none."""
        return self.entries[-1][0] if self.entries else None

    def assign(self, epoch: int, start: int) -> bool:
        """Epoch `epoch` begins at offset `start`, unless it has begun already.  True if that is news."""
        if epoch < 0 or (self.entries and self.entries[-1][0] == epoch):
            return False
        while self.entries and (self.entries[-1][0] >= epoch or self.entries[-1][1] >= start):
            self.entries.pop()
        self.entries.append((epoch, start))
        self._saved = False
        return True

    def knows(self, epoch: int, start: int) -> bool:
        """Whether just this epoch begins just there."""
        number = bisect_right(self.entries, epoch, key=_epoch)
        return number > 0 and self.entries[number - 1] == (epoch, start)

    def epoch_at(self, offset: int) -> int | None:
        """The epoch under which `offset` was written, or would be."""
        number = bisect_right(self.entries, offset, key=_start)
        return self.entries[number - 1][0] if number else None

    def end_offset(self, epoch: int, log_end: int) -> tuple[int, int]:
        """The largest epoch not above `epoch`, and the offset where it ends; `UNKNOWN` if we cannot tell."""
        if not self.entries or epoch == -1 or epoch > self.entries[-1][0]:
            return UNKNOWN
        if epoch == self.entries[-1][0]:
            return epoch, log_end
        number = bisect_right(self.entries, epoch, key=_epoch)
        higher_start = self.entries[number][1]
        return (self.entries[number - 1][0] if number else epoch), higher_start

    def truncate_end(self, end: int) -> None:
        """Forget the epochs that begin at `end` or later."""
        kept = [entry for entry in self.entries if entry[1] < end]
        if kept != self.entries:
            self.entries, self._saved = kept, False

    def truncate_start(self, start: int) -> None:
        """Forget the epochs that ended at or before `start`; the one in force there begins there."""
        number = bisect_right(self.entries, start, key=_start)
        if number and self.entries[number - 1][1] < start:
            self.entries = [(self.entries[number - 1][0], start), *self.entries[number:]]
            self._saved = False

    def clear(self) -> None:
        """Forget all."""
        self.entries, self._saved = [], False

    def save(self) -> None:
        """Write the file, if it does not say the same already."""
        if not self._saved:
            replace_file(self._path, render_lines(self.entries))
            self._saved = True


def _epoch(entry: tuple[int, int]) -> int:
    return entry[0]


def _start(entry: tuple[int, int]) -> int:
    return entry[1]
