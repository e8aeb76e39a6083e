"""DescribeGroups: state, members and assignments of classic groups.

v3+: what the asker may do with them.  v4+: the names of static members.  v6+: a group that is not there, or is of
another kind, is GROUP_ID_NOT_FOUND; before, it was Dead.
"""

from functools import partial

from trilogue.broker.broker import Broker
from trilogue.broker.coordinators.ask_group import ask_group, caller
from trilogue.broker.groups.classic.describe import undescribed
from trilogue.broker.groups.requests import classic
from trilogue.broker.requests.later import Later, together
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import Answer, handles
from trilogue.broker.security.operations import OF_GROUPS, Operation
from trilogue.wire.apis.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from trilogue.wire.errors import ErrorCode


@handles(DescribeGroupsRequest)
def describe_groups(broker: Broker, request: DescribeGroupsRequest, peer: Peer) -> Answer:
    def shape(groups: list[DescribeGroupsResponse.Group]) -> DescribeGroupsResponse:
        for each in groups:
            if request.include_authorized_operations and each.error_code == ErrorCode.NONE:
                each.authorized_operations = OF_GROUPS
        return DescribeGroupsResponse(groups=groups)

    def describe(group_id: str) -> DescribeGroupsResponse.Group | Later[DescribeGroupsResponse.Group]:
        refuse = partial(undescribed, group_id)
        asks = (broker, peer, Operation.DESCRIBE, group_id)
        return ask_group(*asks, classic.describe, group_id, caller(peer), refuse=refuse)

    return broker.turns.each(request.groups, describe, lambda groups: together(groups, shape))
