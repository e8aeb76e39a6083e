"""A broker's session with the store of its process, that may hang: then the store gives it up, as ZooKeeper would.

See `broker/cluster/store.py` for what a session is.
"""

from collections.abc import Mapping, Sequence

import trio

from trilogue.broker.cluster.local import LocalStore
from trilogue.broker.cluster.store import Node, Op, SessionLost


class HangingSession:
    """Whoever waits for it while it hangs goes on when it is woken; what was to be committed is not."""

    timeout_seconds = 0.0

    def __init__(self, store: LocalStore) -> None:
        self._store = store
        self._ear = store.session()
        """Hears of changes all the time, and owns nothing."""
        self._own = store.session()
        self.epoch = 1
        self._awake = trio.Event()
        self._awake.set()
        self._renewed = trio.Event()

    # -- what tests do -------------------------------------------------------------------------

    async def hang(self) -> None:
        self._awake = trio.Event()
        await self._own.close()

    def wake(self) -> None:
        """With another session."""
        self._own = self._store.session()
        self.epoch += 1
        self._awake.set()
        self._renewed.set()
        self._renewed = trio.Event()

    # -- what the broker does ------------------------------------------------------------------

    async def read(self, path: str) -> Node | None:
        await self._awake.wait()
        return await self._own.read(path)

    async def read_all(self, paths: Sequence[str]) -> Mapping[str, Node | None]:
        await self._awake.wait()
        return await self._own.read_all(paths)

    async def tree(self) -> Mapping[str, Node]:
        await self._awake.wait()
        return await self._own.tree()

    async def commit(self, ops: Sequence[Op]) -> None:
        epoch = self.epoch
        await self._awake.wait()
        if self.epoch != epoch:
            raise SessionLost("the broker hung, and the store has given it up")
        await self._own.commit(ops)

    @property
    def has_news(self) -> bool:
        return self._ear.has_news

    async def changed(self) -> set[str]:
        changes = await self._ear.changed()
        await self._awake.wait()
        return changes

    async def owns(self, path: str) -> bool:
        await self._awake.wait()
        return await self._own.owns(path)

    async def renewed(self, seen: int) -> int:
        while seen >= self.epoch:
            await self._renewed.wait()
        return self.epoch

    def abandon(self) -> None:
        """The loop is that of all brokers here: if it does not turn, nobody could take over."""

    async def close(self) -> None:
        await self._own.close()
        await self._ear.close()


class Door:
    """A broker's own way to the store: its session can be had hold of."""

    def __init__(self, store: LocalStore) -> None:
        self._store = store
        self.sessions: list[HangingSession] = []
        """The last is that of the broker that runs."""

    def session(self) -> HangingSession:
        self.sessions.append(HangingSession(self._store))
        return self.sessions[-1]
