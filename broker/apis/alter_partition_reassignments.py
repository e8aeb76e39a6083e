"""AlterPartitionReassignments: move partitions to other brokers, or stop moving them.

Answered when the move has begun; ListPartitionReassignments tells what is under way.  What can be done at once, as
another order of the replicas, is done.  Null stops a move and goes back.  What is refused is refused by itself.
v1+: a client may forbid that the number of replicas changes.
"""

from trilogue.broker.broker import Broker
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.broker.requests.seams import controller
from trilogue.broker.security.operations import Operation
from trilogue.wire.apis.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from trilogue.wire.errors import BrokerError

Asked = AlterPartitionReassignmentsRequest.Topic
Topic = AlterPartitionReassignmentsResponse.Topic


@handles(AlterPartitionReassignmentsRequest)
async def alter_partition_reassignments(
    broker: Broker, request: AlterPartitionReassignmentsRequest, peer: Peer
) -> AlterPartitionReassignmentsResponse:
    may_resize = request.allow_replication_factor_change
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=may_resize,
        error_message=None,
        responses=[await reassign(broker, peer, each, may_resize=may_resize) for each in request.topics],
    )


async def reassign(broker: Broker, peer: Peer, topic: Asked, *, may_resize: bool) -> Topic:
    asked = [
        (each.partition_index, None if each.replicas is None else tuple(each.replicas)) for each in topic.partitions
    ]
    refusals: list[BrokerError | None]
    try:
        refusals = await controller(broker, peer, Operation.ALTER).reassign(topic.name, asked, may_resize=may_resize)
    except BrokerError as error:
        refusals = [error for _ in asked]
    answers = []
    for (index, _), refusal in zip(asked, refusals, strict=True):
        answer = Topic.Partition(partition_index=index, error_message=None)
        if refusal is not None:
            answer.error_code, answer.error_message = refusal.code, refusal.message
        answers.append(answer)
    return Topic(name=topic.name, partitions=answers)
