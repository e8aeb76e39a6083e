"""What clients have in common: a host on the network, lives that end when they are killed, patience."""

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import trio

from trilogue.client.client import Client
from trilogue.client.errors import ClientError
from trilogue.testing.simulation.lives import Life
from trilogue.wire.errors import BrokerError

if TYPE_CHECKING:
    from trilogue.testing.simulation.cluster import Cluster

TIMEOUT_SECONDS = 2.0
"""For one answer."""

TROUBLES = (BrokerError, ClientError)


class Party:
    """`live` is what it does; returns when it is told to end and has done what it had begun."""

    def __init__(self, cluster: "Cluster", name: str) -> None:
        self.cluster, self.name, self.history = cluster, name, cluster.history
        self.lives = 0
        self.life = Life(name, 0)
        self.chance = random.Random()
        self.client: Client
        self.ending = trio.Event()
        """It is told to come to an end."""
        self.ended = trio.Event()
        self._scope = trio.CancelScope()
        self._may_live = trio.Event()
        self._may_live.set()

    async def live(self) -> None:
        raise NotImplementedError

    async def run(self) -> None:
        while True:
            await self._may_live.wait()
            self.lives += 1
            self.life = Life(self.name, self.lives)
            self.chance = random.Random(f"{self.cluster.seed} {self.name} {self.lives}")
            self.client = self.cluster.client(self.life, TIMEOUT_SECONDS)
            self._scope = trio.CancelScope()
            with self._scope:
                await self.live()
            if not self._scope.cancelled_caught:
                break
        self.client.close()
        self.ended.set()

    def kill(self) -> None:
        """As by SIGKILL."""
        if self.life.alive and not self.ended.is_set():
            self._may_live = trio.Event()
            self.life.alive = False
            self.cluster.network.die(self.life, silently=False)
            self._scope.cancel()

    def revive(self) -> None:
        self._may_live.set()

    async def rest(self, error: Exception | None = None) -> None:
        """Before something is tried again.  A connection that is of no use any more is not used any more."""
        if isinstance(error, ClientError):
            self.client.close()
        self.client.forget()
        await trio.sleep(0.02 + 0.2 * self.chance.random())

    async def pause(self, seconds: float) -> None:
        """Until it is time, or to come to an end."""
        with trio.move_on_after(seconds * (0.5 + self.chance.random())):
            await self.ending.wait()


class Maker(Protocol):
    def __call__(self, cluster: "Cluster", name: str, given: dict[str, object]) -> Party: ...


Known = dict[str, Callable[["Cluster", str, dict[str, object]], Party]]
