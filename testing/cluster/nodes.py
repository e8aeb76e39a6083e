"""The brokers of a cluster, in the loop they all live in; and what is done to them.

Everything that waits here is bounded, and says what it waited for in vain.
"""

from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from math import inf
from pathlib import Path

import trio

from trilogue.broker.clock import Clock
from trilogue.broker.cluster.decisions import led_by, may_lead
from trilogue.broker.cluster.image import Image, PartitionState
from trilogue.broker.cluster.local import LocalStore
from trilogue.broker.config import DEVELOPMENT, BrokerConfig
from trilogue.broker.membership import knows_its_part
from trilogue.broker.server import Server, serve
from trilogue.testing.cluster.sessions import Door, HangingSession
from trilogue.testing.faults.faults import Faults
from trilogue.testing.history import History
from trilogue.testing.settings import scratch
from trilogue.testing.time import advance
from trilogue.testing.watching import Watch
from trilogue.wire.errors import BrokerError

PATIENCE_SECONDS = 15.0
"""How long brokers may take for anything.  It takes them milliseconds, unless the machine is busy."""

LOOK_SECONDS = 0.005

LAG_MS = 1000
"""How long a replica may be behind until it is not in sync: Kafka's 30 s are for machines, not for tests."""


class ClusterError(RuntimeError):
    """It cannot be, or has not come to be in time."""


class Life:
    """A broker that runs."""

    def __init__(self, server: Server, watch: Watch, door: Door) -> None:
        self.server, self.watch, self._door = server, watch, door
        self.address = server.listeners[0].host or "localhost", server.listeners[0].port

    @property
    def session(self) -> HangingSession:
        return self._door.sessions[-1]

    @property
    def image(self) -> Image:
        return self.server.broker.image

    @property
    def hangs(self) -> bool:
        return self.watch.trouble.woken is not None


class Node:
    """A broker, whether it runs or not."""

    def __init__(self, node_id: int, path: Path, faults: Faults, history: History) -> None:
        self.id, self.path, self.faults, self.history = node_id, path, faults, history
        self.address = "127.0.0.1", 0
        """Kept from its first life on: clients have it by heart."""
        self.life: Life | None = None
        self.cut: set[int] = set()
        self.slow_seconds = 0.0


class Nodes:
    def __init__(self, nursery: trio.Nursery, nodes: Collection[Node], settings: Mapping[str, str]) -> None:
        self._nursery, self._settings = nursery, settings
        self._nodes = {node.id: node for node in nodes}
        self._store, self.clock = LocalStore(), Clock()

    def node(self, node_id: int) -> Node:
        if node_id not in self._nodes:
            raise ClusterError(f"there is no broker {node_id}: choose among {', '.join(map(str, self._nodes))}")
        return self._nodes[node_id]

    def life(self, node_id: int) -> Life:
        life = self.node(node_id).life
        if life is None:
            raise ClusterError(f"broker {node_id} does not run: `restart({node_id})` first")
        return life

    @property
    def _well(self) -> dict[int, Life]:
        """Those that run and do not hang."""
        return {each.id: each.life for each in self._nodes.values() if each.life is not None and not each.life.hangs}

    def _any(self) -> Life:
        for life in self._well.values():
            return life
        raise ClusterError("no broker runs")

    # -- coming and going ----------------------------------------------------------------------

    async def start(self, node_id: int) -> None:
        node = self.node(node_id)
        if node.life is not None:
            raise ClusterError(f"broker {node_id} runs already")
        host, port = node.address
        own = {"listeners": f"PLAINTEXT://{host}:{port}", "log.dirs": str(node.path), "node.id": str(node_id)}
        config = BrokerConfig.parse({**DEVELOPMENT, **self._settings, **own})
        door = Door(self._store)
        with in_time(f"broker {node_id} does not start"):
            server: Server = await self._nursery.start(partial(serve, config, store=door, clock=self.clock))
        life = node.life = Life(server, Watch(server, node.faults, node.history), door)
        node.address = life.address
        self._tell(node)
        with in_time(f"the others do not hear of broker {node_id}"):
            await until(lambda: all(node_id in each.image.brokers for each in self._well.values()))

    async def stop(self, node_id: int) -> None:
        life = self.life(node_id)
        if life.hangs:
            raise ClusterError(f"broker {node_id} hangs and hears nothing: `resume({node_id})` or `kill({node_id})`")
        life.server.stop()
        await self._end(node_id, life)

    async def kill(self, node_id: int) -> None:
        life = self.life(node_id)
        life.server.kill()
        await self._end(node_id, life)

    async def _end(self, node_id: int, life: Life) -> None:
        with in_time(f"broker {node_id} does not end"):
            await life.server.stopped.wait()
        life.watch.close()
        self.node(node_id).life = None
        await self._gone(node_id)

    async def _gone(self, node_id: int) -> None:
        with in_time(f"the others do not notice that broker {node_id} is gone"):
            await until(lambda: all(node_id not in each.image.brokers for each in self._well.values()))

    async def restart(self, node_id: int) -> None:
        if self.node(node_id).life is not None:
            await self.stop(node_id)
        await self.start(node_id)

    async def pause(self, node_id: int) -> None:
        life = self.life(node_id)
        if life.hangs:
            return
        life.watch.trouble.woken = trio.Event()
        life.watch.look()
        life.server.broker.followers.pause()
        await life.session.hang()
        await self._gone(node_id)

    async def resume(self, node_id: int) -> None:
        life = self.life(node_id)
        woken = life.watch.trouble.woken
        if woken is None:
            return
        broker = life.server.broker
        before = broker.image.brokers.get(node_id)

        def is_back() -> bool:
            me = life.image.brokers.get(node_id)
            return me is not None and me != before and knows_its_part(node_id, me.epoch, life.image)

        life.session.wake()
        with in_time(f"broker {node_id} is not taken in again"):
            await until(is_back)
        broker.followers.go_on()
        life.watch.trouble.woken = None
        woken.set()
        life.watch.look()

    # -- troubles ------------------------------------------------------------------------------

    def partition(self, one: int, other: int) -> None:
        if one == other:
            raise ClusterError("two brokers are parted, not one from itself")
        for mine, theirs in ((self.node(one), other), (self.node(other), one)):
            mine.cut.add(theirs)
            self._tell(mine)

    def slow(self, node_id: int, seconds: float) -> None:
        if seconds < 0:
            raise ClusterError(f"a broker is late by some time, not by {seconds} s")
        node = self.node(node_id)
        node.slow_seconds = seconds
        self._tell(node)

    def _tell(self, node: Node) -> None:
        """Troubles outlive the broker that has them."""
        if node.life is None:
            return
        watch, transport = node.life.watch, node.life.server.transport
        watch.trouble.cut, watch.trouble.slow_seconds = node.cut, node.slow_seconds
        watch.look()
        if node.cut and transport is not None:  # what waits for an answer must not get it
            transport.hang_up(lambda peer: peer.broker is not None and peer.broker.node_id in node.cut)

    async def heal(self) -> None:
        for node in self._nodes.values():
            node.cut, node.slow_seconds = set(), 0.0
            self._tell(node)
        for node in self._nodes.values():
            if node.life is not None:
                await self.resume(node.id)

    # -- looking -------------------------------------------------------------------------------

    async def state(self, topic: str, partition: int) -> PartitionState:
        """As soon as somebody who is there leads it, and knows."""
        found: list[PartitionState] = []

        def look() -> bool:
            state = self._any().image.partition(topic, partition)
            leader = self._well.get(state.leader) if state is not None else None
            replica = leader.server.broker.replicas.find(topic, partition) if leader is not None else None
            found[:] = [replica.state] if replica is not None and replica.leads else []
            return bool(found)

        with in_time(f"nobody leads {topic}-{partition}"):
            await until(look)
        return found[0]

    async def in_sync(self, topic: str, partition: int, wanted: Collection[int] | None) -> set[int]:
        if wanted is None:
            return set((await self.state(topic, partition)).isr)
        seen: set[int] = set()
        with in_time(f"{topic}-{partition} has not {sorted(wanted)} in sync", lambda: f"but {sorted(seen)}"):
            while seen != set(wanted):
                await trio.sleep(LOOK_SECONDS)
                seen = set((await self.state(topic, partition)).isr)
        return seen

    async def move_leader(self, topic: str, partition: int, to: int) -> None:
        self.life(to)

        def decide(image: Image, state: PartitionState) -> PartitionState:
            if not may_lead(image, state, to):
                raise ClusterError(f"broker {to} is not in sync with {topic}-{partition}: only {list(state.isr)} are")
            return led_by(image, state, to)

        if (await self.state(topic, partition)).leader == to:
            return
        try:
            await self._any().server.broker.controller.change_partition(topic, partition, decide)
        except BrokerError as error:
            raise ClusterError(f"{topic}-{partition} cannot be moved to broker {to}: {error}") from None
        with in_time(f"broker {to} does not lead {topic}-{partition}"):
            while (await self.state(topic, partition)).leader != to:  # noqa: ASYNC110
                await trio.sleep(LOOK_SECONDS)

    # -- time, and beginning anew --------------------------------------------------------------

    def advance(self, seconds: float, grace: float | None) -> None:
        advance(self.clock, [life.server.broker for life in self._well.values()], seconds, grace)

    async def run_retention(self) -> None:
        for life in self._well.values():
            await life.server.broker.upkeep.expire()

    async def run_compaction(self) -> None:
        for life in self._well.values():
            await life.server.broker.upkeep.compact(at_once=True)

    async def reset(self) -> None:
        await self.heal()
        for node in self._nodes.values():
            if node.life is None:
                await self.start(node.id)
            node.faults.clear()
        await self._any().server.broker.controller.clear()
        with in_time("not everything is gone"):
            await until(lambda: not any(each.image.topics or each.image.configs for each in self._well.values()))
        self.clock.reset()
        for node_id, life in self._well.items():
            life.server.broker.fetch_sessions.clear()
            await life.server.broker.upkeep.remove_doomed(inf)
            self.node(node_id).history.clear()


@contextmanager
def in_time(what: str, more: Callable[[], str] = str) -> Iterator[None]:
    with trio.move_on_after(PATIENCE_SECONDS) as scope:
        yield
    if scope.cancelled_caught:
        raise ClusterError(f"{what} {more()}".strip() + f", and {PATIENCE_SECONDS:g} s were enough")


async def until(look: Callable[[], bool]) -> None:
    while not look():  # noqa: ASYNC110
        await trio.sleep(LOOK_SECONDS)


@asynccontextmanager
async def running(
    settings: Mapping[str, str], faults: Mapping[int, Faults], histories: Mapping[int, History]
) -> AsyncIterator[Nodes]:
    """A broker for each of the faults and histories."""
    count = len(faults)
    replicas = str(min(3, count))
    shared = {
        "default.replication.factor": replicas,
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": str(min(2, count)),
        "replica.lag.time.max.ms": str(LAG_MS),
        "replica.fetch.backoff.ms": "50",
        "auto.leader.rebalance.enable": "false",  # a leader that a test has moved stays there
        **settings,
    }
    trouble: BaseException | None = None
    with scratch() as path:
        async with trio.open_nursery() as nursery:
            made = [Node(each, Path(path, str(each)), faults[each], histories[each]) for each in faults]
            nodes = Nodes(nursery, made, shared)
            try:
                for node in made:
                    await nodes.start(node.id)
                yield nodes
            except trio.Cancelled:
                raise
            except BaseException as error:
                trouble = error
            for node in made:
                if node.life is not None:
                    node.life.watch.close()
                    node.life.server.kill()  # nobody wants to read what there was
    if trouble is not None:
        raise trouble
