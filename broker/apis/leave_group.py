"""LeaveGroup: members leave a classic group, by themselves or put out by an administrator.

v3+: several at once, each with a verdict of its own; static members by their name.  Before, the one verdict is the
answer's.  v5+: a reason, which nobody reads.
"""

from trilogue.broker.broker import Broker
from trilogue.broker.coordinators.ask_group import ask_group
from trilogue.broker.groups.requests import classic
from trilogue.broker.requests.later import then
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import Answer, handles
from trilogue.broker.security.operations import Operation
from trilogue.wire.apis.leave_group import LeaveGroupRequest, LeaveGroupResponse
from trilogue.wire.errors import ErrorCode

SEVERAL_SINCE = 3


@handles(LeaveGroupRequest)
def leave_group(broker: Broker, request: LeaveGroupRequest, peer: Peer) -> Answer:
    if not request.group_id:
        return refusal(ErrorCode.INVALID_GROUP_ID)
    if peer.version >= SEVERAL_SINCE:
        return ask_group(broker, peer, Operation.READ, request.group_id, classic.leave, request, refuse=refusal)
    request.members = [LeaveGroupRequest.Member(member_id=request.member_id)]
    answer = ask_group(broker, peer, Operation.READ, request.group_id, classic.leave, request, refuse=refusal)
    return then(answer, of_one)


def of_one(answer: LeaveGroupResponse) -> LeaveGroupResponse:
    if answer.members:
        answer.error_code = answer.members[0].error_code
    return answer


def refusal(code: ErrorCode) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=code, members=[])
