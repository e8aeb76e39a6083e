"""Which partitions we follow, and whom: a fetcher for each broker that leads some of them, or several."""

from collections.abc import Awaitable, Callable
from functools import partial

import trio

from trilogue.broker.cluster.image import Image
from trilogue.broker.config import BrokerConfig
from trilogue.broker.partitions.fetcher import Fetcher
from trilogue.broker.partitions.partition import Partition
from trilogue.broker.partitions.replicas import Replicas
from trilogue.broker.partitions.throttle import Throttle
from trilogue.broker.requests.turns import Turns
from trilogue.client.link import Link
from trilogue.wire.apis.fetch import FetchRequest

Place = tuple[int, int]
"""A leader's broker, and which of our fetchers there."""


class Followers:
    def __init__(
        self,
        replicas: Replicas,
        node_id: int,
        *,
        dial: Callable[[int], Awaitable[Link]],
        tasks: trio.Nursery,
        config: Callable[[], BrokerConfig],
        clock_ms: Callable[[], int],
        turns: Turns,
        throttle: Throttle,
    ) -> None:
        self._replicas, self._node_id, self._tasks, self._config = replicas, node_id, tasks, config
        self._new = partial(
            Fetcher,
            dial=dial,
            me=self._me,
            config=config,
            clock_ms=clock_ms,
            turns=turns,
            throttle=throttle,
            disk_failed=replicas.failed,
        )
        self._fetchers: dict[Place, tuple[Fetcher, trio.CancelScope]] = {}
        self._epoch = -1
        self._image, self._paused = Image(), False

    def update(self, image: Image) -> None:
        """Follow whom the image says; whoever is gone is followed no more."""
        self._image = image
        me = None if self._paused else image.brokers.get(self._node_id)
        self._epoch = me.epoch if me else -1
        wanted: dict[Place, list[Partition]] = {}
        for partition in self._replicas:
            leader = partition.state.leader
            if partition.key in self._replicas.offline:
                continue  # what came could not be written; when it can, we tell the cluster, and come by here
            if not partition.leads and leader in image.brokers and leader != self._node_id and me is not None:
                wanted.setdefault(self._place(partition, leader), []).append(partition)
        for place in [each for each in self._fetchers if each not in wanted]:
            self._fetchers.pop(place)[1].cancel()
        for place, partitions in wanted.items():
            if place not in self._fetchers:
                fetcher, scope = self._new(place[0]), trio.CancelScope()
                self._fetchers[place] = fetcher, scope
                self._tasks.start_soon(run_in, scope, fetcher.run)
            self._fetchers[place][0].follow(partitions)

    def pause(self) -> None:
        """Follow nobody.  For tests."""
        self._paused = True
        self.update(self._image)

    def go_on(self) -> None:
        self._paused = False
        self.update(self._image)

    def _place(self, partition: Partition, leader: int) -> Place:
        return leader, (hash(partition.topic_id) + partition.index) % int(self._config()["num.replica.fetchers"])

    def _me(self) -> FetchRequest.ReplicaState:
        return FetchRequest.ReplicaState(replica_id=self._node_id, replica_epoch=self._epoch)


async def run_in(scope: trio.CancelScope, work: Callable[[], Awaitable[None]]) -> None:
    with scope:
        await work()
