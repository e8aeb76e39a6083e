"""`Broker`: in a thread of its own by `with`, among the caller's tasks by `async with`.

Any number may run at once: they share nothing but the process.  The data lies in a temporary directory, the metadata in
memory, and both are gone at the end.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import Self, TypeVar

import trio

from trilogue.broker.cluster.local import LocalStore
from trilogue.broker.config import DEVELOPMENT, BrokerConfig
from trilogue.broker.server import Server, serve
from trilogue.testing.settings import scratch, texts

T = TypeVar("T")


class AsyncBroker:
    """A broker among the caller's tasks."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = settings
        self._cleanup: ExitStack
        self._nursery = trio.open_nursery()
        self._inside: trio.Nursery
        self.server: Server
        """The broker itself, for whoever wants to look inside."""

    # -- life ----------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        with ExitStack() as stack:
            path = stack.enter_context(scratch())
            config = BrokerConfig.parse({**DEVELOPMENT, "log.dirs": path, **self._settings})
            self._cleanup = stack.pop_all()
        self._inside = await self._nursery.__aenter__()
        try:
            self.server = await self._inside.start(partial(serve, config, store=LocalStore()))
        except BaseException as error:
            await self._leave(error)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.server.stop()
        await self._leave(error)

    async def _leave(self, error: BaseException | None) -> None:
        # The test's own troubles do not pass through the nursery, which would wrap them into groups.  A cancellation
        # does: it may be the nursery's, whose broker has died of a bug that has to be seen.
        passed = error if isinstance(error, trio.Cancelled) else None
        self._inside.cancel_scope.shield = True  # a broker that stops is not hurried: it takes no time worth that
        try:
            await self._nursery.__aexit__(type(passed) if passed else None, passed, None)
        finally:
            self._cleanup.close()

    # -- where it is ---------------------------------------------------------------------------

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

    # -- what tests want of it -----------------------------------------------------------------

    async def reset(self) -> None:
        """All topics, groups and sessions are gone, and the clock shows the time again."""
        await self.server.reset()

    def advance(self, seconds: float) -> None:
        """Put the clock forward that records and retention go by.  Time-outs go by another, which does not move."""
        self.server.broker.clock.advance(seconds)

    async def run_retention(self) -> None:
        """Delete now what is too old or too much, by the topics' settings."""
        await self.server.broker.upkeep.expire()

    async def run_compaction(self) -> None:
        """Compact now what is dirty enough, by the topics' settings."""
        await self.server.broker.upkeep.compact()


class Broker:
    """Settings by Kafka's names, in a mapping or as keywords: `Broker({"num.partitions": 3})`,
    `Broker(num_partitions=3)`.  The port is any that is free, unless `port` says which."""

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        **keywords: object,
    ) -> None:
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._settings = texts({"listeners": f"PLAINTEXT://{address}", **(settings or {})}, keywords)
        self._inner: AsyncBroker
        self._token: trio.lowlevel.TrioToken
        self._done: trio.Event
        self._started = threading.Event()
        self._problem: BaseException | None = None
        self._thread: threading.Thread
        self._async: AsyncBroker

    # -- among the caller's tasks --------------------------------------------------------------

    async def __aenter__(self) -> AsyncBroker:
        self._async = AsyncBroker(self._settings)
        return await self._async.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        await self._async.__aexit__(kind, error, where)

    # -- in a thread ---------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run, name="trilogue", daemon=True)
        self._thread.start()
        self._started.wait()
        if self._problem is not None:
            self._thread.join()
            raise self._problem
        return self

    def __exit__(self, *exc: object) -> None:
        trio.from_thread.run_sync(self._done.set, trio_token=self._token)
        self._thread.join()
        if self._problem is not None:
            raise self._problem

    def _run(self) -> None:
        """The thread."""
        try:
            trio.run(self._live)
        except BaseException as problem:
            self._problem = problem
        finally:
            self._started.set()

    async def _live(self) -> None:
        self._token, self._done = trio.lowlevel.current_trio_token(), trio.Event()
        async with AsyncBroker(self._settings) as self._inner:
            self._started.set()
            await self._done.wait()

    def _ask(self, work: Callable[[], Awaitable[T]]) -> T:
        return trio.from_thread.run(work, trio_token=self._token)

    # -- as above, for callers that do not await -----------------------------------------------

    @property
    def server(self) -> Server:
        """The broker itself; it lives in another thread, so look and do not touch."""
        return self._inner.server

    @property
    def host(self) -> str:
        return self._inner.host

    @property
    def port(self) -> int:
        return self._inner.port

    @property
    def bootstrap(self) -> str:
        """What clients call `bootstrap.servers`."""
        return self._inner.bootstrap

    def reset(self) -> None:
        """All topics, groups and sessions are gone, and the clock shows the time again."""
        self._ask(self._inner.reset)

    def advance(self, seconds: float) -> None:
        """Put the clock forward that records and retention go by.  Time-outs go by another, which does not move."""
        self._inner.advance(seconds)

    def run_retention(self) -> None:
        """Delete now what is too old or too much, by the topics' settings."""
        self._ask(self._inner.run_retention)

    def run_compaction(self) -> None:
        """Compact now what is dirty enough, by the topics' settings."""
        self._ask(self._inner.run_compaction)
