"""A partition moves between directories: everything arrives, and nothing of it is left behind."""

import os
import random

import pytest
import trio

from trilogue.broker.cluster.image import Image, PartitionState, Topic
from trilogue.broker.config import BrokerConfig
from trilogue.broker.partitions.replicas import Replicas
from trilogue.storage.directory import DataDirectory
from trilogue.storage.files import OpenFiles
from trilogue.storage.move import ON_THE_SPOT_BYTES, Move
from trilogue.wire.records import Record, build

NOW = 1_760_000_000_000
KEY = ("t", 0)
ID = bytes(range(16))


@pytest.fixture
def directories(tmp_path):
    pool = OpenFiles()
    return [
        DataDirectory(tmp_path / name, cluster_id="c", node_id=1, new_id=number.to_bytes(16, "big"), pool=pool)
        for number, name in enumerate(("one", "two"))
    ]


@pytest.fixture
def replicas(directories):
    """Of one partition, which this broker leads under epoch 3."""
    made = Replicas(1, directories, lambda: NOW, random.Random(1), lambda: BrokerConfig.parse({"node.id": "1"}))
    topic = Topic("t", ID, (PartitionState((1,), 1, 3, (1,)),))
    made.apply(Image(), Image(topics={"t": topic}))
    yield made
    made.close(broker_epoch=1)


def write(partition, size=10, **more):
    return partition.append(memoryview(build([Record(0, NOW, b"k", bytes(size))], **more)), NOW).base_offset


def other(replicas):
    here = replicas.home(KEY)
    return next(each for each in replicas.directories if each is not here)


def offsets(log):
    return [batch.header.base_offset for batch in log.batches(log.start_offset)]


def test_everything_arrives_and_the_partition_goes_on(replicas):
    partition, target = replicas.find(*KEY), other(replicas)
    source = replicas.home(KEY)
    for sequence in range(3):
        write(partition, producer_id=7, producer_epoch=0, base_sequence=sequence)
    partition.log.raise_start(1, 3)

    trio.run(replicas.move, partition, target)

    assert replicas.home(KEY) is target
    assert replicas.moves == {}
    assert offsets(partition.log) == [1, 2]
    assert partition.log.epoch_end_offset(3) == (3, 3)
    assert write(partition, producer_id=7, producer_epoch=0, base_sequence=3) == 3
    assert target.partitions() == [KEY]
    assert source.partitions() == []
    assert len(source.leftovers()) == 1, "what was moved waits for its removal"


def test_a_partition_without_files_just_changes_its_home(replicas):
    partition, target = replicas.find(*KEY), other(replicas)

    trio.run(replicas.move, partition, target)

    assert replicas.home(KEY) is target
    assert write(partition) == 0
    assert target.partitions() == [KEY]


def test_what_is_written_meanwhile_arrives_as_well(replicas):
    partition, target = replicas.find(*KEY), other(replicas)
    for _ in range(3):
        write(partition, size=ON_THE_SPOT_BYTES // 2)

    async def both():
        async with trio.open_nursery() as tasks:
            tasks.start_soon(replicas.move, partition, target)
            while KEY not in replicas.moves:
                await trio.lowlevel.checkpoint()
            assert replicas.home(KEY) is not target
            write(partition)

    trio.run(both)

    assert replicas.home(KEY) is target
    assert offsets(partition.log) == [0, 1, 2, 3]


def test_a_wish_for_where_it_is_stops_the_move(replicas):
    partition, target = replicas.find(*KEY), other(replicas)
    home = replicas.home(KEY)
    for _ in range(3):
        write(partition, size=ON_THE_SPOT_BYTES // 2)

    async def both():
        async with trio.open_nursery() as tasks:
            tasks.start_soon(replicas.move, partition, target)
            while KEY not in replicas.moves:
                await trio.lowlevel.checkpoint()
            assert not replicas.wants_move(partition, home)

    trio.run(both)

    assert replicas.home(KEY) is home
    assert replicas.moves == {}
    assert not any(name.endswith("-future") for name in os.listdir(target.path))


def test_what_was_under_way_when_the_broker_ended_goes(replicas, directories):
    partition, target = replicas.find(*KEY), other(replicas)
    write(partition)
    move = Move(partition.log, target, "0" * 32)
    move.copy(move.next_round(NOW))
    assert os.path.isdir(move.folder)

    Replicas(1, directories, lambda: NOW, random.Random(1), lambda: BrokerConfig.parse({"node.id": "1"}))

    assert not os.path.exists(move.folder)
