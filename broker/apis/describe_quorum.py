"""DescribeQuorum: the state of the quorum that keeps the cluster's metadata.

Our metadata is kept by a store, not by a quorum of brokers, but tools ask.  They hear of one in which every living
broker votes, the controller leads, and all have seen everything; the offsets count the changes this broker has seen.
As with Kafka, exactly one question is answered, for partition 0 of `__cluster_metadata`; all else is unknown.
v1+: times.  v2+: messages, directory ids (only our own is known here) and where the voters listen.
"""

from trilogue.broker.broker import Broker
from trilogue.broker.cluster.image import Image
from trilogue.broker.names import METADATA_TOPIC
from trilogue.broker.requests.endpoints import endpoint
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.wire.apis.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse, ReplicaState
from trilogue.wire.errors import ErrorCode
from trilogue.wire.schema import ZERO_UUID

Topic = DescribeQuorumResponse.Topic
Partition = Topic.Partition
Node = DescribeQuorumResponse.Node


@handles(DescribeQuorumRequest)
def describe_quorum(broker: Broker, request: DescribeQuorumRequest, peer: Peer) -> DescribeQuorumResponse:
    asked = [(topic.topic_name, [each.partition_index for each in topic.partitions]) for topic in request.topics]
    if asked != [(METADATA_TOPIC, [0])]:
        return DescribeQuorumResponse(
            topics=[Topic(topic_name=name, partitions=[unknown(each) for each in parts]) for name, parts in asked],
            nodes=[],
        )
    image = broker.image
    partition = Partition(
        partition_index=0,
        leader_id=image.controller,
        leader_epoch=image.controller_epoch,
        high_watermark=broker.view.changes,
        current_voters=[voter(broker, each) for each in sorted(image.brokers)],
        observers=[],
    )
    return DescribeQuorumResponse(
        topics=[Topic(topic_name=METADATA_TOPIC, partitions=[partition])], nodes=nodes(broker, image, peer)
    )


def unknown(index: int) -> Partition:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return Partition(
        partition_index=index,
        error_code=code,
        error_message=code.sentence,
        leader_id=0,
        leader_epoch=0,
        high_watermark=0,
        current_voters=[],
        observers=[],
    )


def voter(broker: Broker, broker_id: int) -> ReplicaState:
    own = broker_id == broker.node_id
    now_ms = broker.clock()
    return ReplicaState(
        replica_id=broker_id,
        replica_directory_id=broker.replicas.directories[0].id if own else ZERO_UUID,
        log_end_offset=broker.view.changes,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )


def nodes(broker: Broker, image: Image, peer: Peer) -> list[Node]:
    found = []
    for info in image.brokers.values():
        where = endpoint(broker, info, peer)
        if where is not None:
            listener = Node.Listener(name=peer.listener, host=where[0], port=where[1])
            found.append(Node(node_id=info.id, listeners=[listener]))
    return found
