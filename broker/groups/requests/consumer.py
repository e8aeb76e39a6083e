"""ConsumerGroupHeartbeat and ConsumerGroupDescribe (KIP-848)."""

from collections.abc import Sequence
from typing import Any

from trilogue.broker.groups.consumer.describe import described, undescribed
from trilogue.broker.groups.consumer.group import ConsumerGroup
from trilogue.broker.groups.consumer.heartbeat import JOINS, check, heartbeat_refusal
from trilogue.broker.groups.consumer.migration import upgrade
from trilogue.broker.groups.coordinator import GroupCoordinator
from trilogue.broker.groups.group import of_kind
from trilogue.broker.groups.world import Caller
from trilogue.broker.machines.effects import Effect, Put, Reply, Store
from trilogue.wire.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from trilogue.wire.errors import BrokerError, ErrorCode


def heartbeat(
    coordinator: GroupCoordinator,
    now: float,
    request: ConsumerGroupHeartbeatRequest,
    caller: Caller,
    fresh_id: str,
    ticket: Any,
) -> list[Effect]:
    try:
        check(request, caller.version, coordinator.world.config["group.consumer.assignors"])
        group, puts = group_for(coordinator, now, request)
        todo = group.consumer_heartbeat(now, request, caller, fresh_id, ticket)
    except BrokerError as error:
        return [Reply(ticket, heartbeat_refusal(error.code, error.message or error.code.sentence))]
    former = coordinator.groups.get(group.id)
    if former is group:
        return coordinator.watched(group, todo)
    coordinator.groups[group.id] = group
    turned_away = former.turn_away() if former is not None else []
    return [*turned_away, *coordinator.watched(group, preceded(puts, todo))]


def group_for(
    coordinator: GroupCoordinator, now: float, request: ConsumerGroupHeartbeatRequest
) -> tuple[ConsumerGroup, list[Put]]:
    """The group, made if somebody joins; and what has to be stored first if there was one of another kind."""
    group_id, joins = request.group_id, request.member_epoch == JOINS
    group = coordinator.groups.get(group_id)
    if group is None and not joins:
        raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
    if group is not None and (not joins or group.kind == ConsumerGroup.kind):
        return of_kind(group, ConsumerGroup), []
    made = ConsumerGroup(group_id, coordinator.world)
    if group is None:
        return made, []
    if group.gives_way_to(made.kind):
        return made, group.tombstones()
    puts = upgrade(group, made, coordinator.world)
    for put in puts:
        made.replay(put, live=True)
    made.loaded(now)
    return made, puts


def preceded(puts: Sequence[Put], todo: Sequence[Effect]) -> list[Effect]:
    """These first, and together with what is stored next: a crash must not come in between."""
    if not puts:
        return list(todo)
    at = next(number for number, effect in enumerate(todo) if isinstance(effect, Store))
    following = todo[at]
    assert isinstance(following, Store)
    return [*todo[:at], Store((*puts, *following.records)), *todo[at + 1 :]]


def describe(coordinator: GroupCoordinator, now: float, group_id: str, ticket: Any) -> list[Effect]:
    try:
        group = of_kind(coordinator.find(group_id), ConsumerGroup)
        return [Reply(ticket, described(group, coordinator.world.image))]
    except BrokerError as error:
        return [Reply(ticket, undescribed(group_id, error.code, error.message))]
