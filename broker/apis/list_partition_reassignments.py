"""ListPartitionReassignments: the partitions that are on the move between brokers.

Null asks for all.  What does not move, or does not exist, is not mentioned.  There is one version.
"""

from trilogue.broker.broker import Broker
from trilogue.broker.cluster.image import Image
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.wire.apis.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

Topic = ListPartitionReassignmentsResponse.Topic


@handles(ListPartitionReassignmentsRequest)
def list_partition_reassignments(
    broker: Broker, request: ListPartitionReassignmentsRequest, peer: Peer
) -> ListPartitionReassignmentsResponse:
    image = broker.image
    if request.topics is None:
        wanted = {name: list(range(len(topic.partitions))) for name, topic in image.topics.items()}
    else:
        wanted = {each.name: each.partition_indexes for each in request.topics}
    topics = [Topic(name=name, partitions=moving(image, name, partitions)) for name, partitions in wanted.items()]
    return ListPartitionReassignmentsResponse(error_message=None, topics=[each for each in topics if each.partitions])


def moving(image: Image, name: str, partitions: list[int]) -> list[Topic.Partition]:
    return [
        Topic.Partition(
            partition_index=index,
            replicas=list(state.replicas),
            adding_replicas=list(state.adding),
            removing_replicas=list(state.removing),
        )
        for index in partitions
        if (state := image.partition(name, index)) and (state.adding or state.removing)
    ]
