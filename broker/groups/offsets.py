"""The offsets that groups have committed, and those that wait for a transaction to end."""

from collections.abc import Iterator
from typing import NamedTuple

from trilogue.broker.machines.effects import Put
from trilogue.wire.internal.offsets import OffsetCommitKey, OffsetCommitValue
from trilogue.wire.schema import ZERO_UUID

RECORD_VERSION = 4
EXPIRING_RECORD_VERSION = 1
"""The only one that knows when an offset is to be forgotten, which clients could say up to OffsetCommit v4."""

NEVER_MS = -1

Place = tuple[str, int]
"""Topic and partition."""


class Committed(NamedTuple):
    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    expire_ms: int = NEVER_MS
    topic_id: bytes = ZERO_UUID
    recorded_at: int = -1
    """Where in the log it stands: of two, the later counts."""

    def put(self, group_id: str, place: Place) -> Put:
        value = OffsetCommitValue(
            offset=self.offset,
            leader_epoch=self.leader_epoch,
            metadata=self.metadata,
            commit_timestamp=self.commit_ms,
            expire_timestamp=self.expire_ms,
            topic_id=self.topic_id,
        )
        version = RECORD_VERSION if self.expire_ms == NEVER_MS else EXPIRING_RECORD_VERSION
        return Put(key_of(group_id, place), value, version)

    def is_of(self, topic_id: bytes) -> bool:
        """Not of an earlier topic of that name, as far as both sides say."""
        return ZERO_UUID in (topic_id, self.topic_id) or topic_id == self.topic_id


def key_of(group_id: str, place: Place) -> OffsetCommitKey:
    return OffsetCommitKey(group=group_id, topic=place[0], partition=place[1])


def tombstone(group_id: str, place: Place) -> Put:
    return Put(key_of(group_id, place), None)


class Offsets:
    """Of all groups of one coordinator.  Written by `replay` and `replay_end` only."""

    def __init__(self) -> None:
        self._by_group: dict[str, dict[Place, Committed]] = {}
        self._pending: dict[int, dict[tuple[str, Place], Committed]] = {}
        """By producer, whose transaction has not ended."""

    # -- asking --------------------------------------------------------------------------------

    def of(self, group_id: str) -> dict[Place, Committed]:
        return self._by_group.get(group_id, {})

    def is_pending(self, group_id: str, place: Place) -> bool:
        return any((group_id, place) in waiting for waiting in self._pending.values())

    def has_pending(self, group_id: str) -> bool:
        return any(group == group_id for waiting in self._pending.values() for group, _ in waiting)

    def places(self, group_id: str) -> set[Place]:
        """Everything there is of a group, committed or pending."""
        pending = {place for waiting in self._pending.values() for group, place in waiting if group == group_id}
        return pending | set(self.of(group_id))

    def tombstones(self, topics: set[str]) -> Iterator[Put]:
        """For everything about these topics."""
        found = {(group, place) for group, places in self._by_group.items() for place in places if place[0] in topics}
        found |= {key for waiting in self._pending.values() for key in waiting if key[1][0] in topics}
        for group, place in sorted(found):
            yield tombstone(group, place)

    # -- the log -------------------------------------------------------------------------------

    def replay(self, key: OffsetCommitKey, value: OffsetCommitValue | None, offset: int, producer_id: int) -> None:
        place = (key.topic, key.partition)
        if value is None:
            self._forget(key.group, place)
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
            self._pending.setdefault(producer_id, {})[key.group, place] = committed
        else:
            self._by_group.setdefault(key.group, {})[place] = committed

    def replay_end(self, producer_id: int, committed: bool) -> None:
        for (group_id, place), pending in self._pending.pop(producer_id, {}).items():
            known = self.of(group_id).get(place)
            # A plain commit may have come after ours: compaction keeps the later record, so the later counts.
            if committed and (known is None or known.recorded_at < pending.recorded_at):
                self._by_group.setdefault(group_id, {})[place] = pending

    def _forget(self, group_id: str, place: Place) -> None:
        places = self._by_group.get(group_id)
        if places is not None:
            places.pop(place, None)
            if not places:
                del self._by_group[group_id]
        for waiting in self._pending.values():
            waiting.pop((group_id, place), None)
