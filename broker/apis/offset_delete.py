"""OffsetDelete: a group forgets how far it has read.

What its members are subscribed to stays; a group of others than consumers must be empty.
"""

from trilogue.broker.broker import Broker
from trilogue.broker.coordinators.ask_group import ask_group
from trilogue.broker.groups.requests import offsets
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import Answer, handles
from trilogue.broker.security.operations import Operation
from trilogue.wire.apis.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from trilogue.wire.errors import ErrorCode


@handles(OffsetDeleteRequest)
def offset_delete(broker: Broker, request: OffsetDeleteRequest, peer: Peer) -> Answer:
    if not request.group_id:
        return refusal(ErrorCode.INVALID_GROUP_ID)
    return ask_group(broker, peer, Operation.DELETE, request.group_id, offsets.delete, request, refuse=refusal)


def refusal(code: ErrorCode) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=code, topics=[])
