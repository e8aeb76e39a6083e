"""Reads a topic from the beginning, and goes on at its end."""

from typing import TYPE_CHECKING

from trilogue.client.reader import Reader as Reading
from trilogue.testing.simulation.clients.party import TROUBLES, Party
from trilogue.wire.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from trilogue.testing.simulation.cluster import Cluster

WAIT_SECONDS = 0.5


class Reader(Party):
    def __init__(self, cluster: "Cluster", name: str, topic: str, partitions: int, *, committed: bool) -> None:
        super().__init__(cluster, name)
        self._topic, self._partitions, self._committed = topic, partitions, committed
        self.positions: dict[int, int] = {}

    async def live(self) -> None:
        """A life reads from the beginning: what another has seen has to be there for it, too."""
        reading = Reading(
            self.client, self._topic, dict.fromkeys(range(self._partitions), 0), committed_only=self._committed
        )
        self.positions = reading.positions
        while not self.ending.is_set():
            try:
                found = await reading.poll(WAIT_SECONDS)
            except TROUBLES as error:
                if isinstance(error, BrokerError) and error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    self.cluster.blame("gone", f"{self.name} has read up to {reading.positions}, and that is not there")
                    return
                await self.rest(error)
                continue
            seen: dict[int, list[tuple[int, str]]] = {}
            for index, record in found:
                seen.setdefault(index, []).append((record.offset, bytes(record.value or b"").decode()))
            for index, records in seen.items():
                self.history.add(
                    self.name,
                    "read",
                    topic=self._topic,
                    partition=index,
                    life=self.lives,
                    isolation="committed" if self._committed else "uncommitted",
                    found=records,
                )
