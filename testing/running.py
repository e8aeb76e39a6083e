"""One broker in a trio loop that somebody runs: up, what tests want of it, and gone without a trace.

The data lies in a temporary directory, the metadata in memory.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial

import trio

from trilogue.broker.cluster.local import LocalStore
from trilogue.broker.config import DEVELOPMENT, BrokerConfig
from trilogue.broker.server import Server, serve
from trilogue.testing.faults.faults import Faults
from trilogue.testing.history import History
from trilogue.testing.settings import scratch
from trilogue.testing.time import advance
from trilogue.testing.watching import Watch


class Running:
    """All of it is called in its loop."""

    def __init__(self, server: Server, faults: Faults, history: History) -> None:
        self.server, self.faults, self.history = server, faults, history
        self.watch = Watch(server, faults, history)

    async def reset(self) -> None:
        self.faults.clear()
        await self.server.reset()
        self.history.clear()

    def advance(self, seconds: float, grace: float | None) -> None:
        advance(self.server.broker.clock, [self.server.broker], seconds, grace)

    async def run_retention(self) -> None:
        await self.server.broker.upkeep.expire()

    async def run_compaction(self) -> None:
        await self.server.broker.upkeep.compact(at_once=True)


@asynccontextmanager
async def running(settings: Mapping[str, str], faults: Faults, history: History) -> AsyncIterator[Running]:
    """A broker with these settings besides those of development, and what a test wants of it.  Raises ConfigError and
    CannotStart."""
    trouble: BaseException | None = None
    with scratch() as path:
        config = BrokerConfig.parse({**DEVELOPMENT, "log.dirs": path, **settings})
        async with trio.open_nursery() as nursery:
            # A test's own troubles do not pass through the nursery, which would wrap them into groups.  A cancellation
            # does: it may be the nursery's, whose broker has died of a bug that has to be seen.
            try:
                server: Server = await nursery.start(partial(serve, config, store=LocalStore()))
                it = Running(server, faults, history)
                try:
                    yield it
                finally:
                    it.watch.close()
                    server.stop()
                    nursery.cancel_scope.shield = True  # who stops is not hurried: it takes no time worth that
            except trio.Cancelled:
                raise
            except BaseException as error:
                trouble = error
    if trouble is not None:
        raise trouble
