"""The store of brokers that live in one process: a dictionary, and SQLite beneath it to outlive the process.

The embedded default.  A commit is on the disk before it is seen or acknowledged, so neither a killed process nor a
power failure takes it back.  That is done in a thread, once for everybody who waits by then.
"""

import errno
import json
import logging
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import trio

from trilogue.broker.cluster.image import CLUSTER_ID
from trilogue.broker.cluster.store import ANY_VERSION, Check, Conflict, Create, Delete, Node, Op, SessionLost, Update
from trilogue.storage import system

logger = logging.getLogger(__name__)

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


def os_error(error: sqlite3.Error | OSError, what: str) -> OSError:
    """What SQLite reports, as the system would have."""
    if getattr(error, "sqlite_errorname", None) == "SQLITE_FULL":
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return OSError(f"{what}: {error}")


class Wish:
    """A commit that somebody waits for."""

    __slots__ = ("done", "ops", "problem", "session")

    def __init__(self, session: "LocalSession", ops: Sequence[Op]) -> None:
        self.session, self.ops = session, ops
        self.done = False
        self.problem: Conflict | OSError | None = None


class LocalStore:
    """Give it a file, or None to keep everything in memory.  Without `synced` a power failure may take the last
    commits, and no thread is needed: for tests in which time jumps while one is waited for."""

    def __init__(self, file: Path | None = None, *, synced: bool = True) -> None:
        self._nodes: dict[str, Node] = {}
        self._children: dict[str, set[str]] = {}
        """By path, of whatever has any below it."""
        self._owners: dict[str, LocalSession] = {}
        self._sessions: list[LocalSession] = []
        self._commits = 0
        self._wishes: list[Wish] = []
        self._synced = synced
        self._line = trio.Lock()
        """Whoever comes first writes for all; the others find themselves served."""
        self._database: sqlite3.Connection | None = None
        self._place: tuple[Path, os.stat_result] | None = None
        """Where the file is, and by what we know it again."""
        if file is not None:
            self._database = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
            try:
                self._load(self._database)
                system.sync_directory(str(file.parent))
            except (sqlite3.Error, OSError) as error:
                self.close()
                problem = os_error(error, f"{file} is not a metadata store that we can read")
                raise problem from error
            self._place = file, os.stat(file)

    def _load(self, database: sqlite3.Connection) -> None:
        (written,) = database.execute("PRAGMA user_version").fetchone()
        if written > FORMAT:
            raise OSError(f"a newer trilogue wrote it, in format {written}; this one knows {FORMAT}")
        level = "FULL" if self._synced else "NORMAL"
        begin = f"PRAGMA journal_mode=WAL; PRAGMA synchronous={level}; PRAGMA user_version={FORMAT};"
        database.executescript(begin + SCHEMA)
        for path, data, version, created in database.execute("SELECT * FROM node"):
            self._put(path, Node(data, version, created))
        (self._commits,) = database.execute("SELECT coalesce(max(number), 0) FROM last_commit").fetchone()

    def is_there(self) -> bool:
        """Whether the file is where it was opened: SQLite goes on writing to one that nobody will find again."""
        if self._place is None:
            return True
        file, before = self._place
        try:
            return os.path.samestat(os.stat(file), before)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True  # it cannot be seen, which is another trouble

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

    async def commit(self, session: "LocalSession", ops: Sequence[Op]) -> None:
        """Check everything, write it down, and only then let it be seen."""
        wish = Wish(session, ops)
        self._wishes.append(wish)
        if self._database is None:
            self._see(self._grant(), self._wishes)
        else:
            with trio.CancelScope(shield=True):  # whoever hangs up may be writing for others
                async with self._line:
                    if not wish.done:
                        await self._write_all(self._database)
        if wish.problem is not None:
            raise wish.problem

    async def _write_all(self, database: sqlite3.Connection) -> None:
        """What is wished for by now, in one transaction; what is wished for meanwhile comes next."""
        after = self._grant()
        wishes = self._wishes
        self._wishes = []
        try:
            if any(node is None or not node.ephemeral for node in after.values()):
                given = (database, after, self._commits + len(wishes))
                if self._synced:
                    await trio.to_thread.run_sync(write, *given)
                else:
                    write(*given)
        except OSError as error:
            after = {}
            for wish in wishes:
                wish.problem = wish.problem or error
        self._see(after, wishes)

    def _grant(self) -> dict[str, Node | None]:
        """What all wishes together come to; those that cannot be are told so."""
        after: dict[str, Node | None] = {}
        for number, wish in enumerate(self._wishes, self._commits + 1):
            try:
                after |= self._decide(wish.ops, after, number)
            except Conflict as conflict:
                wish.problem = conflict
        return after

    def _decide(self, ops: Sequence[Op], before: Mapping[str, Node | None], number: int) -> dict[str, Node | None]:
        """What one commit makes of the nodes, behind others that are not seen yet."""
        after: dict[str, Node | None] = {}

        def find(path: str) -> Node | None:
            if path in after:
                return after[path]
            return before[path] if path in before else self._nodes.get(path)

        for op in ops:
            node = find(op.path)
            match op:
                case Create(path, data, ephemeral):
                    if node is not None:
                        raise Conflict(path, "is there already")
                    after[path] = Node(data, 0, number, ephemeral)
                case Update(path, data, version):
                    node = expected(path, node, version)
                    after[path] = Node(data, node.version + 1, node.created, node.ephemeral)
                case Delete(path, version):
                    expected(path, node, version)
                    below = path + "/"
                    unseen = [each for each in (*before, *after) if each.startswith(below)]
                    after |= dict.fromkeys([path, *self._below(path), *unseen])
                case Check(path, version):
                    expected(path, node, version)
        return after

    def _below(self, path: str) -> Iterator[str]:
        for child in self._children.get(path, ()):
            if child in self._nodes:
                yield child
            yield from self._below(child)

    def _see(self, after: Mapping[str, Node | None], wishes: list[Wish]) -> None:
        """It is so from now on."""
        for path, node in after.items():
            if node is None:
                self._drop(path)
            else:
                self._put(path, node)
        self._commits += len(wishes)
        for wish in wishes:
            wish.done = True
            if wish.problem is None:
                for op in wish.ops:
                    if isinstance(op, Create) and op.ephemeral:
                        self._owners[op.path] = wish.session
        wishes.clear()
        if after:
            for each in self._sessions:
                each.notify(after.keys())

    def _put(self, path: str, node: Node) -> None:
        known = path in self._nodes
        self._nodes[path] = node
        while not known and path:
            parent = path.rpartition("/")[0]
            siblings = self._children.setdefault(parent, set())
            known = path in siblings
            siblings.add(path)
            path = parent

    def _drop(self, path: str) -> None:
        self._nodes.pop(path, None)
        self._owners.pop(path, None)
        while path and path not in self._nodes and not self._children.get(path):
            self._children.pop(path, None)
            parent = path.rpartition("/")[0]
            self._children.get(parent, set()).discard(path)
            path = parent

    async def end(self, session: "LocalSession") -> None:
        self._sessions.remove(session)
        owned = [path for path, owner in self._owners.items() if owner is session]
        if owned:
            try:
                await self.commit(session, [Delete(path) for path in owned])
            except OSError as error:  # what is ephemeral is in no file: whoever opens it next will not find it
                logger.error("a session ends unwritten: %s", error)


def write(database: sqlite3.Connection, after: Mapping[str, Node | None], number: int) -> None:
    """In a thread.  Ephemeral nodes never get here: nobody who made one is alive when the file is opened again."""
    gone = [(path,) for path, node in after.items() if node is None]
    kept = [
        (path, node.data, node.version, node.created)
        for path, node in after.items()
        if node is not None and not node.ephemeral
    ]
    try:
        database.execute("BEGIN")
        database.executemany("DELETE FROM node WHERE path = ?", gone)
        database.executemany("INSERT OR REPLACE INTO node VALUES (?, ?, ?, ?)", kept)
        database.execute("DELETE FROM last_commit")
        database.execute("INSERT INTO last_commit VALUES (?)", (number,))
        database.execute("COMMIT")
    except sqlite3.Error as error:
        if database.in_transaction:  # some errors have ended it already
            database.execute("ROLLBACK")
        raise os_error(error, "the metadata store cannot be written") from error


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
        await self._store.commit(self, ops)

    @property
    def has_news(self) -> bool:
        return self._stirred.is_set()

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
            await self._store.end(self)

    def notify(self, paths: Iterable[str]) -> None:
        self._changes.update(paths)
        self._stirred.set()


def expected(path: str, node: Node | None, version: int) -> Node:
    if node is None:
        raise Conflict(path, "is not there")
    if version not in (ANY_VERSION, node.version):
        raise Conflict(path, f"has version {node.version}, not {version}")
    return node
