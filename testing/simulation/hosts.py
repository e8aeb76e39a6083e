"""The computer of one broker: its disk, its clock, and one life of the process after the other."""

import logging
import random
from typing import TYPE_CHECKING

import trio

from trilogue.broker.broker import Broker
from trilogue.broker.clock import Clock
from trilogue.broker.cluster.ensemble import Ensemble
from trilogue.broker.cluster.store import Session
from trilogue.broker.config import DEVELOPMENT, BrokerConfig
from trilogue.broker.joining import NewLink
from trilogue.broker.network.listeners import CannotStart, Listener
from trilogue.broker.network.transport import Transport
from trilogue.broker.server import NoDirectoryLeft, Server, serve
from trilogue.broker.surroundings import Surroundings
from trilogue.client.world import World
from trilogue.testing.simulation.disks import Disk
from trilogue.testing.simulation.keeper import KeeperLink
from trilogue.testing.simulation.lives import Life
from trilogue.testing.simulation.network import NetworkWorld
from trilogue.testing.simulation.serving import Serving

if TYPE_CHECKING:
    from trilogue.testing.simulation.cluster import Cluster

logger = logging.getLogger(__name__)

PORT = 9092
WALL_MS = 1_700_000_000_000
"""What the clocks show in the beginning."""

RESTART_SECONDS = 0.5
"""Until a broker that has ended of itself is started again, as a supervisor would."""


class HostClock(Clock):
    """The wall's, of one host: the time that all share, and how far this one is off."""

    def __init__(self) -> None:
        super().__init__()
        self.off_ms = 0

    def __call__(self) -> int:
        return WALL_MS + int(trio.current_time() * 1000) + self.off_ms + self._ahead_ms


class Around(Surroundings):
    """What a simulated broker is surrounded by."""

    def __init__(self, cluster: "Cluster", host: "Host", life: Life) -> None:
        self._cluster, self._host, self._life = cluster, host, life

    def open_listeners(self, config: BrokerConfig) -> list[Listener]:
        return [Listener("PLAINTEXT", self._life.host, PORT, (), None)]

    def close_listeners(self, listeners: list[Listener]) -> None:
        pass

    def world(self) -> World:
        return NetworkWorld(self._cluster.network, self._life)

    @property
    def new_link(self) -> NewLink:
        def link(ensemble: Ensemble) -> KeeperLink:
            return KeeperLink(self._cluster.keeper, self._life, ensemble)

        return link  # type: ignore[return-value]  # it is used as the product's is

    async def watch(self, session: Session) -> None:
        await trio.sleep_forever()

    def met(self, broker: Broker) -> None:
        if self._life.alive:
            self._host.broker = broker

    def open_transport(self, broker: Broker, nursery: trio.Nursery) -> Transport:
        return Serving(broker, nursery, self._cluster.network, self._life)


class Host:
    def __init__(self, cluster: "Cluster", node_id: int, folder: str, settings: dict[str, str]) -> None:
        self._cluster, self.node_id, self.name = cluster, node_id, f"broker-{node_id}"
        self.clock = HostClock()
        self.disk = Disk(f"{folder}/{self.name}/", random.Random(f"disk {cluster.seed} {node_id}"))
        self.disk.kill = self.kill
        self._settings = {
            **DEVELOPMENT,
            **settings,
            "listeners": f"PLAINTEXT://{self.name}:{PORT}",
            "log.dirs": self.disk.path.rstrip("/"),
            "node.id": str(node_id),
            "zookeeper.connect": "keeper:2181",
        }
        self.life: Life | None = None
        self.broker: Broker | None = None
        """Of this life, as soon as there is one."""
        self.server: Server | None = None
        self.lives = 0
        self.wanted = False
        """It is to run; if it ends, it is started again."""
        self._order = 0
        """To be started: who was told so earlier has nothing to say any more."""
        self._scope = trio.CancelScope()
        self._ended = trio.Event()
        self._ended.set()

    @property
    def alive(self) -> bool:
        return self.life is not None and self.life.alive

    def start(self) -> None:
        """When the life before is over, another begins."""
        if not self.wanted:
            self.wanted = True
            self._order += 1
            self._cluster.tasks.start_soon(self._run, self._order)

    async def _run(self, order: int) -> None:
        while True:
            await self._ended.wait()
            if not self.wanted or order != self._order:
                return
            self._cluster.network.wake(self.name)
            self.lives += 1
            self.life = Life(self.name, self.lives)
            self._ended, self._scope = trio.Event(), trio.CancelScope()
            self.life.run(self._cluster.tasks.start_soon, self._live, self.life)
            await self._ended.wait()
            await trio.sleep(RESTART_SECONDS)

    async def _live(self, life: Life) -> None:
        config = BrokerConfig.parse(self._settings)
        chance = random.Random(f"broker {self._cluster.seed} {self.node_id} {life.number}")
        ended = "ended"
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    around = Around(self._cluster, self, life)
                    self.server = await nursery.start(_serve, config, self.clock, chance, around)
        except BaseException as error:
            if life.alive and not expected(error):
                self._cluster.blame("bug", f"{self.name} has ended: {error!r}", error)
            ended = "" if not life.alive else ended
        finally:
            if life.alive:
                self._cluster.history.add(self.name, "exits")
                self._bury(life, silently=False)
            self._ended.set()

    def _bury(self, life: Life, *, silently: bool) -> None:
        life.alive = False
        self.broker = self.server = None
        self._cluster.network.die(life, silently=silently)
        self._cluster.keeper.forget(life)

    # -- what is done to it --------------------------------------------------------------------

    def kill(self) -> None:
        """As by SIGKILL: nothing more is done, and what was written stays."""
        self._end(silently=False)

    def go_down(self) -> int:
        """As without power: what was not synced is gone, and nobody is told.  Of how many files."""
        if self.life is None or not self.life.alive:
            return 0
        self._end(silently=True)
        return self.disk.go_down()

    def _end(self, *, silently: bool) -> None:
        life = self.life
        self.wanted = False
        self.disk.die_after = None
        if life is not None and life.alive:
            if life.frozen:
                self._cluster.frozen.thaw(life)
            self._bury(life, silently=silently)
            self._scope.cancel()

    def stop(self) -> None:
        """In order."""
        self.wanted = False
        if self.server is not None:
            self.server.stop()
        else:
            self.kill()  # it has not begun to serve: nobody could ask it to stop

    def freeze(self) -> None:
        if self.life is not None and self.life.alive and not self.life.frozen:
            self._cluster.frozen.freeze(self.life)
            self._cluster.keeper.freeze(self.life)

    def thaw(self) -> None:
        if self.life is not None and self.life.alive and self.life.frozen:
            self._cluster.frozen.thaw(self.life)


async def _serve(
    config: BrokerConfig,
    clock: Clock,
    chance: random.Random,
    around: Surroundings,
    task_status: trio.TaskStatus[Server] = trio.TASK_STATUS_IGNORED,
) -> None:
    await serve(config, clock=clock, chance=chance, surroundings=around, task_status=task_status)


def expected(error: BaseException) -> bool:
    """What a broker may end with: whoever runs it starts it again."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(expected, error.exceptions))
    return isinstance(error, CannotStart | NoDirectoryLeft | trio.Cancelled)
