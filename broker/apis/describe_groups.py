"""DescribeGroups: state, members and assignments of classic groups.

v3+: what the asker may do with them.  v4+: the names of static members.  v6+: a group that is not there, or is of
another kind, is GROUP_ID_NOT_FOUND; before, it was Dead.
"""

from functools import partial

from trilogue.broker.api import Answer, handles
from trilogue.broker.asking import ask_group, caller, together
from trilogue.broker.connection import Peer
from trilogue.broker.groups.coordinator import GroupCoordinator
from trilogue.broker.groups.describing import undescribed
from trilogue.broker.server import Broker
from trilogue.broker.topics import ALL_GROUP_OPERATIONS
from trilogue.wire.apis.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from trilogue.wire.errors import ErrorCode


@handles(DescribeGroupsRequest)
def describe_groups(broker: Broker, request: DescribeGroupsRequest, peer: Peer) -> Answer:
    def shape(groups: list[DescribeGroupsResponse.Group]) -> DescribeGroupsResponse:
        for each in groups:
            if request.include_authorized_operations and each.error_code == ErrorCode.NONE:
                each.authorized_operations = ALL_GROUP_OPERATIONS
        return DescribeGroupsResponse(groups=groups)

    return together(
        [
            ask_group(
                broker,
                group_id,
                GroupCoordinator.describe,
                group_id,
                caller(peer),
                refuse=partial(undescribed, group_id),
            )
            for group_id in request.groups
        ],
        shape,
    )
