"""What upkeep finds and removes, and what becomes of it when a partition cannot be kept up."""

import errno
import logging
import os
import random
import shutil

import pytest
import trio
from posix_only import posix_only

from trilogue.broker.cluster.image import Image, PartitionState, Topic
from trilogue.broker.config import BrokerConfig
from trilogue.broker.partitions.replicas import Replicas
from trilogue.broker.partitions.upkeep import Upkeep
from trilogue.storage import system
from trilogue.storage.directory import DataDirectory
from trilogue.storage.files import OpenFiles
from trilogue.storage.passing import PASSING
from trilogue.wire.records import Record, build


def test_folders_of_deleted_partitions_that_an_earlier_life_has_left_are_removed(tmp_path):
    left = tmp_path / f"gone-0.{'ab' * 16}-delete"
    left.mkdir()
    (left / "00000000000000000000.log").write_bytes(b"x")
    home = DataDirectory(tmp_path, cluster_id="c", node_id=1, new_id=bytes(16), pool=OpenFiles())
    replicas = Replicas(1, [home], lambda: 0, random.Random(1), lambda: BrokerConfig.parse({"node.id": "1"}))
    assert left.exists(), "the start does not wait for it"

    trio.run(Upkeep(replicas, lambda: 0).expire)

    assert not left.exists()
    replicas.close(broker_epoch=1)


ID = bytes(range(16))
COMPACTED = {"cleanup.policy": "compact", "segment.bytes": "1048576", "min.cleanable.dirty.ratio": "0.01"}


@pytest.fixture
def two(tmp_path):
    """A compacted topic of two partitions with the same ten values of one key; the second in a segment of its own."""
    home = DataDirectory(tmp_path, cluster_id="c", node_id=1, new_id=bytes(16), pool=OpenFiles())
    made = Replicas(1, [home], lambda: 0, random.Random(1), lambda: BrokerConfig.parse({"node.id": "1"}))
    states = (PartitionState((1,), 1, 3, (1,)),) * 2
    made.apply(Image(), Image(topics={"t": Topic("t", ID, states)}, configs={("topics", "t"): COMPACTED}))
    for partition in made:
        for number in range(10):
            partition.append(memoryview(build([Record(0, 0, b"k", b"%d" % number)])), 0)
        partition.log.roll(0)
        partition.append(memoryview(build([Record(0, 0, b"k", b"last")])), 0)
    yield made
    made.close(broker_epoch=1)


def values(partition):
    log = partition.log
    return [bytes(record.value) for batch in log.batches(0) for record in batch.records()]


@pytest.mark.parametrize("at", [8, 16, 65], ids=["length", "magic", "records"])
def test_a_partition_that_cannot_be_compacted_is_left_alone_and_the_others_are_not(two, tmp_path, caplog, at):
    broken, well = two
    file = tmp_path / "t-0" / "00000000000000000000.log"
    data = bytearray(file.read_bytes())
    data[at : at + 4] = b"\xff\xff\xff\xff"
    file.write_bytes(data)
    upkeep = Upkeep(two, lambda: 0)

    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            trio.run(upkeep.compact)

    assert values(well) == [b"9", b"last"]
    (told,) = [record.getMessage() for record in caplog.records]
    assert told == "compaction of t-0 failed; it is left alone for 1 s"
    assert upkeep.troubles.failures == {"compaction": 1}
    assert broken.append(memoryview(build([Record(0, 0, b"k", b"more")])), 0).base_offset == 11


def refused(number):
    def call(*_):
        raise OSError(number, os.strerror(number))

    return call


@pytest.mark.parametrize("number", sorted(PASSING))
def test_what_passes_costs_nothing_and_is_tried_every_time(two, tmp_path, caplog, number):
    now_ms = 0
    upkeep = Upkeep(two, lambda: now_ms)
    with caplog.at_level(logging.ERROR), pytest.MonkeyPatch.context() as patch:
        patch.setattr(system, "open", refused(number))
        for partition in two:
            for segment in partition.log.segments:
                segment.sleep()
        for _ in range(3):
            trio.run(upkeep.checkpoint)
            trio.run(upkeep.compact)

    home = two.home(("t", 0))
    assert [partition.log.failed for partition in two] == [None, None]
    assert (home.failed, two.none_left) == (None, None)
    assert sorted(record.getMessage() for record in caplog.records) == [
        f"{tmp_path}: cannot be written to for now: {os.strerror(number)}",
        f"{tmp_path}: no checkpoint for now: {os.strerror(number)}",
    ]
    trio.run(upkeep.checkpoint)
    trio.run(upkeep.compact)
    assert [values(partition) for partition in two] == [[b"9", b"last"], [b"9", b"last"]]
    assert home.high_watermarks == {("t", 0): 11, ("t", 1): 11}


def test_a_disk_that_fails_takes_all_its_partitions_along(two, tmp_path):
    first, _ = two
    first.log.fail(OSError(errno.EIO, os.strerror(errno.EIO)))

    trio.run(Upkeep(two, lambda: 0).look)

    assert [partition.log.failed.errno for partition in two] == [errno.EIO, errno.EIO]
    assert two.none_left.errno == errno.EIO


@posix_only("open files cannot be removed elsewhere")
def test_files_that_are_gone_cost_their_partition(two, tmp_path):
    _, second = two
    shutil.rmtree(tmp_path / "t-0")

    trio.run(Upkeep(two, lambda: 0).look)

    assert [type(partition.log.failed) for partition in two] == [FileNotFoundError, type(None)]
    assert two.none_left is None
    assert values(second)[-1:] == [b"last"]


def test_what_is_well_is_left_alone(two):
    upkeep = Upkeep(two, lambda: 0)
    for _ in range(2):
        trio.run(upkeep.look)

    assert [partition.log.failed for partition in two] == [None, None]
    assert two.none_left is None
