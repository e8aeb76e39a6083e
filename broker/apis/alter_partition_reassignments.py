"""AlterPartitionReassignments: move partitions to other brokers, or stop moving them.

The replicas that a partition has already may be put in another order, which is done at once.  Null cancels a move.
v1+: a client may forbid that the number of replicas changes.  Not done: moves to other brokers (KNOWN_GAPS.md).
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

Asked = AlterPartitionReassignmentsRequest.Topic.Partition
Topic = AlterPartitionReassignmentsResponse.Topic
Answer = Topic.Partition


@handles(AlterPartitionReassignmentsRequest)
async def alter_partition_reassignments(
    broker: Broker, request: AlterPartitionReassignmentsRequest, peer: Peer
) -> AlterPartitionReassignmentsResponse:
    topics = []
    for topic in request.topics:
        answers = [
            await reassign(broker, peer, topic.name, each, may_resize=request.allow_replication_factor_change)
            for each in topic.partitions
        ]
        topics.append(Topic(name=topic.name, partitions=answers))
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change, error_message=None, responses=topics
    )


async def reassign(broker: Broker, peer: Peer, topic: str, asked: Asked, *, may_resize: bool) -> Answer:
    answer = Answer(partition_index=asked.partition_index, error_message=None)
    wanted = None if asked.replicas is None else tuple(asked.replicas)
    try:
        await controller(broker, peer, Operation.ALTER).reassign(
            topic, asked.partition_index, wanted, may_resize=may_resize
        )
    except BrokerError as error:
        answer.error_code, answer.error_message = error.code, error.message
    return answer
