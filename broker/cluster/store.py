"""Where a cluster keeps its one truth: a tree of versioned nodes.

Two homes share this interface: `local.py` (SQLite, or only memory; brokers of one process) and `zookeeper.py`
(brokers of several).  The rules are ZooKeeper's: a change names the version it was decided on, several changes are made
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
    """The store has given us up; our ephemeral nodes are gone, or will be.

    What was being committed may have been done, and may still be: look again before you decide anew.
    """


class Unavailable(Exception):
    """The store cannot be reached now.  Nothing was done."""


class Refused(Exception):
    """The store will not do this, now or later: it is too large, or not allowed.  Nothing was done."""


UNREACHED = (SessionLost, Unavailable)
"""What passes: the store comes back, or we come back to it."""


class Store(Protocol):
    """Where brokers of one process have their sessions from."""

    def session(self) -> "Session": ...


class Session(Protocol):
    """One broker's access to the store.

    If the store gives us up, another session with it is begun without being asked for, and `epoch` grows: whoever has
    made ephemeral nodes waits for that with `renewed` and makes them again.  Whatever changed meanwhile is announced
    by `changed`.  All that waits may raise `Unavailable`, and `commit` also `SessionLost` and `Refused`.
    """

    @property
    def epoch(self) -> int:
        """Counts the sessions that the store has given us."""
        ...

    @property
    def timeout_seconds(self) -> float:
        """How long the store keeps the ephemeral nodes of somebody who has fallen silent."""
        ...

    @property
    def has_news(self) -> bool:
        """Whether `changed` would return at once."""
        ...

    async def read(self, path: str) -> Node | None: ...

    async def read_all(self, paths: Sequence[str]) -> Mapping[str, Node | None]: ...

    async def tree(self) -> Mapping[str, Node]:
        """Every node there is; changes made later than that are announced by `changed`."""
        ...

    async def commit(self, ops: Sequence[Op]) -> None:
        """All of it or nothing: raises `Conflict`."""
        ...

    async def changed(self) -> set[str]:
        """Waits for changes; the paths are hints to read again, with `read_all`, not history."""
        ...

    async def owns(self, path: str) -> bool:
        """Whether there is such an ephemeral node, and this very session has made it."""
        ...

    async def renewed(self, seen: int) -> int:
        """Waits for a session later than `seen`; returns its epoch."""
        ...

    def abandon(self) -> None:
        """Let the store give us up at once.  May be called from any thread, even while the loop is stuck."""
        ...

    async def close(self) -> None:
        """Ends the session and its ephemeral nodes."""
        ...
