"""Whoever waits is woken when there is enough, and looks again only at what has changed."""

from pathlib import Path

import pytest
import trio

from trilogue.broker.cluster.image import PartitionState
from trilogue.broker.partitions.partition import Partition
from trilogue.broker.partitions.waiting import Bell
from trilogue.storage.producers import Origin
from trilogue.storage.tests.making import NOW, batch, opened
from trilogue.wire.records import end_transaction_marker

ME = 1
PRODUCER = {"producer_id": 7, "producer_epoch": 0}


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    made = Partition(ME, "t", 0, bytes(16), opened(tmp_path / "t-0"), 0, 1)
    made.become(PartitionState((ME,), ME, 0, (ME,)))
    return made


def woken(bell: Bell) -> bool:
    async def main() -> bool:
        with trio.move_on_after(0.01):
            await bell.wait()
            return True
        return False

    return trio.run(main)


def test_nobody_is_woken_before_there_is_enough(partition: Partition) -> None:
    one = batch(b"x" * 100)
    bell = Bell(lacks=2 * len(one))
    partition.watch(bell)

    partition.append(one, NOW)
    assert not woken(bell)
    assert bell.changed == {partition}

    partition.append(batch(b"x" * 100), NOW)
    assert woken(bell)


def test_whoever_does_not_watch_any_more_hears_nothing(partition: Partition) -> None:
    bell = Bell()
    partition.watch(bell)
    partition.unwatch(bell)
    partition.append(batch(b"x"), NOW)

    assert not woken(bell)
    assert not bell.changed


@pytest.mark.parametrize("committed_only", [False, True])
def test_a_new_leader_epoch_is_heard_at_once(partition: Partition, committed_only: bool) -> None:
    bell = Bell(lacks=1 << 40)
    partition.watch(bell, committed_only=committed_only)
    partition.become(PartitionState((ME,), ME, 1, (ME,)))

    assert woken(bell)


def test_an_open_transaction_wakes_nobody_who_reads_what_is_committed(partition: Partition) -> None:
    bell, other = Bell(lacks=1), Bell(lacks=1)
    partition.watch(bell, committed_only=True)
    partition.watch(other)

    partition.append(batch(b"one", b"two", **PRODUCER, base_sequence=0, transactional=True), NOW)
    assert not woken(bell)
    assert woken(other)
    assert bell.changed == {partition}, "it will be told of the high watermark, when it is told anything"

    partition.append(batch(b"behind it"), NOW)
    assert not woken(bell)

    marker = end_transaction_marker(True, 0, timestamp=NOW, **PRODUCER)
    partition.append(memoryview(marker), NOW, origin=Origin.COORDINATOR)
    assert woken(bell), "however much it lacks: nobody has counted what was held back"


def test_without_transactions_committed_bytes_are_counted_like_all_others(partition: Partition) -> None:
    one = batch(b"x" * 100)
    bell = Bell(lacks=2 * len(one))
    partition.watch(bell, committed_only=True)

    partition.append(one, NOW)
    assert not woken(bell)
    partition.append(batch(b"x" * 100), NOW)
    assert woken(bell)
