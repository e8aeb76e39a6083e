"""A session stands watch between its fetches: what happens meanwhile is due, and nothing else."""

from pathlib import Path

import pytest

from trilogue.broker.cluster.image import PartitionState
from trilogue.broker.partitions.partition import Partition
from trilogue.broker.partitions.standing import Standing
from trilogue.storage.tests.making import NOW, batch, opened

ME, FOLLOWER = 1, 2
KEY = (bytes(16), 0)


def made(folder: Path) -> Partition:
    partition = Partition(ME, "t", 0, KEY[0], opened(folder), 0, 1)
    partition.become(PartitionState((ME, FOLLOWER), ME, 0, (ME, FOLLOWER), isr_epochs=(1, 2)))
    partition.fetched(FOLLOWER, 0, 0, 0.0)
    return partition


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    return made(tmp_path / "t-0")


def settled(partition: Partition, asked_at: float = 5.0) -> Standing:
    standing = Standing(FOLLOWER)
    standing.asked_at = asked_at
    standing.due[KEY] = None
    standing.watch(KEY, partition)
    standing.settle(KEY)
    assert not standing.due
    return standing


def test_what_is_appended_is_due_and_whoever_waits_hears_when_it_is_enough(partition: Partition) -> None:
    standing, heard = settled(partition), []
    size = len(batch(b"a"))
    standing.heard, standing.lacks = lambda: heard.append(True), 2 * size

    partition.append(batch(b"a"), NOW)
    assert list(standing.due) == [KEY]
    assert heard == []
    partition.append(batch(b"a"), NOW)
    assert heard == [True]


def test_a_follower_had_everything_when_it_asked_last(partition: Partition) -> None:
    """Though nobody has noted it with each fetch: it is not late because nothing was written for long."""
    standing = settled(partition, asked_at=100.0)

    partition.append(batch(b"a"), NOW)
    assert partition.laggards(110.0, 10.0) == set()
    assert partition.laggards(110.1, 10.0) == {FOLLOWER}

    standing.asked_at = 200.0
    partition.append(batch(b"a"), NOW)
    assert partition.laggards(201.0, 10.0) == {FOLLOWER}, "it asks, and has not come any further"


def test_nobody_is_woken_for_a_high_watermark_or_a_new_beginning_which_are_due_all_the_same(
    partition: Partition,
) -> None:
    partition.append(batch(b"a", b"b"), NOW)
    standing, heard = settled(partition), []
    standing.heard, standing.lacks = lambda: heard.append(True), 1

    partition.fetched(FOLLOWER, 2, 0, 6.0)
    assert partition.high_watermark == 2
    assert list(standing.due) == [KEY]
    standing.settle(KEY)
    partition.forget_before(1)
    assert list(standing.due) == [KEY]
    assert heard == []


def test_another_epoch_is_heard_at_once(partition: Partition) -> None:
    standing, heard = settled(partition), []
    standing.heard = lambda: heard.append(True)

    partition.become(partition.state._replace(leader=FOLLOWER, leader_epoch=1))

    assert list(standing.due) == [KEY]
    assert heard == [True]


def test_who_stands_down_watches_nothing_and_has_everything_to_look_at(partition: Partition) -> None:
    standing = settled(partition)

    standing.stand_down()

    assert not partition.watched
    assert list(standing.due) == [KEY]
    standing.settle(KEY)
    assert list(standing.due) == [KEY], "what nobody watches is always due"


def test_a_partition_in_place_of_another_is_watched_instead_of_it(partition: Partition, tmp_path: Path) -> None:
    standing, another = settled(partition), made(tmp_path / "again")

    standing.watch(KEY, another)

    assert not partition.watched
    another.append(batch(b"a"), NOW)
    assert list(standing.due) == [KEY]
    standing.forget(KEY)
    assert not another.watched
    assert not standing.due
