"""Runs the pure machines of one topic: one for each of its partitions that we lead."""

import logging
from collections.abc import Callable
from math import inf
from typing import Any, Generic, TypeVar

import trio

from trilogue.broker.cluster.image import Image
from trilogue.broker.machines.effects import Effect, Machine
from trilogue.broker.machines.shard import Shard
from trilogue.broker.partitions.replicas import Replicas
from trilogue.wire.errors import BrokerError, ErrorCode

logger = logging.getLogger(__name__)

AGAIN_SECONDS, AGAIN_SECONDS_MAX = 1.0, 60.0
"""After this a shard that was given up is loaded anew; twice as long each time that it fails again."""

M = TypeVar("M", bound=Machine)


class Runner(Generic[M]):
    """`send` takes what machines send to others; `sure` says whether we may answer from memory."""

    def __init__(
        self,
        topic: str,
        machine: Callable[[int], M],
        *,
        replicas: Replicas,
        tasks: trio.Nursery,
        clock: Callable[[], int],
        send: Callable[[Any], None] = lambda message: None,
        sure: Callable[[], bool] = lambda: True,
    ) -> None:
        self.topic, self._machine, self._replicas = topic, machine, replicas
        self.tasks, self.clock, self.send, self.sure = tasks, clock, send, sure
        self.disk_failed = replicas.failed
        self._image = Image()
        self._shards: dict[int, Shard[M]] = {}
        self._given_up: dict[int, int] = {}
        """How often in a row each shard was given up."""
        self._stirred = trio.Event()
        self._wake_at = inf
        self._ahead_seconds, self._held_until = 0.0, -inf

    def now(self) -> float:
        """What machines are told: trio's time, and what it was put forward by."""
        return trio.current_time() + self._ahead_seconds

    def advance(self, seconds: float, grace: float = 0.0) -> None:
        """Let so much time have passed for machines.  What has become due by that is done now, or after `grace` by
        trio's clock: whoever is heard from until then is not late.  For tests."""
        self._ahead_seconds += seconds
        self._held_until = trio.current_time() + grace
        if not grace:
            self._tick()
        self._stirred.set()

    def shard(self, index: int) -> Shard[M]:
        """The shard of a partition; NOT_COORDINATOR if that is another broker's."""
        found = self._shards.get(index)
        if found is None:
            raise BrokerError(ErrorCode.NOT_COORDINATOR)
        return found

    def shards(self) -> list[Shard[M]]:
        return list(self._shards.values())

    def ended(self, index: int, producer_id: int, committed: bool) -> None:
        """A marker is in the log of this partition: its machine has to know how that transaction ended."""
        shard = self.shard(index)
        shard.machine.replay_end(producer_id, committed)
        self.expect(shard.machine.deadline)

    def tell(self, act: Callable[..., list[Effect]], *arguments: Any) -> None:
        """Let every machine that is loaded know something: `act(machine, now, *arguments)`."""
        for shard in self.shards():
            if shard.active:
                shard.carry_out(act(shard.machine, self.now(), *arguments))

    def expect(self, deadline: float) -> None:
        """Some machine has something to do then.  Waking the task costs more than a heartbeat: only if it must."""
        if deadline < self._wake_at:
            self._stirred.set()

    def update(self, image: Image) -> None:
        """The image has changed: take up what we lead now, and give up what we do not."""
        self._image = image
        for index, shard in list(self._shards.items()):
            partition = self._replicas.find(self.topic, index)
            ours = partition is shard.partition and partition.leads and partition.leader_epoch == shard.epoch
            if not ours or shard.given_up:
                if not shard.given_up:
                    shard.give_up()
                del self._shards[index]
        topic = image.topics.get(self.topic)
        for index in range(len(topic.partitions) if topic else 0):
            partition = self._replicas.find(self.topic, index)
            if partition is not None and partition.leads and index not in self._shards:
                shard = Shard(self, partition, self._machine(index))
                self._shards[index] = shard
                if partition.log.end_offset == partition.log.start_offset:
                    shard.begin()  # nothing to load
                else:
                    self.tasks.start_soon(self._load, shard)

    async def _load(self, shard: Shard[M]) -> None:
        try:
            await shard.load()
        except OSError as error:
            logger.error("%s: cannot be read: %s", shard.partition, error)
            shard.give_up()
        except Exception:
            logger.exception("%s: cannot be loaded", shard.partition)
            shard.give_up()
        self.expect(shard.machine.deadline)

    def began(self, index: int) -> None:
        """A shard is well."""
        self._given_up.pop(index, None)

    def try_again(self, index: int) -> None:
        """A shard was given up; if it is still ours after a while, it is loaded anew."""
        times = self._given_up[index] = self._given_up.get(index, 0) + 1
        self.tasks.start_soon(self._update_later, min(AGAIN_SECONDS * 2 ** (times - 1), AGAIN_SECONDS_MAX))

    async def _update_later(self, seconds: float) -> None:
        await trio.sleep(seconds)
        self.update(self._image)

    async def run(self) -> None:
        """Never ends: wakes machines whenever they said they would have something to do."""
        while True:
            deadline = min((shard.machine.deadline for shard in self._shards.values() if shard.active), default=inf)
            self._wake_at = deadline
            with trio.move_on_at(max(deadline - self._ahead_seconds, self._held_until)):
                await self._stirred.wait()
                self._stirred = trio.Event()
                continue
            self._tick()

    def _tick(self) -> None:
        now = self.now()
        for shard in self.shards():
            try:
                shard.tick(now)
            except Exception:
                logger.exception("%s: given up, for what it does when time passes", shard.partition)
                shard.give_up()
