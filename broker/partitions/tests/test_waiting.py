"""Whoever waits is woken when there is enough, and looks again only at what has changed."""

from functools import partial
from pathlib import Path

import pytest

from trilogue.broker.cluster.image import PartitionState
from trilogue.broker.partitions.partition import Partition
from trilogue.broker.partitions.waiting import Bell
from trilogue.storage.producers import Origin
from trilogue.storage.tests.making import NOW, batch, opened
from trilogue.wire.errors import BrokerError
from trilogue.wire.records import end_transaction_marker

ME = 1
PRODUCER = {"producer_id": 7, "producer_epoch": 0}


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    made = Partition(ME, "t", 0, bytes(16), opened(tmp_path / "t-0"), 0, 1)
    made.become(PartitionState((ME,), ME, 0, (ME,)))
    return made


class Heard(Bell):
    """Knows whether it was."""

    __slots__ = ("_times",)

    def __init__(self, lacks: int = 0) -> None:
        super().__init__(self._hear, lacks)
        self._times = 0

    def _hear(self) -> None:
        self._times += 1


def woken(bell: Heard) -> bool:
    """Since it was asked last."""
    times, bell._times = bell._times, 0
    return times > 0


def test_nobody_is_woken_before_there_is_enough(partition: Partition) -> None:
    one = batch(b"x" * 100)
    bell = Heard(lacks=2 * len(one))
    partition.watch(bell)

    partition.append(one, NOW)
    assert not woken(bell)
    assert [*bell.changed] == [partition]

    partition.append(batch(b"x" * 100), NOW)
    assert woken(bell)


def test_whoever_does_not_watch_any_more_hears_nothing(partition: Partition) -> None:
    bell = Heard()
    partition.watch(bell)
    partition.unwatch(bell)
    partition.append(batch(b"x"), NOW)

    assert not woken(bell)
    assert not bell.changed


@pytest.mark.parametrize("committed_only", [False, True])
def test_a_new_leader_epoch_is_heard_at_once(partition: Partition, committed_only: bool) -> None:
    bell = Heard(lacks=1 << 40)
    partition.watch(bell, committed_only=committed_only)
    partition.become(PartitionState((ME,), ME, 1, (ME,)))

    assert woken(bell)


def test_an_open_transaction_wakes_nobody_who_reads_what_is_committed(partition: Partition) -> None:
    bell, other = Heard(lacks=1), Heard(lacks=1)
    partition.watch(bell, committed_only=True)
    partition.watch(other)

    partition.append(batch(b"one", b"two", **PRODUCER, base_sequence=0, transactional=True), NOW)
    assert not woken(bell)
    assert woken(other)
    assert [*bell.changed] == [partition], "it will be told of the high watermark, when it is told anything"

    partition.append(batch(b"behind it"), NOW)
    assert not woken(bell)

    marker = end_transaction_marker(True, 0, timestamp=NOW, **PRODUCER)
    partition.append(memoryview(marker), NOW, origin=Origin.COORDINATOR)
    assert woken(bell), "however much it lacks: nobody has counted what was held back"


def test_without_transactions_committed_bytes_are_counted_like_all_others(partition: Partition) -> None:
    one = batch(b"x" * 100)
    bell = Heard(lacks=2 * len(one))
    partition.watch(bell, committed_only=True)

    partition.append(one, NOW)
    assert not woken(bell)
    partition.append(batch(b"x" * 100), NOW)
    assert woken(bell)


def test_what_followers_have_to_have_first_is_counted_when_they_have_it(tmp_path: Path) -> None:
    one = batch(b"x" * 100)
    bell, told = Heard(lacks=2 * len(one)), []
    partition = Partition(ME, "t", 0, bytes(16), opened(tmp_path / "t-0"), 0, 1)
    partition.become(PartitionState((ME, 2, 3), ME, 0, (ME, 2, 3)))
    for each in (2, 3):
        partition.fetched(each, 0, 0, 0.0)
    partition.watch(bell)
    for _ in range(2):
        partition.append(batch(b"x" * 100), NOW)
    for end in (2, 1):
        partition.tell_when_committed(end, partial(told.append, end))

    partition.fetched(2, 2, 0, 0.0)
    partition.fetched(3, 1, 0, 0.0)
    assert (woken(bell), told) == (False, [1])
    partition.fetched(3, 2, 0, 0.0)
    assert (woken(bell), told) == (True, [1, 2])


def test_who_waits_for_followers_hears_when_another_broker_leads(tmp_path: Path) -> None:
    told: list[None] = []
    partition = Partition(ME, "t", 0, bytes(16), opened(tmp_path / "t-0"), 0, 1)
    partition.become(PartitionState((ME, 2), ME, 0, (ME, 2)))
    partition.append(batch(b"x"), NOW)
    partition.tell_when_committed(1, partial(told.append, None))
    assert partition.is_safe(1, 0) is False

    partition.become(PartitionState((ME, 2), ME, 1, (ME, 2)))
    assert partition.is_safe(1, 0) is False, "the same leader goes on"
    told.clear()
    partition.become(PartitionState((ME, 2), 2, 2, (ME, 2)))
    assert told == [None]
    with pytest.raises(BrokerError, match="does not lead"):
        partition.is_safe(1, 0)
    partition.become(PartitionState((ME, 2), ME, 3, (ME, 2)))
    with pytest.raises(BrokerError, match="another broker has led"):
        partition.is_safe(1, 0)
    partition.fetched(2, 1, 0, 0.0)
    assert told == [None], "once"
