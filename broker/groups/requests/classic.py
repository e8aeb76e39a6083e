"""JoinGroup, SyncGroup, Heartbeat, LeaveGroup and DescribeGroups.

Members of the classic protocol may be in a group of another kind, which has its own way to answer them.
"""

from collections.abc import Iterator
from typing import Any

from trilogue.broker.groups.classic.describe import described, not_found
from trilogue.broker.groups.classic.group import ClassicGroup, join_refusal, sync_refusal
from trilogue.broker.groups.coordinator import GroupCoordinator, stores
from trilogue.broker.groups.group import Group, of_kind
from trilogue.broker.groups.world import Caller
from trilogue.broker.machines.effects import Effect, Reply, Store, effects
from trilogue.wire.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from trilogue.wire.apis.join_group import JoinGroupRequest
from trilogue.wire.apis.leave_group import LeaveGroupRequest, LeaveGroupResponse
from trilogue.wire.apis.sync_group import SyncGroupRequest
from trilogue.wire.errors import BrokerError, ErrorCode


@effects
def join(
    coordinator: GroupCoordinator, now: float, request: JoinGroupRequest, caller: Caller, fresh_id: str, ticket: Any
) -> Iterator[Effect]:
    group = coordinator.groups.get(request.group_id)
    made: ClassicGroup | None = None
    if group is None or group.gives_way_to(ClassicGroup.kind):
        if request.member_id:
            yield Reply(ticket, join_refusal(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id, caller.version))
            return
        if group is not None:
            yield from stores(group.tombstones())
        group = made = ClassicGroup(request.group_id, coordinator.world)
        coordinator.groups[group.id] = group
    try:
        yield from coordinator.watched(group, group.join(now, request, caller, fresh_id, ticket))
    except BrokerError as error:
        # Only a classic group names the member that it refuses.
        member_id = request.member_id if group.kind == ClassicGroup.kind else ""
        yield Reply(ticket, join_refusal(error.code, member_id, caller.version))
    if made is not None:
        yield Store((made.first_record(),))


def sync(coordinator: GroupCoordinator, now: float, request: SyncGroupRequest, ticket: Any) -> list[Effect]:
    try:
        group = group_of_member(coordinator, request.group_id)
        return coordinator.watched(group, group.sync(now, request, ticket))
    except BrokerError as error:
        return [Reply(ticket, sync_refusal(error.code))]


def heartbeat(coordinator: GroupCoordinator, now: float, request: HeartbeatRequest, ticket: Any) -> list[Effect]:
    try:
        group = group_of_member(coordinator, request.group_id)
        return coordinator.watched(group, group.heartbeat(now, request, ticket))
    except BrokerError as error:
        return [Reply(ticket, HeartbeatResponse(error_code=error.code))]


def leave(coordinator: GroupCoordinator, now: float, request: LeaveGroupRequest, ticket: Any) -> list[Effect]:
    try:
        group = group_of_member(coordinator, request.group_id)
        return coordinator.watched(group, group.leave(now, request, ticket))
    except BrokerError as error:
        refused = [
            LeaveGroupResponse.Member(
                member_id=each.member_id, group_instance_id=each.group_instance_id, error_code=error.code
            )
            for each in request.members
        ]
        return [Reply(ticket, LeaveGroupResponse(members=refused))]


def group_of_member(coordinator: GroupCoordinator, group_id: str) -> Group:
    """Of somebody who takes itself for a member: where there is no group, it is none."""
    group = coordinator.groups.get(group_id)
    if group is None:
        raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID)
    return group


def describe(coordinator: GroupCoordinator, now: float, group_id: str, caller: Caller, ticket: Any) -> list[Effect]:
    try:
        group = of_kind(coordinator.find(group_id), ClassicGroup)
        return [Reply(ticket, described(group))]
    except BrokerError as error:
        return [Reply(ticket, not_found(group_id, caller.version, error.message))]
