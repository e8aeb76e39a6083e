"""ConsumerGroupDescribe: state, members and assignments of consumer groups of the new protocol (KIP-848).

A group that is not there, or is a classic one, is GROUP_ID_NOT_FOUND.  v1+: which protocol each member speaks.
"""

from functools import partial

from trilogue.broker.broker import Broker
from trilogue.broker.coordinators.ask_group import ask_group
from trilogue.broker.groups.consumer.describe import undescribed
from trilogue.broker.groups.requests import consumer
from trilogue.broker.requests.later import Later, together
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import Answer, handles
from trilogue.broker.security.operations import OF_GROUPS, Operation
from trilogue.wire.apis.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from trilogue.wire.errors import ErrorCode

Described = ConsumerGroupDescribeResponse.Group


@handles(ConsumerGroupDescribeRequest)
def consumer_group_describe(broker: Broker, request: ConsumerGroupDescribeRequest, peer: Peer) -> Answer:
    def shape(groups: list[Described]) -> ConsumerGroupDescribeResponse:
        for each in groups:
            if request.include_authorized_operations and each.error_code == ErrorCode.NONE:
                each.authorized_operations = OF_GROUPS
        return ConsumerGroupDescribeResponse(groups=groups)

    return broker.turns.each(
        request.group_ids,
        lambda group_id: describe(broker, peer, group_id),
        lambda groups: together(groups, shape),
    )


def describe(broker: Broker, peer: Peer, group_id: str) -> Described | Later[Described]:
    if not group_id:
        return undescribed(group_id, ErrorCode.INVALID_GROUP_ID)
    refuse = partial(undescribed, group_id)
    return ask_group(broker, peer, Operation.DESCRIBE, group_id, consumer.describe, group_id, refuse=refuse)
