"""A classic group as administrators see it: DescribeGroups."""

from trilogue.broker.groups.classic.group import ClassicGroup
from trilogue.broker.groups.classic.state import State
from trilogue.wire.apis.describe_groups import DescribeGroupsResponse
from trilogue.wire.errors import ErrorCode

DEAD = "Dead"
"""The state of a group that is not there.  Up to DescribeGroups v5 that is all there is to say."""

NOT_FOUND_SINCE = 6

Described = DescribeGroupsResponse.Group


def described(group: ClassicGroup) -> Described:
    """Metadata only when stable: before, it may be of two generations."""
    stable = group.state is State.STABLE
    return Described(
        group_id=group.id,
        group_state=group.state_name,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if stable else "",
        members=[
            Described.Member(
                member_id=each.id,
                group_instance_id=each.instance_id,
                client_id=each.client_id,
                client_host=each.client_host,
                member_metadata=each.protocols.get(group.protocol or "", b"") if stable else b"",
                member_assignment=each.assignment,
            )
            for each in group.members.values()
        ],
    )


def not_found(group_id: str, version: int, message: str | None) -> Described:
    if version < NOT_FOUND_SINCE:
        return undescribed(group_id, ErrorCode.NONE, DEAD)
    answer = undescribed(group_id, ErrorCode.GROUP_ID_NOT_FOUND, DEAD)
    answer.error_message = message
    return answer


def undescribed(group_id: str, code: ErrorCode, state: str = "") -> Described:
    return Described(
        group_id=group_id, error_code=code, group_state=state, protocol_type="", protocol_data="", members=[]
    )
