"""A folder of Parquet files that takes every batch exactly once, and small files together, whenever its writer dies.

What is new is written aside, then decided, then shown:

1. Spark writes to `_trilogue/staged`, which readers pass over.  Whatever lies there undecided is thrown away.
2. A note says which files come and which go.  One rename makes it `N.decided`: from then on it will happen.
3. Files that go are hidden, files that come are renamed into their places.  Doing that again changes nothing.
4. The note is renamed to `N.done`.  It names the last batch in the table: a batch that comes again is known.

The law: at any moment a row is in the table once or not at all, and once a writer has opened the table again, every
decided row is there once.  A reader that lists the folder sees a batch appear file by file; while small files are put
together, or all are written anew, it may for a moment miss some of them, and never sees a row twice.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from trilogue.pipeline.files import Files

STAGED = "_trilogue/staged"
GONE = "_trilogue/gone"
NOTES = "_trilogue/notes"
NO_BATCH = -1

Stage = Callable[[str], None]
"""Writes files below the folder that it is told."""


@dataclass(frozen=True)
class Note:
    number: int
    batches: dict[str, int] = field(default_factory=dict)
    """The last batch of each checkpoint that is in the table when this is done."""
    come: dict[str, str] = field(default_factory=dict)
    """Where a file is to be, from where it was staged; relative to the table."""
    go: list[str] = field(default_factory=list)
    columns: dict[str, Any] = field(default_factory=dict)
    """Of the table when this is done, with their types, as far as its writers have said."""

    @property
    def name(self) -> str:
        return f"{self.number:020}"

    def text(self) -> str:
        return json.dumps(vars(self))


class ParquetTable:
    """One writer at a time.  `owner` is its checkpoint's name for itself: batch numbers mean something only with it."""

    def __init__(self, files: Files, path: str, owner: str, columns: Mapping[str, Any] | None = None) -> None:
        """`columns` are those that the table has from the first thing on that is written now."""
        self._files, self._path, self._owner = files, path.rstrip("/"), owner
        self._wanted = dict(columns or {})
        self._last = Note(0)

    def open(self) -> None:
        """Finish what was decided, throw away what was not."""
        for note in self._notes(".decided"):
            self._carry_out(note)
        self._files.delete(self._at(STAGED))
        for note in self._notes(".done"):
            self._last = note

    @property
    def columns(self) -> dict[str, Any]:
        """What the newest note says of them, decided or done; nothing if it says nothing.  Need not be opened."""
        notes = self._notes(".done") + self._notes(".decided")
        return max(notes, key=lambda note: note.number).columns if notes else {}

    @property
    def last_batch(self) -> int:
        return self._last.batches.get(self._owner, NO_BATCH)

    def add(self, batch: int, stage: Stage) -> set[str] | None:
        """The folders that it went to; none at all if it is there already.

        Files keep the names that Spark gave them, which are unique, behind the batch's number.
        """
        if batch <= self.last_batch:
            return None
        batches = {**self._last.batches, self._owner: batch}
        self._decide(batches, stage, lambda name: prefixed(name, f"batch-{batch:08}-"), [])
        return {name.rpartition("/")[0] for name in self._last.come}

    def small_files(self, folder: str, bytes_max: int) -> dict[str, int]:
        """Files of one folder of the table below that size, and their sizes."""
        found = self._files.walk(self._at(folder).rstrip("/"), deep=False)
        return {joined(folder, name): size for name, size in found.items() if size < bytes_max}

    def compact(self, folder: str, small: Iterable[str], stage: Stage) -> None:
        """`stage` writes what is in the small files of that folder, in fewer."""
        number = self._last.number + 1
        self._decide(self._last.batches, stage, lambda name: joined(folder, f"compact-{number:08}-{name}"), small)

    def write_anew(self, stage: Stage) -> None:
        """`stage` writes everything that is in the table, in another way."""
        number = self._last.number + 1
        there = self._files.walk(self._path)
        self._decide(self._last.batches, stage, lambda name: prefixed(name, f"anew-{number:08}-"), there)

    # -- the four steps ------------------------------------------------------------------------

    def _decide(self, batches: dict[str, int], stage: Stage, named: Callable[[str], str], go: Iterable[str]) -> None:
        staged = self._at(STAGED)
        self._files.delete(staged)
        stage(staged)
        come = {named(name): f"{STAGED}/{name}" for name in sorted(self._files.walk(staged))}
        note = Note(self._last.number + 1, batches, come, sorted(go), self._wanted or self._last.columns)
        draft = self._at(f"{NOTES}/{note.name}.draft")
        self._files.write(draft, note.text())
        self._files.rename(draft, self._at(f"{NOTES}/{note.name}.decided"))
        self._carry_out(note)

    def _carry_out(self, note: Note) -> None:
        for name in note.go:
            self._move(name, f"{GONE}/{name}")
        for name, staged in note.come.items():
            self._move(staged, name)
        self._files.delete(self._at(GONE))
        self._files.rename(self._at(f"{NOTES}/{note.name}.decided"), self._at(f"{NOTES}/{note.name}.done"))
        self._files.delete(self._at(STAGED))
        self._last = note
        for name in self._files.names(self._at(NOTES)):
            if name < note.name:
                self._files.delete(self._at(f"{NOTES}/{name}"))

    def _move(self, old: str, new: str) -> None:
        if self._files.exists(self._at(old)):
            self._files.rename(self._at(old), self._at(new))

    def _notes(self, ending: str) -> list[Note]:
        names = [name for name in self._files.names(self._at(NOTES)) if name.endswith(ending)]
        return [Note(**json.loads(self._files.read(self._at(f"{NOTES}/{name}")))) for name in names]

    def _at(self, name: str) -> str:
        return f"{self._path}/{name}"


def joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def prefixed(path: str, prefix: str) -> str:
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}{prefix}{name}"
