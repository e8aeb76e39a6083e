"""A replica whose disk is full or has failed: another leads, nobody waits for it, and it comes back when it can."""

import errno
import os

from trilogue.broker.partitions.partition import Partition
from trilogue.broker.tests.cluster import Cluster, eventually, run
from trilogue.broker.tests.test_replication import content, make, write
from trilogue.storage.directory import DataDirectory

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
BROKEN = OSError(errno.EIO, os.strerror(errno.EIO))


def home_of(cluster: Cluster, node_id: int, index: int = 0) -> DataDirectory:
    return cluster.servers[node_id].broker.replicas.home(("t", index))


def fail(cluster: Cluster, partition: Partition, error: OSError) -> None:
    """As a write to it does that is refused."""
    cluster.servers[partition.node_id].broker.replicas.failed(partition, error)


def test_when_one_of_two_disks_fails_others_lead_what_was_there_and_nothing_else_moves():
    async def story(cluster: Cluster) -> None:
        await make(cluster, partitions=6)
        leaders = [await cluster.leader(index=index, isr=3) for index in range(6)]
        victim = leaders[0].node_id
        gone = home_of(cluster, victim)
        there = [index for index in range(6) if home_of(cluster, victim, index) is gone]
        assert len(there) == 3, "the partitions are spread"
        fail(cluster, leaders[0], BROKEN)

        for index, before in enumerate(leaders):
            now = await cluster.leader(index=index, isr=2 if index in there else 3)
            assert (now.node_id == before.node_id) == (index not in there or before.node_id != victim)
            assert (victim in now.state.isr) == (index not in there)
        image = cluster.servers[victim].broker.image
        assert image.brokers[victim].offline == {("t", index) for index in there}
        assert [image.offline_replicas("t", index) for index in range(6)] == [
            [victim] if index in there else [] for index in range(6)
        ]
        await write(cluster, b"a")

        await cluster.kill(victim)
        await cluster.start(victim)  # with the disk that it had: it was only told that it had failed
        for index in range(6):
            await cluster.leader(index=index, isr=3)
        await write(cluster, b"b")
        assert content(cluster, 1) == content(cluster, 2) == content(cluster, 3)

    run(story, disks=2)


def test_a_leader_whose_disk_is_full_hands_over_and_follows_again_when_there_is_room(monkeypatch):
    async def story(cluster: Cluster) -> None:
        await make(cluster)
        await write(cluster, b"a")
        full = await cluster.leader(isr=3)
        try_out = DataDirectory.try_out

        def without_room(directory: DataDirectory, size: int) -> None:
            if directory is home_of(cluster, full.node_id):
                raise FULL
            try_out(directory, size)

        with monkeypatch.context() as patch:
            patch.setattr(DataDirectory, "try_out", without_room)
            fail(cluster, full, FULL)
            other = await cluster.leader(isr=2)
            assert other.node_id != full.node_id
            await write(cluster, b"b")
            assert full.log.end_offset == 1, "it does not even ask for what it could not write"
            assert full.node_id not in other.state.isr
        await cluster.leader(isr=3)
        await write(cluster, b"c")
        assert content(cluster, 1) == content(cluster, 2) == content(cluster, 3)
        assert (await cluster.leader()) is other, "nothing goes back by itself"

    run(story)


def test_a_follower_whose_disk_is_full_is_not_waited_for(monkeypatch):
    async def story(cluster: Cluster) -> None:
        await make(cluster, min_insync_replicas="2")
        leader = await cluster.leader(isr=3)
        victim = cluster.partition(next(each for each in (1, 2, 3) if each != leader.node_id))
        append = type(victim.log).append_as_follower

        def refuse(log, *given, **more):
            if log is victim.log:
                raise FULL
            return append(log, *given, **more)

        def without_room(directory: DataDirectory, size: int) -> None:
            raise FULL

        with monkeypatch.context() as patch:
            patch.setattr(type(victim.log), "append_as_follower", refuse)
            patch.setattr(DataDirectory, "try_out", without_room)
            await write(cluster, b"a")  # returns only when all members of the ISR have it
            assert leader.state.isr == tuple(each for each in leader.state.replicas if each != victim.node_id)
        await cluster.leader(isr=3)
        await eventually(lambda: content(cluster, victim.node_id) == content(cluster, leader.node_id))

    run(story, replica_lag_time_max_ms="60000")


def test_when_all_disks_are_full_the_leader_stays_and_all_is_well_when_there_is_room(monkeypatch):
    async def story(cluster: Cluster) -> None:
        await make(cluster)
        await write(cluster, b"a")
        leader = await cluster.leader(isr=3)

        def without_room(directory: DataDirectory, size: int) -> None:
            raise FULL

        with monkeypatch.context() as patch:
            patch.setattr(DataDirectory, "try_out", without_room)
            for each in (1, 2, 3):
                fail(cluster, cluster.partition(each), FULL)
            last = await cluster.leader(isr=1)
            assert last.high_watermark == 1
        await cluster.leader(isr=3)
        await write(cluster, b"b")
        assert content(cluster, 1) == content(cluster, 2) == content(cluster, 3)
        assert leader.log.end_offset == 2

    run(story)
