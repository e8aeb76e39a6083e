"""DeleteGroups: remove groups without members, and what they have committed.

v3, with messages, is of Kafka 4.4.
"""

from functools import partial

from trilogue.broker.broker import Broker
from trilogue.broker.coordinators.ask_group import ask_group
from trilogue.broker.groups.coordinator import GroupCoordinator
from trilogue.broker.requests.later import together
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import Answer, handles
from trilogue.broker.security.operations import Operation
from trilogue.wire.apis.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from trilogue.wire.errors import ErrorCode

Result = DeleteGroupsResponse.Result


@handles(DeleteGroupsRequest, "0-2")
def delete_groups(broker: Broker, request: DeleteGroupsRequest, peer: Peer) -> Answer:
    results = [
        ask_group(
            broker,
            peer,
            Operation.DELETE,
            group_id,
            GroupCoordinator.delete_group,
            group_id,
            refuse=partial(refusal, group_id),
        )
        for group_id in dict.fromkeys(request.groups_names)
    ]
    return together(results, lambda results: DeleteGroupsResponse(results=results))


def refusal(group_id: str, code: ErrorCode) -> Result:
    return Result(group_id=group_id, error_code=code)
