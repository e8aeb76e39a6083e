"""DeleteGroups: remove groups without members, and what they have committed.

v3, with messages, is of Kafka 4.4.
"""

from functools import partial

from trilogue.broker.broker import Broker
from trilogue.broker.coordinators.ask_group import ask_group
from trilogue.broker.groups.coordinator import GroupCoordinator
from trilogue.broker.requests.later import Later, together
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import Answer, handles
from trilogue.broker.security.operations import Operation
from trilogue.wire.apis.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from trilogue.wire.errors import ErrorCode

Result = DeleteGroupsResponse.Result


@handles(DeleteGroupsRequest, "0-2")
def delete_groups(broker: Broker, request: DeleteGroupsRequest, peer: Peer) -> Answer:
    def delete(group_id: str) -> Result | Later[Result]:
        return ask_group(
            broker,
            peer,
            Operation.DELETE,
            group_id,
            GroupCoordinator.delete_group,
            group_id,
            refuse=partial(refusal, group_id),
        )

    def shape(results: list[Result]) -> DeleteGroupsResponse:
        return DeleteGroupsResponse(results=results)

    return broker.turns.each(dict.fromkeys(request.groups_names), delete, lambda results: together(results, shape))


def refusal(group_id: str, code: ErrorCode) -> Result:
    return Result(group_id=group_id, error_code=code)
