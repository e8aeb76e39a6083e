"""Where a cluster keeps its one truth: a tree of versioned nodes.

Two homes share this interface: `local.py` (SQLite, or only memory; brokers of one process) and ZooKeeper (brokers
of several).  The rules are ZooKeeper's: a change names the version it was decided on, several changes are made
together or not at all, and an ephemeral node ends with the session that made it.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

ANY_VERSION = -1


class Node(NamedTuple):
    data: bytes
    version: int
    """Counts the changes of its data."""
    created: int
    """The number of the commit that made it: larger for whatever was made later, anywhere in the tree."""
    ephemeral: bool = False


class Create(NamedTuple):
    path: str
    data: bytes
    ephemeral: bool = False


class Update(NamedTuple):
    path: str
    data: bytes
    version: int = ANY_VERSION


class Delete(NamedTuple):
    """A node, with everything below it."""

    path: str
    version: int = ANY_VERSION


class Check(NamedTuple):
    path: str
    version: int


Op = Create | Update | Delete | Check


class Conflict(Exception):
    """Somebody was quicker: nothing of the commit was done.  Whoever decided must look again."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path = path


class SessionLost(Exception):
    """The store has given us up; our ephemeral nodes are gone."""


class Session(Protocol):
    """One broker's access to the store."""

    async def read(self, path: str) -> Node | None: ...

    async def read_all(self, paths: Sequence[str]) -> Mapping[str, Node | None]: ...

    async def tree(self) -> Mapping[str, Node]:
        """Every node there is; changes made later than that are announced by `changed`."""
        ...

    async def commit(self, ops: Sequence[Op]) -> None:
        """All of it or nothing: raises `Conflict`."""
        ...

    async def changed(self) -> set[str]:
        """Waits for changes; the paths are hints to read again, not history."""
        ...

    async def close(self) -> None:
        """Ends the session and its ephemeral nodes."""
        ...
