"""Several brokers of ours in this process, on one store.  Each can be stopped, killed and started again."""

import contextlib
import random
import tempfile
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import trio

from trilogue.broker.cluster.local import LocalStore
from trilogue.broker.config import DEVELOPMENT, BrokerConfig
from trilogue.broker.partitions.partition import Partition
from trilogue.broker.server import Server, serve

PATIENCE_SECONDS = 20.0


class Cluster:
    def __init__(self, nursery: trio.Nursery, folder: Path, count: int, disks: int, settings: dict[str, str]) -> None:
        self._nursery, self._folder, self._disks, self._settings = nursery, folder, disks, settings
        self.store = LocalStore()
        self.ids = list(range(1, count + 1))
        self.servers: dict[int, Server] = {}
        self._scopes: dict[int, trio.CancelScope] = {}
        self._ended: dict[int, trio.Event] = {}

    async def start(self, node_id: int, **more: str) -> Server:
        """With these settings besides those that all have."""
        config = BrokerConfig.parse(
            {
                **DEVELOPMENT,
                "listeners": "PLAINTEXT://127.0.0.1:0",
                "log.dirs": ",".join(str(self._folder / f"{node_id}-{disk}") for disk in range(self._disks)),
                "node.id": str(node_id),
                "replica.fetch.backoff.ms": "50",
                **self._settings,
                **{name.replace("_", "."): value for name, value in more.items()},
            }
        )
        scope, ended = trio.CancelScope(), trio.Event()
        self._scopes[node_id], self._ended[node_id] = scope, ended

        async def live(task_status: trio.TaskStatus[Server] = trio.TASK_STATUS_IGNORED) -> None:
            try:
                with scope:
                    await serve(config, store=self.store, chance=random.Random(node_id), task_status=task_status)
            finally:
                ended.set()

        self.servers[node_id] = await self._nursery.start(live)
        return self.servers[node_id]

    async def stop(self, node_id: int) -> None:
        self.servers.pop(node_id).stop()
        await self._ended[node_id].wait()

    async def kill(self, node_id: int) -> None:
        """Without a word; the store notices at once."""
        self.servers.pop(node_id)
        self._scopes[node_id].cancel()
        await self._ended[node_id].wait()

    def partition(self, node_id: int, topic: str = "t", index: int = 0) -> Partition:
        found = self.servers[node_id].broker.replicas.find(topic, index)
        assert found is not None
        return found

    async def leader(self, topic: str = "t", index: int = 0, *, isr: int | None = None) -> Partition:
        """As soon as there is one, with so many in sync."""
        found: list[Partition] = []

        def look() -> bool:
            found[:] = [
                each
                for node_id in self.servers
                if (each := self.servers[node_id].broker.replicas.find(topic, index)) is not None
                and each.leads
                and (isr is None or len(each.state.isr) == isr)
            ]
            return len(found) == 1

        await eventually(look)
        return found[0]


async def eventually(look: object, seconds: float = PATIENCE_SECONDS) -> None:
    assert callable(look)
    with trio.fail_after(seconds):
        while not look():  # noqa: ASYNC110
            await trio.sleep(0.005)


@contextlib.asynccontextmanager
async def cluster(count: int = 3, disks: int = 1, **settings: str) -> AsyncIterator[Cluster]:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    with tempfile.TemporaryDirectory() as folder:
        async with trio.open_nursery() as nursery:
            made = Cluster(nursery, Path(folder), count, disks, given)
            for node_id in made.ids:
                await made.start(node_id)
            yield made
            for node_id in list(made.servers):
                await made.stop(node_id)


def run(story: object, disks: int = 1, **settings: str) -> None:
    async def main() -> None:
        async with cluster(disks=disks, **settings) as made:
            assert callable(story)
            await story(made)

    trio.run(partial(main))
