"""ListGroups: the groups that this broker looks after.

While some of them are being loaded there is no answer.  v4+: by state, v5+: by kind, both in any case of letters.
"""

from trilogue.broker.broker import Broker
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.wire.apis.list_groups import ListGroupsRequest, ListGroupsResponse
from trilogue.wire.errors import ErrorCode


@handles(ListGroupsRequest)
def list_groups(broker: Broker, request: ListGroupsRequest, peer: Peer) -> ListGroupsResponse:
    states = {each.strip().lower() for each in request.states_filter}
    kinds = {each.lower() for each in request.types_filter}
    found: list[ListGroupsResponse.Group] = []
    for shard in broker.groups.shards():
        if not shard.active:
            return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, groups=[])
        found += shard.machine.list_groups(states, kinds)
    return ListGroupsResponse(groups=found)
