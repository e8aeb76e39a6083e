"""SyncGroup: the leader of a classic group hands in the assignment, and everybody hears their part of it.

Answered when the leader's has come and is stored.  v3+: static members.  v5+: the protocol has to be named.
"""

from trilogue.broker.broker import Broker
from trilogue.broker.coordinators.ask_group import ask_group
from trilogue.broker.groups.classic.group import sync_refusal
from trilogue.broker.groups.requests import classic
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import Answer, handles
from trilogue.broker.security.operations import Operation
from trilogue.wire.apis.sync_group import SyncGroupRequest
from trilogue.wire.errors import ErrorCode

NAMES_PROTOCOL_SINCE = 5


@handles(SyncGroupRequest)
def sync_group(broker: Broker, request: SyncGroupRequest, peer: Peer) -> Answer:
    if peer.version >= NAMES_PROTOCOL_SINCE and None in (request.protocol_type, request.protocol_name):
        return sync_refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not request.group_id:
        return sync_refusal(ErrorCode.INVALID_GROUP_ID)
    return ask_group(broker, peer, Operation.READ, request.group_id, classic.sync, request, refuse=sync_refusal)
