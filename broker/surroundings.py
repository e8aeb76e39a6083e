"""Where a broker's connections, its way to other brokers and its sessions with ZooKeeper come from.

They are the system's own.  Who runs whole clusters on one loop, with a network and a ZooKeeper of its own making, gives
`serve` others (`testing/simulation`).
"""

import trio

from trilogue.broker.broker import Broker
from trilogue.broker.cluster.store import Session
from trilogue.broker.config import BrokerConfig
from trilogue.broker.joining import NewLink
from trilogue.broker.network.listeners import Listener, close_listeners, open_listeners
from trilogue.broker.network.transport import Transport, open_transport
from trilogue.broker.watchdog import Watchdog
from trilogue.client.tasks import Tasks
from trilogue.client.world import World


class Surroundings:
    """The system's: sockets, kazoo, and a thread that watches the loop."""

    def open_listeners(self, config: BrokerConfig) -> list[Listener]:
        return open_listeners(config)

    def close_listeners(self, listeners: list[Listener]) -> None:
        close_listeners(listeners)

    def world(self) -> World:
        """How other brokers are reached."""
        return Tasks()

    @property
    def new_link(self) -> NewLink | None:
        """What sessions with ZooKeeper are made of; kazoo's client if that is not said."""
        return None

    async def watch(self, session: Session) -> None:
        """Never ends: says who holds the loop."""
        await Watchdog(session).run()

    def met(self, broker: Broker) -> None:
        """It is complete, and about to live."""

    def open_transport(self, broker: Broker, nursery: trio.Nursery) -> Transport:
        return open_transport(broker, nursery)
