"""The broker: open, serve, close.  Every nursery and every long-lived task is on this page.

directories locked -> sockets bound -> store read -> logs recovered -> registered -> gate open
"""

import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from math import inf
from pathlib import Path
from uuid import UUID

import trio

from trilogue.broker.clock import Clock
from trilogue.broker.cluster.controller import Controller
from trilogue.broker.cluster.image import (
    CLUSTER_ID,
    BrokerInfo,
    Endpoint,
    Image,
    broker_json,
    broker_path,
    to_json,
    vanished,
)
from trilogue.broker.cluster.inter_broker import InterBroker, nobody
from trilogue.broker.cluster.local import LocalStore
from trilogue.broker.cluster.store import Create, Session
from trilogue.broker.cluster.view import View
from trilogue.broker.config import BrokerConfig
from trilogue.broker.coordinators.markers import Carrier
from trilogue.broker.groups.coordinator import GroupCoordinator
from trilogue.broker.machines.runner import Runner
from trilogue.broker.names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from trilogue.broker.network.gate import Gate
from trilogue.broker.network.listeners import CannotStart, Listener, close_listeners, open_listeners
from trilogue.broker.partitions.fetch_sessions import FetchSessions
from trilogue.broker.partitions.replicas import Replicas
from trilogue.broker.requests import registry
from trilogue.broker.requests.peer import Peer
from trilogue.broker.transactions.coordinator import TransactionCoordinator
from trilogue.storage.checkpoint import META_PROPERTIES, read_properties
from trilogue.storage.directory import DataDirectory, DirectoryInUse, WrongDirectory
from trilogue.storage.files import OpenFiles
from trilogue.wire.ids import uuid_text

logger = logging.getLogger(__name__)

METADATA_FILE = "metadata.sqlite"
GRACE_SECONDS = 0.3
"""How long answers in flight may take when we stop."""


class Broker:
    """What handlers are given.  `run` is its life."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        store: LocalStore | None = None,
        clock: Clock | None = None,
        chance: random.Random | None = None,
    ) -> None:
        """`store` is for brokers that share one in a process; without it the broker keeps its own beside its data."""
        registry.load()
        self.static = self.config = config
        self.node_id: int = config["node.id"] if config["node.id"] >= 0 else 1
        self.clock = clock or Clock()
        self.request_bytes_max: int = config["socket.request.max.bytes"]
        self.stopping = False
        self._chance = chance or random.SystemRandom()
        self._stop = trio.Event()
        self.stopped = trio.Event()
        self._own_store = store is None
        self._store = store
        self.fetch_sessions = FetchSessions(config["max.incremental.fetch.session.cache.slots"], self._chance)
        self.listeners: list[Listener] = []
        self.view: View
        self.controller: Controller
        self.replicas: Replicas
        self.groups: Runner
        self.transactions: Runner
        self.inter_broker: InterBroker = nobody
        self.nursery: trio.Nursery

    @property
    def image(self) -> Image:
        return self.view.image

    # -- life ----------------------------------------------------------------------------------

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until `stop` is called.  `started` is called when the first client may come."""
        self.listeners = open_listeners(self.config)
        try:
            directories = self._open_directories()
            session: Session = self._open_store(directories).session()
        except BaseException:
            close_listeners(self.listeners)
            raise
        self.view = View(session)
        self.replicas = Replicas(self.node_id, directories, self.clock, self._chance, lambda: self.config)
        self.controller = Controller(self.view, self.node_id, self._chance, self._may_lose_data)
        self.view.listen(self._reconfigure)
        self.groups = Runner(self, OFFSETS_TOPIC, lambda index: GroupCoordinator(index, self))
        self.transactions = Runner(
            self,
            TRANSACTIONS_TOPIC,
            lambda index: TransactionCoordinator(index, self.config, self._wall_ms),
            send=Carrier(self).send,
        )
        self.view.listen(self.replicas.apply)
        self.view.listen(self._update_coordinators)
        try:
            await self._serve(task_status)
        finally:
            with trio.CancelScope(shield=True):
                close_listeners(self.listeners)
                epoch = self.image.brokers[self.node_id].epoch if self.node_id in self.image.brokers else -1
                self.replicas.close(epoch)
                await session.close()
                if self._own_store and self._store is not None:
                    self._store.close()
                self.stopped.set()

    async def _serve(self, task_status: trio.TaskStatus[None]) -> None:
        await self._introduce_cluster()
        await self.view.load()
        self.replicas.strays(self.image)
        async with trio.open_nursery() as tasks:
            self.nursery = tasks
            self._update_coordinators(self.image, self.image)
            tasks.start_soon(self.groups.run)
            tasks.start_soon(self.transactions.run)
            tasks.start_soon(self.view.follow)
            tasks.start_soon(self.controller.run)
            await self._register()
            async with trio.open_nursery() as connections:
                gate = Gate(self, connections)
                for listener in self.listeners:
                    gate.add(listener)
                tasks.start_soon(gate.run)
                tasks.start_soon(gate.sweep)
                tasks.start_soon(self._every, "log.retention.check.interval.ms", self.replicas.expire)
                tasks.start_soon(self._every, "log.cleaner.backoff.ms", self.replicas.compact)
                tasks.start_soon(self._every, "replica.high.watermark.checkpoint.interval.ms", self.replicas.checkpoint)
                tasks.start_soon(self._flush_regularly)
                task_status.started()
                await self._stop.wait()
                gate.stop_listening()
                for partition in self.replicas:
                    partition.ring()  # whoever waits for data gets what there is
                connections.cancel_scope.deadline = trio.current_time() + GRACE_SECONDS
            tasks.cancel_scope.cancel()
        gate.close()

    def stop(self) -> None:
        """Answer what is in flight, write down where everything is, and end."""
        self.stopping = True
        self._stop.set()

    async def reset(self) -> None:
        """As if newly made: no topics, no settings but those it was started with, no sessions.  For tests."""
        await self.controller.clear()
        self.fetch_sessions.clear()
        self.clock.reset()
        await self.replicas.remove_doomed(inf)

    # -- opening -------------------------------------------------------------------------------

    def _open_directories(self) -> list[DataDirectory]:
        paths = self.config["log.dirs"] or self.config["log.dir"]
        pool = OpenFiles()
        directories: list[DataDirectory] = []
        try:
            cluster_id = self._known_cluster_id(paths)
            for path in paths:
                new_id = self._chance.randbytes(16)
                directories.append(
                    DataDirectory(path, cluster_id=cluster_id, node_id=self.node_id, new_id=new_id, pool=pool)
                )
        except (DirectoryInUse, WrongDirectory) as problem:
            raise CannotStart(f"{problem}: choose another with --data") from None
        except OSError as error:
            raise CannotStart(
                f"cannot use {error.filename or paths}: {error.strerror}; choose another with --data"
            ) from None
        self._cluster_id = cluster_id
        return directories

    def _known_cluster_id(self, paths: Sequence[str]) -> str:
        """The cluster that the directories belong to; a new one if they are new."""
        known = {read_properties(str(Path(path, META_PROPERTIES))).get("cluster.id") for path in paths} - {None}
        if len(known) > 1:
            raise CannotStart(
                f"the data directories belong to different clusters: {', '.join(sorted(map(str, known)))}"
            )
        return str(known.pop()) if known else uuid_text(self._chance.randbytes(16))

    def _open_store(self, directories: Sequence[DataDirectory]) -> LocalStore:
        if self._store is None:
            file = Path(directories[0].path, METADATA_FILE)
            if not file.exists() and any(each.partitions() for each in directories):
                # Apache Kafka's, most likely.  All its topics would be strays to us.
                problem = f"there are partitions in {file.parent}, but no {file.name}"
                raise CannotStart(f"{problem}: choose another with --data")
            try:
                self._store = LocalStore(file)
            except OSError as error:
                raise CannotStart(f"{error}: choose another directory with --data") from None
        return self._store

    async def _introduce_cluster(self) -> None:
        node = await self.view.session.read(CLUSTER_ID)
        if node is None:
            await self.view.session.commit([Create(CLUSTER_ID, to_json(version=1, id=self._cluster_id))])

    async def _register(self) -> None:
        """From here on the cluster counts on us: leaders may be elected."""
        me = broker_json([Endpoint(*self.advertised(each)) for each in self.listeners], self.config["broker.rack"])
        await self.view.session.commit([Create(broker_path(self.node_id), me, ephemeral=True)])
        await self.view.until(lambda image: image.controller != -1 and not self._leaderless(image))

    def _leaderless(self, image: Image) -> bool:
        """Whether we are still waiting to be told what we lead."""
        me = image.brokers.get(self.node_id)
        return me is None or any(
            state.leader == self.node_id and state.leader_broker_epoch != me.epoch
            for topic in image.topics.values()
            for state in topic.partitions
        )

    # -- upkeep --------------------------------------------------------------------------------

    async def _every(self, setting: str, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            await trio.sleep(self.config[setting] / 1000)
            await work()

    async def _flush_regularly(self) -> None:
        while True:
            await trio.sleep(1)
            await self.replicas.flush_due()

    def _reconfigure(self, before: Image, image: Image) -> None:
        if before.configs is not image.configs:
            own, everybody = image.config("brokers", str(self.node_id)), image.config("brokers", "<default>")
            self.config = self.static.with_dynamic(everybody, own)

    def _update_coordinators(self, before: Image, image: Image) -> None:
        if hasattr(self, "nursery"):  # not before loading can be left to a task
            self.groups.update()
            if gone := vanished(before, image):
                self.groups.tell(GroupCoordinator.forget_topics, gone)
            self.transactions.update()

    def _wall_ms(self, at: float) -> int:
        """What the wall's clock shows at a time of trio's."""
        return self.clock() + int((at - trio.current_time()) * 1000)

    def _may_lose_data(self, topic: str) -> bool:
        overrides = self.image.config("topics", topic)
        return bool(self.config.topic(overrides)["unclean.leader.election.enable"])

    # -- what handlers ask ---------------------------------------------------------------------

    def fresh_id(self) -> str:
        """An id that nobody has, as Java prints them."""
        return str(UUID(bytes=self._chance.randbytes(16), version=4))

    def fresh_short_id(self) -> str:
        """The same, as Kafka prints its own."""
        return uuid_text(self._chance.randbytes(16))

    @property
    def topic_defaults(self) -> tuple[int, int]:
        """Partitions and replication of a topic that does not say."""
        return self.config["num.partitions"], self.config["default.replication.factor"]

    def advertised(self, listener: Listener) -> tuple[str, str, int]:
        told = listener.advertised
        return told or (listener.name, listener.host or "localhost", listener.port)

    def endpoint(self, broker: BrokerInfo, peer: Peer) -> tuple[str, int] | None:
        """Where this client reaches that broker: on the listener it came by, and us by the address it used."""
        if broker.id == self.node_id:
            for listener in self.listeners:
                if listener.name == peer.listener and listener.advertised is None:
                    return peer.local
        found = broker.endpoint(peer.listener)
        return (found.host, found.port) if found else None
