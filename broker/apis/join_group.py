"""JoinGroup: become a member of a classic group, or stay one through a rebalance.

Answered when the next generation begins.  v1+: a rebalance timeout of its own; before, the session's.  v4+: whoever
has no id yet is given one and told to come back with it, so that members that gave up do not linger.  v5+: static
members.  v9+: a static leader that returns learns who is here without having to assign.
"""

from trilogue.broker.broker import Broker
from trilogue.broker.coordinators.ask_group import ask_group, caller
from trilogue.broker.groups.classic.group import join_refusal
from trilogue.broker.groups.requests import classic
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import Answer, handles
from trilogue.broker.security.operations import Operation
from trilogue.wire.apis.join_group import JoinGroupRequest, JoinGroupResponse
from trilogue.wire.errors import ErrorCode


@handles(JoinGroupRequest)
def join_group(broker: Broker, request: JoinGroupRequest, peer: Peer) -> Answer:
    version = peer.version

    def refuse(code: ErrorCode) -> JoinGroupResponse:
        return join_refusal(code, request.member_id, version)

    if not request.group_id:
        return refuse(ErrorCode.INVALID_GROUP_ID)
    config = broker.config
    shortest, longest = config["group.min.session.timeout.ms"], config["group.max.session.timeout.ms"]
    if not shortest <= request.session_timeout_ms <= longest:
        return refuse(ErrorCode.INVALID_SESSION_TIMEOUT)
    if version == 0:
        request.rebalance_timeout_ms = request.session_timeout_ms
    fresh = broker.fresh_id()
    return ask_group(
        broker, peer, Operation.READ, request.group_id, classic.join, request, caller(peer), fresh, refuse=refuse
    )
