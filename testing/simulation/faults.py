"""Carries out what a plan says goes wrong, and undoes it when its time is over."""

import errno
import random
from contextlib import suppress
from typing import TYPE_CHECKING

import trio

from trilogue.client.dialogue import check
from trilogue.testing.simulation.clients.party import TROUBLES, Party
from trilogue.testing.simulation.lives import Life
from trilogue.testing.simulation.plan import Fault
from trilogue.wire.apis.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from trilogue.wire.apis.elect_leaders import ElectLeadersRequest, ElectLeadersResponse

if TYPE_CHECKING:
    from trilogue.testing.simulation.cluster import Cluster
    from trilogue.testing.simulation.laws import Laws

ADMIN_SECONDS = 5.0


class Faults:
    def __init__(self, cluster: "Cluster", laws: "Laws", parties: list[Party]) -> None:
        self._cluster, self._laws, self._parties = cluster, laws, parties
        self._chance = random.Random(f"faults {cluster.seed}")
        self.under_way = 0

    async def bring_about(self, fault: Fault) -> None:
        await trio.sleep(fault.at)
        self.under_way += 1
        self._cluster.history.add("plan", fault.kind, of=fault.of, lasts=fault.lasts)
        handler = getattr(self, "_" + fault.kind.replace(" ", "_"))
        await handler(fault.lasts, *fault.of)
        self._cluster.history.add("plan", "over: " + fault.kind, of=fault.of)
        self.under_way -= 1

    def _spared(self, node_id: int) -> bool:
        """As many may lose what was not synced as the ISR can spare: that is one, and nobody else may die until it has
        everything again."""
        forgetful = {node for node, _ in self._laws.forgetful}
        if forgetful - {node_id}:
            self._cluster.history.add("plan", "spared", of=(node_id,))
            return True
        return False

    # -- processes -----------------------------------------------------------------------------

    async def _kill(self, lasts: float, node_id: int) -> None:
        host = self._cluster.hosts[node_id]
        if not host.alive or self._spared(node_id):
            return
        host.kill()
        await trio.sleep(lasts)
        host.start()

    async def _crash(self, lasts: float, node_id: int, writes: int) -> None:
        """In the midst of one of the next writes."""
        host = self._cluster.hosts[node_id]
        if not host.alive or self._spared(node_id):
            return
        host.disk.die_after = writes
        with trio.move_on_after(3):
            while host.alive:  # noqa: ASYNC110  it is time that is simulated
                await trio.sleep(0.05)
        host.disk.die_after = None
        if not host.alive:
            self._cluster.history.add("plan", "crashed", of=(node_id,))
            await trio.sleep(lasts)
            host.start()

    async def _power(self, lasts: float, node_id: int) -> None:
        host = self._cluster.hosts[node_id]
        if not host.alive or not self._all_have_everything() or self._spared(node_id):
            return await self._kill(lasts, node_id)
        self._laws.look()
        self._laws.lost_power(node_id)
        files = host.go_down()
        self._cluster.history.add("plan", "lost", of=(node_id,), files=files)
        await trio.sleep(lasts)
        host.start()

    def _all_have_everything(self) -> bool:
        """And the cluster knows of none that it was somebody else meanwhile."""
        cluster = self._cluster
        epochs = [
            cluster.keeper.registered(host.life, node_id) if host.life is not None else None
            for node_id, host in cluster.hosts.items()
        ]
        return None not in epochs and all(
            len(each.isr) == len(epochs) and sorted(each.isr_epochs) == sorted(epochs)  # type: ignore[type-var]
            for each in self._laws.stored.values()
        )

    async def _stop(self, lasts: float, node_id: int) -> None:
        host = self._cluster.hosts[node_id]
        if host.alive:
            host.stop()
            await trio.sleep(lasts)
            host.start()

    async def _freeze(self, lasts: float, node_id: int) -> None:
        host = self._cluster.hosts[node_id]
        host.freeze()
        life = host.life
        await trio.sleep(lasts)
        if host.life is life:
            host.thaw()

    async def _kill_client(self, lasts: float, number: int) -> None:
        party = self._parties[number % len(self._parties)]
        party.kill()
        await trio.sleep(lasts)
        party.revive()

    # -- the network ---------------------------------------------------------------------------

    async def _cut(self, lasts: float, how: str, one: int, other: int) -> None:
        network, hosts = self._cluster.network, self._cluster.hosts
        me = hosts[one].name
        others = [each.name for each in hosts.values() if each.name != me]
        everybody = others + [each.name for each in self._parties]
        ways = {
            "one way": [(me, hosts[other].name)],
            "both ways": [(me, hosts[other].name), (hosts[other].name, me)],
            "alone": [way for each in others for way in ((me, each), (each, me))],
            "alone with keeper": [way for each in everybody for way in ((me, each), (each, me))],
            "clients": [way for each in self._parties for way in ((me, each.name), (each.name, me))],
        }[how]
        network.cut(*ways)
        if how == "alone with keeper":
            self._cluster.keeper.cut_off(me)
        await trio.sleep(lasts)
        network.heal(*ways)
        if how == "alone with keeper":
            self._cluster.keeper.let_through(me)

    async def _lose(self, lasts: float, one: int, other: int | str) -> None:
        me = self._cluster.hosts[one].name
        them = [each.name for each in self._parties] if other == "clients" else [self._cluster.hosts[int(other)].name]
        for each in them:
            self._cluster.network.lose(me, each, self._chance)

    async def _slow(self, lasts: float, one: int, other: int, factor: float) -> None:
        way = self._cluster.hosts[one].name, self._cluster.hosts[other].name
        self._cluster.network.slow(way, factor)
        await trio.sleep(lasts)
        self._cluster.network.quick(way, factor)

    # -- ZooKeeper -----------------------------------------------------------------------------

    async def _expire(self, lasts: float, node_id: int) -> None:
        self._cluster.keeper.expire(self._cluster.hosts[node_id].name)

    async def _blip(self, lasts: float, node_id: int) -> None:
        self._cluster.keeper.blip(self._cluster.hosts[node_id].name)

    async def _keeper_cut(self, lasts: float, node_id: int) -> None:
        name = self._cluster.hosts[node_id].name
        self._cluster.keeper.cut_off(name)
        await trio.sleep(lasts)
        self._cluster.keeper.let_through(name)

    async def _keeper_down(self, lasts: float) -> None:
        if self._cluster.keeper.up:
            self._cluster.keeper.stop()
            await trio.sleep(lasts)
            self._cluster.keeper.start()

    async def _keeper_slow(self, lasts: float, factor: float) -> None:
        self._cluster.keeper.slow.append(factor)
        await trio.sleep(lasts)
        self._cluster.keeper.slow.remove(factor)

    # -- disks and clocks ----------------------------------------------------------------------

    async def _full(self, lasts: float, node_id: int) -> None:
        disk = self._cluster.hosts[node_id].disk
        disk.full = True
        await trio.sleep(lasts)
        disk.full = False

    async def _broken(self, lasts: float, node_id: int) -> None:
        host = self._cluster.hosts[node_id]
        if self._spared(node_id):
            return
        host.disk.broken = errno.EIO
        await trio.sleep(lasts)
        host.disk.broken = None

    async def _no_sync(self, lasts: float, node_id: int) -> None:
        host = self._cluster.hosts[node_id]
        if self._spared(node_id):
            return
        host.disk.fsync_fails = True
        await trio.sleep(lasts)
        host.disk.fsync_fails = False
        if host.alive:
            host.kill()  # what has failed in an fsync stays refused until somebody starts it anew
            await trio.sleep(0.5)
        host.start()

    async def _clock(self, lasts: float, node_id: int, off_ms: int) -> None:
        self._cluster.hosts[node_id].clock.off_ms = off_ms

    # -- administration ------------------------------------------------------------------------

    async def _move(self, lasts: float, partition: int, replicas: list[int]) -> None:
        """The same brokers in another order: who is preferred is another then."""
        Topic = AlterPartitionReassignmentsRequest.Topic
        wanted = Topic.Partition(partition_index=partition, replicas=list(replicas))
        request = AlterPartitionReassignmentsRequest(timeout_ms=2000, topics=[Topic(name="t", partitions=[wanted])])
        client = self._cluster.client(Life("admin", 0), 1.0)
        with trio.move_on_after(ADMIN_SECONDS):
            with suppress(*TROUBLES):
                answer = await client.call(request, AlterPartitionReassignmentsResponse)
                check(answer.error_code)
        client.close()

    async def _prefer(self, lasts: float) -> None:
        request = ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=2000)
        client = self._cluster.client(Life("admin", 0), 1.0)
        with trio.move_on_after(ADMIN_SECONDS):
            with suppress(*TROUBLES):
                await client.call(request, ElectLeadersResponse)
        client.close()
