"""The store of brokers that live in one process: a dictionary, and SQLite beneath it to outlive the process.

The embedded default.  A commit is written before it is seen: with write-ahead logging that takes some fifty
microseconds, and survives a killed process; a power failure may take the last commits, never half of one.
"""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import trio

from trilogue.broker.cluster.image import CLUSTER_ID
from trilogue.broker.cluster.store import ANY_VERSION, Check, Conflict, Create, Delete, Node, Op, SessionLost, Update

SCHEMA = """
CREATE TABLE IF NOT EXISTS node (
    path TEXT PRIMARY KEY, data BLOB NOT NULL, version INTEGER NOT NULL, created INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS last_commit (number INTEGER NOT NULL);
"""


FORMAT = 1
"""Of the file: what a newer one means, an older trilogue cannot know."""


def stored_cluster_id(file: Path) -> str | None:
    """Which cluster a store is of, for whoever does not own it yet; None if that cannot be told."""
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as database:
            found = database.execute("SELECT data FROM node WHERE path = ?", (CLUSTER_ID,)).fetchone()
            return str(json.loads(found[0])["id"]) if found else None
    except (sqlite3.Error, ValueError, KeyError):
        return None  # there is none, or it is none: whoever opens it will say so


class LocalStore:
    """Give it a file, or None to keep everything in memory."""

    def __init__(self, file: Path | None = None) -> None:
        self._nodes: dict[str, Node] = {}
        self._owners: dict[str, LocalSession] = {}
        self._sessions: list[LocalSession] = []
        self._commits = 0
        self._database: sqlite3.Connection | None = None
        if file is not None:
            self._database = sqlite3.connect(file, isolation_level=None)
            try:
                self._load(self._database)
            except (sqlite3.Error, OSError) as error:
                self.close()
                raise OSError(f"{file} is not a metadata store that we can read: {error}") from error

    def _load(self, database: sqlite3.Connection) -> None:
        (written,) = database.execute("PRAGMA user_version").fetchone()
        if written > FORMAT:
            raise OSError(f"a newer trilogue wrote it, in format {written}; this one knows {FORMAT}")
        begin = f"PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA user_version={FORMAT};"
        database.executescript(begin + SCHEMA)
        for path, data, version, created in database.execute("SELECT * FROM node"):
            self._nodes[path] = Node(data, version, created)
        (self._commits,) = database.execute("SELECT coalesce(max(number), 0) FROM last_commit").fetchone()

    def session(self) -> "LocalSession":
        session = LocalSession(self)
        self._sessions.append(session)
        return session

    def close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    # -- for the sessions ----------------------------------------------------------------------

    @property
    def nodes(self) -> Mapping[str, Node]:
        return self._nodes

    def owner(self, path: str) -> "LocalSession | None":
        return self._owners.get(path)

    def commit(self, session: "LocalSession", ops: Sequence[Op]) -> None:
        """Check everything, write it down, and only then let it be seen."""
        after: dict[str, Node | None] = {}
        number = self._commits + 1
        for op in ops:
            before = after[op.path] if op.path in after else self._nodes.get(op.path)
            match op:
                case Create(path, data, ephemeral):
                    if before is not None:
                        raise Conflict(path, "is there already")
                    after[path] = Node(data, 0, number, ephemeral)
                case Update(path, data, version):
                    node = expected(path, before, version)
                    after[path] = Node(data, node.version + 1, node.created, node.ephemeral)
                case Delete(path, version):
                    expected(path, before, version)
                    below = path + "/"
                    doomed = [each for each in (*self._nodes, *after) if each == path or each.startswith(below)]
                    after |= dict.fromkeys(doomed)
                case Check(path, version):
                    expected(path, before, version)
        self._write(after, number)
        self._commits = number
        for path, became in after.items():
            if became is None:
                self._nodes.pop(path, None)
                self._owners.pop(path, None)
            else:
                self._nodes[path] = became
                if became.ephemeral:
                    self._owners[path] = session
        for each in self._sessions:
            each.notify(after.keys())

    def end(self, session: "LocalSession") -> None:
        self._sessions.remove(session)
        owned = [path for path, owner in self._owners.items() if owner is session]
        if owned:
            self.commit(session, [Delete(path) for path in owned])

    def _write(self, after: Mapping[str, Node | None], number: int) -> None:
        # Ephemeral nodes never get here: nobody who made one is alive when the file is opened again.
        if self._database is None:
            return
        gone = [(path,) for path, node in after.items() if node is None]
        kept = [
            (path, node.data, node.version, node.created)
            for path, node in after.items()
            if node is not None and not node.ephemeral
        ]
        self._database.execute("BEGIN")
        try:
            self._database.executemany("DELETE FROM node WHERE path = ?", gone)
            self._database.executemany("INSERT OR REPLACE INTO node VALUES (?, ?, ?, ?)", kept)
            self._database.execute("DELETE FROM last_commit")
            self._database.execute("INSERT INTO last_commit VALUES (?)", (number,))
        except sqlite3.Error as error:
            self._database.execute("ROLLBACK")
            raise OSError(f"the metadata store cannot be written: {error}") from error
        self._database.execute("COMMIT")


class LocalSession:
    """See `store.Session`.  Nothing here waits but `changed`, and nobody is ever given up."""

    epoch = 1
    timeout_seconds = 0.0

    def __init__(self, store: LocalStore) -> None:
        self._store = store
        self._changes: set[str] = set()
        self._stirred = trio.Event()
        self._open = True

    async def read(self, path: str) -> Node | None:
        return self._store.nodes.get(path)

    async def read_all(self, paths: Sequence[str]) -> Mapping[str, Node | None]:
        return {path: self._store.nodes.get(path) for path in paths}

    async def tree(self) -> Mapping[str, Node]:
        return dict(self._store.nodes)

    async def commit(self, ops: Sequence[Op]) -> None:
        if not self._open:
            raise SessionLost("the session was closed")
        self._store.commit(self, ops)

    async def changed(self) -> set[str]:
        await self._stirred.wait()
        changes, self._changes, self._stirred = self._changes, set(), trio.Event()
        return changes

    async def owns(self, path: str) -> bool:
        return self._store.owner(path) is self

    async def renewed(self, seen: int) -> int:
        if seen >= self.epoch:
            await trio.sleep_forever()
        return self.epoch

    def abandon(self) -> None:
        """Nobody else could take over what is ours."""

    async def close(self) -> None:
        if self._open:
            self._open = False
            self._store.end(self)

    def notify(self, paths: Iterable[str]) -> None:
        self._changes.update(paths)
        self._stirred.set()


def expected(path: str, node: Node | None, version: int) -> Node:
    if node is None:
        raise Conflict(path, "is not there")
    if version not in (ANY_VERSION, node.version):
        raise Conflict(path, f"has version {node.version}, not {version}")
    return node
