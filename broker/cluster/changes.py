"""Who has changed what, told by those who did: two watches where there would be one for every node.

A commit writes two nodes besides its own.  `/changes` has a version, which counts all commits.  Below it every writer
has a node of its own, ephemeral, with the number of its last commit and what its last few commits have touched: its
journal.  Whoever adds up the numbers of all journals knows whether the version says more than they do; then a writer is
gone before it was read, or somebody was too slow, and everything has to be looked at.

A writer makes one commit at a time, so what its node says tells whether a commit of unknown fate was done.

Pure: bytes come in as arguments and go out as results.
"""

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

CHANGES = "/changes"

ENTRIES_MAX = 32
"""As many commits are remembered; readers come after each.  Written with every commit, so there are not many."""
OLD_BYTES_MAX = 8 << 10
"""And as many bytes of them, besides the newest."""
ENTRY_BYTES_MAX = 64 << 10
"""A commit that touches more is not worth naming its paths: reading everything costs no more."""


class Entry(NamedTuple):
    number: int
    paths: tuple[str, ...] | None
    """None: more than could be said."""


class Journal(NamedTuple):
    number: int = 0
    entries: tuple[Entry, ...] = ()
    attempt: int = 0
    """Another one for everything that was sent, done or not: by this a writer knows its own again."""

    def after(self, paths: Iterable[str], attempt: int) -> "Journal":
        named: tuple[str, ...] | None = tuple(paths)
        if sum(map(len, named or ())) > ENTRY_BYTES_MAX:
            named = None
        newest, kept, room = Entry(self.number + 1, named), [], OLD_BYTES_MAX
        for entry in reversed(self.entries[-(ENTRIES_MAX - 1) :]):
            room -= sum(map(len, entry.paths or ()))
            if room < 0:
                break
            kept.append(entry)
        return Journal(newest.number, (*reversed(kept), newest), attempt)

    def to_json(self) -> bytes:
        said = {"version": 1, "number": self.number, "attempt": self.attempt, "last": self.entries}
        return json.dumps(said, separators=(",", ":")).encode()


def read_journal(data: bytes) -> Journal:
    """ValueError, TypeError or KeyError if somebody else has written there."""
    said = json.loads(data)
    entries = (Entry(number, None if paths is None else tuple(paths)) for number, paths in said["last"])
    return Journal(int(said["number"]), tuple(entries), int(said["attempt"]))


class Account:
    """What a reader has heard of."""

    def __init__(self, version: int, journals: Mapping[str, Journal]) -> None:
        """As it was when the reader looked at everything."""
        self._version = self._newest = version
        self._heard = {writer: journal.number for writer, journal in journals.items()}

    def hear_own(self, version: int, writer: str, number: int) -> bool:
        """Whether there is nothing new but our own last commit."""
        if version == self._version == self._newest:
            return True
        if version != self._version + 1 or number != self._heard.get(writer, 0) + 1:
            return False
        self._version = self._newest = version
        self._heard[writer] = number
        return True

    def hear(self, version: int, journals: Mapping[str, Journal]) -> set[str] | None:
        """What was touched since; None if that cannot be told.  `journals` were read after `version`."""
        paths: set[str] = set()
        complete = version >= self._newest  # otherwise it is another store by the same name
        for writer, journal in journals.items():
            heard = self._heard.get(writer, 0)
            fresh = [entry for entry in journal.entries if entry.number > heard]
            complete &= len(fresh) == journal.number - heard
            self._version += max(journal.number - heard, 0)
            for entry in fresh:
                complete &= entry.paths is not None
                paths.update(entry.paths or ())
        self._heard = {writer: journal.number for writer, journal in journals.items()}
        self._newest = version
        return paths if complete and version <= self._version else None
