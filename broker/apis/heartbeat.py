"""Heartbeat: a member of a classic group says that it is alive, and hears whether it has to join again.

While the group is being loaded it is told that all is well: its session begins when that is done.  v3+: static members.
"""

from trilogue.broker.broker import Broker
from trilogue.broker.coordinators.ask_group import ask_group
from trilogue.broker.groups.requests import classic
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import Answer, handles
from trilogue.broker.security.operations import Operation
from trilogue.wire.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from trilogue.wire.errors import ErrorCode


@handles(HeartbeatRequest)
def heartbeat(broker: Broker, request: HeartbeatRequest, peer: Peer) -> Answer:
    if not request.group_id:
        return refusal(ErrorCode.INVALID_GROUP_ID)
    return ask_group(broker, peer, Operation.READ, request.group_id, classic.heartbeat, request, refuse=refusal)


def refusal(code: ErrorCode) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=ErrorCode.NONE if code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else code)
