"""What handlers are given: everything that this broker is, complete from the moment it exists.

It opens nothing and knows no sockets; `server.py` has its life.
"""

import random
from collections.abc import Callable, Collection, Sequence
from uuid import UUID

import trio

from trilogue.broker.clock import Clock
from trilogue.broker.cluster.controller import Controller
from trilogue.broker.cluster.image import Image, vanished
from trilogue.broker.cluster.inter_broker import InterBroker
from trilogue.broker.cluster.links import Links
from trilogue.broker.cluster.pulse import Pulse
from trilogue.broker.cluster.store import Session
from trilogue.broker.cluster.view import View
from trilogue.broker.config import BrokerConfig
from trilogue.broker.groups.coordinator import GroupCoordinator
from trilogue.broker.machines.runner import Runner
from trilogue.broker.names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from trilogue.broker.partitions.fetch_sessions import FetchSessions
from trilogue.broker.partitions.followers import Followers
from trilogue.broker.partitions.in_sync import InSync
from trilogue.broker.partitions.replicas import Replicas
from trilogue.broker.partitions.throttle import Throttles
from trilogue.broker.partitions.upkeep import Upkeep
from trilogue.broker.requests.turns import Turns
from trilogue.broker.security.brokers import NONCE_BYTES
from trilogue.broker.transactions.coordinator import TransactionCoordinator, WriteMarkers
from trilogue.client.world import World
from trilogue.storage.directory import DataDirectory
from trilogue.wire.ids import uuid_text


class Broker:
    def __init__(
        self,
        config: BrokerConfig,
        node_id: int,
        *,
        session: Session,
        directories: Sequence[DataDirectory],
        tasks: trio.Nursery,
        clock: Clock,
        chance: random.Random,
        carry_markers: Callable[["Broker", WriteMarkers], None],
        unadvertised: Collection[str] = (),
        inter_broker_listener: str = "PLAINTEXT",
        world: World | None = None,
    ) -> None:
        """`tasks` is for whatever outlives a request; `carry_markers` takes what transaction coordinators send; `world`
        is how other brokers are reached."""
        self.static = self.config = config
        """As we were started, and as altered since: the latter is replaced, never changed."""
        self.node_id, self.clock, self.tasks, self._chance = node_id, clock, tasks, chance
        self._settings_of = ("<default>", str(node_id))
        """Whose settings in the store are ours, the weaker first."""
        self.unadvertised = frozenset(unadvertised)
        """Listeners whose clients are told whatever address they have reached us by."""
        self.request_bytes_max: int = config["socket.request.max.bytes"]
        self.stopping = False
        self.turns = Turns()
        self.view = View(session)
        self.pulse = Pulse(self.view, node_id)
        self.links = Links(self.view, node_id, inter_broker_listener, self.fresh_nonce, world)
        self.inter_broker: InterBroker = self.links
        self.controller = Controller(self.view, node_id, chance, self._may_lose_data, self._min_isr)
        self.replicas = Replicas(node_id, directories, clock, chance, lambda: self.config)
        self.upkeep = Upkeep(self.replicas, clock)
        self.in_sync = InSync(
            self.view, self.replicas, tasks, lambda: float(self.config["replica.lag.time.max.ms"] / 1000)
        )
        self.throttles = Throttles(node_id, config)
        self.followers = Followers(
            self.replicas,
            node_id,
            dial=self.links.dial,
            tasks=tasks,
            config=lambda: self.config,
            clock_ms=clock,
            turns=self.turns,
            throttle=self.throttles.follower,
        )
        self.fetch_sessions = FetchSessions(config["max.incremental.fetch.session.cache.slots"], chance)
        self.groups = Runner(
            OFFSETS_TOPIC,
            lambda index: GroupCoordinator(self),
            replicas=self.replicas,
            tasks=tasks,
            clock=clock,
            sure=self._sure,
        )
        self.transactions = Runner(
            TRANSACTIONS_TOPIC,
            lambda index: TransactionCoordinator(index, self.config, self._wall_ms),
            replicas=self.replicas,
            tasks=tasks,
            clock=clock,
            send=lambda message: carry_markers(self, message),
            sure=self._sure,
        )
        for listener in (self._reconfigure, self.replicas.apply, self._update_followers, self._update_coordinators):
            self.view.listen(listener)

    @property
    def image(self) -> Image:
        return self.view.image

    # -- following the cluster -----------------------------------------------------------------

    def _reconfigure(self, before: Image, image: Image) -> None:
        if before.configs is not image.configs:
            mine = [(image.config("brokers", name), before.config("brokers", name)) for name in self._settings_of]
            if any(now != then for now, then in mine):
                self.config = self.static.with_dynamic(*(now for now, _ in mine))
            self.throttles.update(image)

    def _update_followers(self, before: Image, image: Image) -> None:
        if before.topics is not image.topics or before.brokers is not image.brokers:
            self.followers.update(image)

    def _update_coordinators(self, before: Image, image: Image) -> None:
        self.groups.update(image)
        if gone := vanished(before, image):
            self.groups.tell(GroupCoordinator.forget_topics, gone)
        self.transactions.update(image)

    async def open_the_rest(self) -> None:
        """Never ends: opens the logs of a new image that were too many to be opened at once."""

        await self.replicas.open_the_rest(lambda: self.image, self.turns, self._take_up)

    def registered(self, broker_epoch: int) -> None:
        """The cluster knows us under this epoch."""
        self.replicas.registered(broker_epoch, self.image)
        self._take_up()

    def _take_up(self) -> None:
        """There are logs that were not open when the image came."""
        self.followers.update(self.image)
        self._update_coordinators(self.image, self.image)

    async def look_after_disks(self) -> None:
        """Notice what has failed or is gone, and open the logs that could not be opened before."""
        await self.upkeep.look()
        if self.replicas.unopened and self.replicas.open_what_could_not_be(self.image):
            self._take_up()

    def _may_lose_data(self, topic: str) -> bool:
        overrides = self.image.config("topics", topic)
        return bool(self.config.topic(overrides)["unclean.leader.election.enable"])

    def _min_isr(self, topic: str) -> int:
        return int(self.config.topic(self.image.config("topics", topic))["min.insync.replicas"])

    def _sure(self) -> bool:
        return self.pulse.sure

    def _wall_ms(self, at: float) -> int:
        """What the wall's clock shows at a time of the transactions' machines."""
        return self.clock() + int((at - self.transactions.now()) * 1000)

    # -- what handlers ask ---------------------------------------------------------------------

    def fresh_id(self) -> str:
        """An id that nobody has, as Java prints them."""
        return str(UUID(bytes=self._chance.randbytes(16), version=4))

    def fresh_nonce(self) -> bytes:
        """What nobody can foresee."""
        return self._chance.randbytes(NONCE_BYTES)

    def fresh_short_id(self) -> str:
        """The same, as Kafka prints its own."""
        return uuid_text(self._chance.randbytes(16))

    @property
    def topic_defaults(self) -> tuple[int, int]:
        """Partitions and replication of a topic that does not say."""
        return self.config["num.partitions"], self.config["default.replication.factor"]
