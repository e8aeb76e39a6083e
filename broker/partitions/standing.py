"""What a follower's session watches over, from one fetch to the next.

A follower asks for thousands of partitions twice a second, and mostly nothing has happened in them.  So a fetch looks
at what is `due`, and at nothing else: what it says anew itself, what has changed since, and what was not settled.
"""

from math import inf

from trilogue.broker.partitions.partition import Partition
from trilogue.broker.partitions.waiting import Bell
from trilogue.broker.requests.later import nobody

Key = tuple[str | bytes, int]
"""A partition as the reader names it: TopicPartition, or TopicIdPartition from Fetch v13 on."""


class Standing(Bell):
    """Rung by partitions whether a fetch waits or not; only if one does, somebody hears it."""

    __slots__ = ("_keys", "_partitions", "asked_at", "due", "node_id")

    def __init__(self, node_id: int) -> None:
        super().__init__(nobody)
        self.node_id = node_id
        self.asked_at = -inf
        """When the follower asked last.  Of what is not due it had everything then."""
        self.due: dict[Key, None] = {}
        """In the order in which it is looked at."""
        self._partitions: dict[Key, Partition] = {}
        self._keys: dict[Partition, Key] = {}

    def watch(self, key: Key, partition: Partition) -> None:
        before = self._partitions.get(key)
        if before is not partition:
            if before is not None:
                self._leave(before)
            self._partitions[key], self._keys[partition] = partition, key
            partition.watch(self, replica=True)

    def settle(self, key: Key) -> None:
        """It is not due before something happens.  Of what is not watched nobody would hear."""
        if key in self._partitions:
            self.due.pop(key, None)

    def last(self, key: Key) -> None:
        """It was given something, and others come first the next time."""
        self.due.pop(key, None)
        self.due[key] = None

    def forget(self, key: Key) -> None:
        self.due.pop(key, None)
        partition = self._partitions.pop(key, None)
        if partition is not None:
            self._leave(partition)

    def stand_down(self) -> None:
        """Watch nothing: if there is another fetch all the same, everything is due."""
        for key, partition in self._partitions.items():
            self.due[key] = None
            self._leave(partition)
        self._partitions.clear()

    def _leave(self, partition: Partition) -> None:
        partition.unwatch(self)
        del self._keys[partition]

    # -- what partitions say -------------------------------------------------------------------

    def ring(self, partition: Partition) -> None:
        self.note(partition)
        self.heard()

    def note(self, partition: Partition) -> None:
        self.due[self._keys[partition]] = None

    def grow(self, partition: Partition, size: int) -> None:
        key = self._keys[partition]
        if key not in self.due:
            self.due[key] = None
            partition.had_everything(self.node_id, self.asked_at)
        self.lacks -= size
        if self.lacks <= 0:
            self.heard()
