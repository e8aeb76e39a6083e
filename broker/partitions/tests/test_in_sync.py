"""Who is behind leaves the ISR; but not because it was us who were away."""

from pathlib import Path

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from trilogue.broker.cluster.image import PartitionState
from trilogue.broker.partitions.in_sync import InSync
from trilogue.broker.partitions.partition import Partition
from trilogue.storage.tests.making import NOW, batch, opened

LAG_SECONDS = 10.0


class Noted(InSync):
    """Notes what it would propose, and when."""

    def __init__(self, partition: Partition) -> None:
        self._replicas, self._lag_seconds = [partition], lambda: LAG_SECONDS  # type: ignore[assignment]
        self.noted: list[tuple[float, tuple[int, ...]]] = []

    def _propose(self, partition: Partition, isr: tuple[int, ...]) -> None:
        self.noted.append((trio.current_time(), isr))


def test_who_has_not_kept_up_leaves_unless_time_has_made_a_leap(tmp_path: Path):
    partition = Partition(1, "t", 0, bytes(16), opened(tmp_path / "t-0"), 0, min_isr=1)
    partition.become(PartitionState((1, 2), 1, 0, (1, 2), isr_epochs=(1, 2)))
    in_sync, clock = Noted(partition), MockClock()

    async def main() -> None:
        begun = trio.current_time()

        def fetched() -> None:
            partition.fetched(2, partition.log.end_offset, trio.current_time())
            partition.append(batch(b"x"), NOW, acks=1)  # which it does not have yet

        async with trio.open_nursery() as nursery:
            nursery.start_soon(in_sync.run)
            await wait_all_tasks_blocked()
            fetched()
            clock.jump(3 * LAG_SECONDS)  # nobody could be heard meanwhile
            await wait_all_tasks_blocked()
            assert in_sync.noted == []
            fetched()
            for _ in range(4):
                clock.jump(LAG_SECONDS / 2)
                await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        assert [(at - begun, isr) for at, isr in in_sync.noted] == [(4.5 * LAG_SECONDS, (1,)), (5 * LAG_SECONDS, (1,))]

    trio.run(main, clock=clock)
