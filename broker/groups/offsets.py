"""The offsets that groups have committed, and those that wait for a transaction to end."""

from collections.abc import Iterator
from typing import NamedTuple

from trilogue.broker.machines.effects import Put
from trilogue.broker.names import TopicPartition
from trilogue.wire.internal.offsets import OffsetCommitKey, OffsetCommitValue
from trilogue.wire.schema import ZERO_UUID

RECORD_VERSION = 4
EXPIRING_RECORD_VERSION = 1
"""The only one that knows when an offset is to be forgotten, which clients could say up to OffsetCommit v4."""

NEVER_MS = -1
LATEST_MS = 2**63 - 1


class Committed(NamedTuple):
    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    expire_ms: int = NEVER_MS
    topic_id: bytes = ZERO_UUID
    recorded_at: int = -1
    """Where in the log it stands: of two, the later counts."""

    def put(self, group_id: str, partition: TopicPartition) -> Put:
        value = OffsetCommitValue(
            offset=self.offset,
            leader_epoch=self.leader_epoch,
            metadata=self.metadata,
            commit_timestamp=self.commit_ms,
            expire_timestamp=self.expire_ms,
            topic_id=self.topic_id,
        )
        version = RECORD_VERSION if self.expire_ms == NEVER_MS else EXPIRING_RECORD_VERSION
        return Put(key_of(group_id, partition), value, version)

    def is_of(self, topic_id: bytes) -> bool:
        """Not of an earlier topic of that name, as far as both sides say."""
        return ZERO_UUID in (topic_id, self.topic_id) or topic_id == self.topic_id


def key_of(group_id: str, partition: TopicPartition) -> OffsetCommitKey:
    return OffsetCommitKey(group=group_id, topic=partition[0], partition=partition[1])


def tombstone(group_id: str, partition: TopicPartition) -> Put:
    return Put(key_of(group_id, partition), None)


class Offsets:
    """Of all groups of one coordinator.  Written by `replay` and `replay_end` only."""

    def __init__(self) -> None:
        self._by_group: dict[str, dict[TopicPartition, Committed]] = {}
        self._pending: dict[int, dict[tuple[str, TopicPartition], Committed]] = {}
        """By producer, whose transaction has not ended."""

    # -- asking --------------------------------------------------------------------------------

    def of(self, group_id: str) -> dict[TopicPartition, Committed]:
        return self._by_group.get(group_id, {})

    def is_pending(self, group_id: str, partition: TopicPartition) -> bool:
        return any((group_id, partition) in waiting for waiting in self._pending.values())

    def has_pending(self, group_id: str) -> bool:
        return any(group == group_id for waiting in self._pending.values() for group, _ in waiting)

    def partitions(self, group_id: str) -> set[TopicPartition]:
        """Everything there is of a group, committed or pending."""
        pending = {partition for waiting in self._pending.values() for group, partition in waiting if group == group_id}
        return pending | set(self.of(group_id))

    def tombstones(self, topics: set[str]) -> Iterator[Put]:
        """For everything about these topics."""
        found = {
            (group, partition)
            for group, partitions in self._by_group.items()
            for partition in partitions
            if partition[0] in topics
        }
        found |= {key for waiting in self._pending.values() for key in waiting if key[1][0] in topics}
        for group, partition in sorted(found):
            yield tombstone(group, partition)

    # -- the log -------------------------------------------------------------------------------

    def replay(self, key: OffsetCommitKey, value: OffsetCommitValue | None, offset: int, producer_id: int) -> None:
        partition = (key.topic, key.partition)
        if value is None:
            self._forget(key.group, partition)
            return
        committed = Committed(
            value.offset,
            value.leader_epoch,
            value.metadata,
            value.commit_timestamp,
            value.expire_timestamp,
            value.topic_id,
            offset,
        )
        if producer_id >= 0:
            self._pending.setdefault(producer_id, {})[key.group, partition] = committed
        else:
            self._by_group.setdefault(key.group, {})[partition] = committed

    def replay_end(self, producer_id: int, committed: bool) -> None:
        for (group_id, partition), pending in self._pending.pop(producer_id, {}).items():
            known = self.of(group_id).get(partition)
            # A plain commit may have come after ours: compaction keeps the later record, so the later counts.
            if committed and (known is None or known.recorded_at < pending.recorded_at):
                self._by_group.setdefault(group_id, {})[partition] = pending

    def _forget(self, group_id: str, partition: TopicPartition) -> None:
        known = self._by_group.get(group_id)
        if known is not None:
            known.pop(partition, None)
            if not known:
                del self._by_group[group_id]
        for waiting in self._pending.values():
            waiting.pop((group_id, partition), None)
