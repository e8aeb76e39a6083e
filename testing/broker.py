"""`Broker`: in a thread of its own by `with`, and by `async with` among the caller's tasks.

Any number may run at once: they share nothing but the process.  One can be started again when it has ended, and is new
then.  On asyncio `async with` works as well; there the broker lives in a thread, as by `with`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from types import TracebackType
from typing import Protocol, Self, TypeVar

import trio

from trilogue.broker.server import Server
from trilogue.testing.faults.faults import Faults
from trilogue.testing.history import History
from trilogue.testing.keeping import Kept, NotRunning, keep
from trilogue.testing.running import Running, running
from trilogue.testing.settings import texts

T = TypeVar("T")

NOT_YET = "this broker has not been started: use it in `with Broker() as broker:`, or call `start()` first"
NO_MORE = "this broker has ended; `with` or `start()` begins it anew, without what it had"
BY_TASKS = "this broker belongs to tasks: use what `async with Broker() as broker:` gives, and not the `Broker` itself"
TWICE = "this broker is running already: `with` it once, and make another `Broker()` for a second one"


class Reachable:
    """Where a running broker is, and what can be had of it without waiting."""

    @property
    def _running(self) -> Running:
        raise NotImplementedError

    @property
    def server(self) -> Server:
        """The broker itself, to look inside.  It may live in another thread: look, and do not touch."""
        return self._running.server

    @property
    def host(self) -> str:
        return self.server.listeners[0].host or "localhost"

    @property
    def port(self) -> int:
        return self.server.listeners[0].port

    @property
    def bootstrap(self) -> str:
        """What clients call `bootstrap.servers`."""
        return f"{self.host}:{self.port}"


class Asking(Protocol):
    """How the loop is asked that a broker lives in."""

    async def ask(self, work: Callable[[], Awaitable[None]]) -> None: ...

    def do(self, work: Callable[[], T]) -> T: ...


class Here:
    """We are in it."""

    async def ask(self, work: Callable[[], Awaitable[None]]) -> None:
        await work()

    def do(self, work: Callable[[], T]) -> T:
        return work()


class Elsewhere:
    """It is in a thread, and we are in a task of asyncio's."""

    def __init__(self, kept: Kept[Running]) -> None:
        self._kept = kept

    async def ask(self, work: Callable[[], Awaitable[None]]) -> None:
        await asyncio.to_thread(self._kept.ask, work)

    def do(self, work: Callable[[], T]) -> T:
        return self._kept.do(work)


class AsyncBroker(Reachable):
    """A broker for tasks, of trio's or of asyncio's: what `async with Broker()` gives."""

    def __init__(self, inside: Running, asking: Asking) -> None:
        self._inside, self._asking = inside, asking
        self.faults, self.history = inside.faults, inside.history

    @property
    def _running(self) -> Running:
        return self._inside

    async def reset(self) -> None:
        """All topics, groups, sessions, faults and what was recorded are gone, and the clock shows the time again."""
        await self._asking.ask(self._inside.reset)

    def advance(self, seconds: float, *, grace: float | None = None) -> None:
        """So much time passes at once: for records and retention, for sessions, rebalances, transactions and offsets.

        Members of groups that are alive stay: whose session is over by that is put out only if it is not heard from
        for `grace` seconds, a bit more than heartbeats take unless said; with 0 nobody is waited for.
        """
        self._asking.do(partial(self._inside.advance, seconds, grace))

    async def run_retention(self) -> None:
        """Delete now what is too old or too much, by the topics' settings; and forget producers that are silent."""
        await self._asking.ask(self._inside.run_retention)

    async def run_compaction(self) -> None:
        """Compact now all that topics with `cleanup.policy=compact` have: of each key the last value is left."""
        await self._asking.ask(self._inside.run_compaction)


class Broker(Reachable):
    """Settings by Kafka's names, in a mapping or as keywords: `Broker({"num.partitions": 3})`,
    `Broker(num_partitions=3)`.  The port is any that is free, unless `port` says which.  `history` records what
    clients send, from the first request on."""

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        history: bool = False,
        **keywords: object,
    ) -> None:
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self.faults = Faults()
        """What is to go wrong: see `Faults.on`.  What is set before the start is there from the first request on."""
        self.history = History(always=history)
        """What clients have sent, while it is recorded."""
        self._settings = texts({"listeners": f"PLAINTEXT://{address}", **(settings or {})}, keywords)
        self._kept: Kept[Running] | None = None
        self._tasks = AsyncExitStack()
        """What `async with` has to leave."""
        self._busy = False
        """By `with` or by `async with`."""
        self._why_not = NOT_YET

    def _live(self) -> AbstractAsyncContextManager[Running]:
        return running(self._settings, self.faults, self.history)

    def _begin(self) -> None:
        if self._busy:
            raise RuntimeError(TWICE)
        self._busy = True

    def _over(self) -> None:
        self._busy, self._kept, self._why_not = False, None, NO_MORE

    # -- by `async with` -----------------------------------------------------------------------

    async def __aenter__(self) -> AsyncBroker:
        self._begin()
        try:
            if trio.lowlevel.in_trio_run():
                return AsyncBroker(await self._tasks.enter_async_context(self._live()), Here())
            kept = await asyncio.to_thread(keep, "trilogue", self._live)
            self._tasks.push_async_callback(asyncio.to_thread, kept.end)
            return AsyncBroker(kept.it, Elsewhere(kept))
        except BaseException:
            self._over()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        try:
            await self._tasks.__aexit__(kind, error, where)
        finally:
            self._over()

    # -- in a thread ---------------------------------------------------------------------------

    def start(self) -> Self:
        """As `with` does, for those who cannot use it, as unittest's `setUpClass`; then `stop` ends it."""
        self._begin()
        try:
            self._kept = keep("trilogue", self._live)
        except BaseException:
            self._over()
            raise
        return self

    def stop(self) -> None:
        kept = self._running_in
        try:
            kept.end()
        finally:
            self._over()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.stop()

    @property
    def _running_in(self) -> Kept[Running]:
        if self._kept is None:
            raise NotRunning(BY_TASKS if self._busy else self._why_not)
        return self._kept

    @property
    def _running(self) -> Running:
        return self._running_in.it

    def reset(self) -> None:
        """All topics, groups, sessions, faults and what was recorded are gone, and the clock shows the time again."""
        self._running_in.ask(self._running.reset)

    def advance(self, seconds: float, *, grace: float | None = None) -> None:
        """So much time passes at once: for records and retention, for sessions, rebalances, transactions and offsets.

        Members of groups that are alive stay: whose session is over by that is put out only if it is not heard from
        for `grace` seconds, a bit more than heartbeats take unless said; with 0 nobody is waited for.
        """
        self._running_in.do(partial(self._running.advance, seconds, grace))

    def run_retention(self) -> None:
        """Delete now what is too old or too much, by the topics' settings; and forget producers that are silent."""
        self._running_in.ask(self._running.run_retention)

    def run_compaction(self) -> None:
        """Compact now all that topics with `cleanup.policy=compact` have: of each key the last value is left."""
        self._running_in.ask(self._running.run_compaction)
