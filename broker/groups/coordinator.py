"""All groups that hash to one partition of __consumer_offsets: finding them, their time, their log.

What is stored is taken over by `replay`, which is also how everything is loaded.  Only a group that is new, or of
another kind than before, is put here when that is decided; its records follow in the same step.  What members and
administrators ask for is in `requests/`.
"""

from collections.abc import Collection, Iterator, Sequence
from math import inf
from typing import Any

from trilogue.broker.groups.classic.group import ClassicGroup
from trilogue.broker.groups.consumer.group import ConsumerGroup
from trilogue.broker.groups.group import Group
from trilogue.broker.groups.offsets import NEVER_MS, Committed, Offsets, tombstone
from trilogue.broker.groups.world import World
from trilogue.broker.machines.deadlines import Deadlines
from trilogue.broker.machines.effects import Effect, Put, Reply, Store, effects
from trilogue.wire.apis.delete_groups import DeleteGroupsResponse
from trilogue.wire.apis.list_groups import ListGroupsResponse
from trilogue.wire.errors import BrokerError, ErrorCode
from trilogue.wire.internal.offsets import GroupMetadataKey, LegacyOffsetCommitKey, OffsetCommitKey
from trilogue.wire.schema import Key

RECORDS_PER_STORE = 1000
"""What is written in one batch at most: it must stay well below what a topic takes."""

KINDS: tuple[type[Group], ...] = (ClassicGroup, ConsumerGroup)

KIND_OF: dict[type[Key], type[Group]] = {key: kind for kind in KINDS for key in kind.keys}
"""Whose a record is."""


class GroupCoordinator:
    """See `effects.Machine`."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.groups: dict[str, Group] = {}
        """By id."""
        self.offsets = Offsets()
        self._live = False
        """Whether records that are replayed are our own, of just now."""
        self._deadlines = Deadlines()
        self._look_at = inf
        """When to look for offsets whose retention is over."""

    def find(self, group_id: str) -> Group:
        group = self.groups.get(group_id)
        if group is None:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group

    # -- time ----------------------------------------------------------------------------------

    @property
    def deadline(self) -> float:
        return min(self._look_at, self._deadlines.earliest)

    @effects
    def tick(self, now: float) -> Iterator[Effect]:
        for group_id in self._deadlines.due(now):
            if group := self.groups.get(group_id):
                yield from self.watched(group, group.tick(now))
        if self._look_at <= now:
            self._look_at = now + self.world.config["offsets.retention.check.interval.ms"] / 1000
            yield from self._expire(self.world.clock())

    def watched(self, group: Group, todo: list[Effect]) -> list[Effect]:
        """Whatever has been done with a group may have given it an earlier deadline, or made it another group.  Later
        deadlines are found by ticks."""
        if group.successor is not None:
            group = self.groups[group.id] = group.successor
        self._deadlines.advance(group.id, group.deadline)
        return todo

    def _expire(self, now_ms: int) -> Iterator[Effect]:
        """Forget offsets whose retention is over, and groups of which nothing is left."""
        retention_ms = self.world.config["offsets.retention.minutes"] * 60_000
        for group in list(self.groups.values()):
            offsets = self.offsets.of(group.id)
            gone = [
                partition
                for partition, committed in offsets.items()
                if not group.is_subscribed_to(partition[0])
                and is_expired(group, committed, now_ms, retention_ms)
                and not self.offsets.is_pending(group.id, partition)
            ]
            puts = [tombstone(group.id, partition) for partition in gone]
            if len(gone) == len(offsets) and group.is_empty and not self.offsets.has_pending(group.id):
                puts += group.tombstones()
            yield from stores(puts)

    # -- administration ------------------------------------------------------------------------

    def list_groups(self, states: Collection[str], kinds: Collection[str]) -> list[ListGroupsResponse.Group]:
        """Those in one of the states and of one of the kinds, in lower case; all, if none is named."""
        return [
            ListGroupsResponse.Group(
                group_id=each.id,
                protocol_type=each.protocol_type or "",
                group_state=each.state_name,
                group_type=each.kind,
            )
            for each in self.groups.values()
            if (not states or each.state_name.lower() in states) and (not kinds or each.kind in kinds)
        ]

    @effects
    def delete_group(self, now: float, group_id: str, ticket: Any) -> Iterator[Effect]:
        answer = DeleteGroupsResponse.Result(group_id=group_id)
        try:
            group = self.find(group_id)
            group.check_delete()
        except BrokerError as error:
            answer.error_code = error.code
            yield Reply(ticket, answer)
            return
        puts = [tombstone(group_id, partition) for partition in sorted(self.offsets.partitions(group_id))]
        yield from stores([*puts, *group.tombstones()])
        yield Reply(ticket, answer)

    @effects
    def forget_topics(self, now: float, gone: set[str]) -> Iterator[Effect]:
        """Topics are gone.  What was committed for them says nothing about their namesakes to come."""
        yield from stores(list(self.offsets.tombstones(gone)))

    # -- the log -------------------------------------------------------------------------------

    def replay(self, put: Put, offset: int, producer_id: int) -> None:
        match put.key:
            case OffsetCommitKey() | LegacyOffsetCommitKey() as key:
                if put.value is not None and key.group not in self.groups:
                    self.groups[key.group] = ClassicGroup(key.group, self.world)  # a simple consumer's
                self.offsets.replay(key, put.value, offset, producer_id)  # type: ignore[arg-type]
            case key if kind := KIND_OF.get(type(key)):
                self._replay_group(kind, group_id_in(key), put)

    def _replay_group(self, kind: type[Group], group_id: str, put: Put) -> None:
        known = self.groups.get(group_id)
        group = known if known is not None and known.kind == kind.kind else None
        if put.value is None:
            if group is None:
                return  # it has made way for a group of another kind already
            if type(put.key) is kind.keys[0]:
                del self.groups[group_id]
                return
        if group is not None:
            group.replay(put, live=self._live)
        else:
            made = self.groups[group_id] = kind(group_id, self.world)
            made.replay(put, live=False)

    def replay_end(self, producer_id: int, committed: bool) -> None:
        self.offsets.replay_end(producer_id, committed)

    @effects
    def loaded(self, now: float) -> Iterator[Effect]:
        self._live = True
        self._look_at = now + self.world.config["offsets.retention.check.interval.ms"] / 1000
        for group in list(self.groups.values()):
            yield from self.watched(group, group.loaded(now))


def group_id_in(key: Key) -> str:
    """The classic record calls it otherwise than all that came later."""
    group_id: str = key.group if isinstance(key, GroupMetadataKey) else key.group_id  # type: ignore[attr-defined]
    return group_id


def stores(puts: Sequence[Put], producer_id: int = -1, producer_epoch: int = -1) -> Iterator[Store]:
    for at in range(0, len(puts), RECORDS_PER_STORE):
        yield Store(tuple(puts[at : at + RECORDS_PER_STORE]), producer_id, producer_epoch)


def is_expired(group: Group, committed: Committed, now_ms: int, retention_ms: int) -> bool:
    since_ms = group.idle_since_ms(committed)
    if since_ms is None:
        return False
    if committed.expire_ms != NEVER_MS:
        return now_ms >= committed.expire_ms
    return now_ms - since_ms >= retention_ms
