"""DescribeTopicPartitions: topics with their partitions, sorted by name, in pages.

No topics named asks for all.  An answer holds as many partitions as the client and `max.request.partition.size.limit`
allow, but one at least; the cursor says where the next begins.  A cursor that does not belong to the topics named is
refused, with the whole request, and so is an empty name, with the code that Kafka has for it.  There is one version.
"""

from collections.abc import Sequence

from trilogue.broker.broker import Broker
from trilogue.broker.cluster.image import NO_LEADER, Image
from trilogue.broker.names import check_name, is_internal
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.broker.security.operations import OF_TOPICS
from trilogue.wire.apis.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from trilogue.wire.errors import BrokerError, ErrorCode
from trilogue.wire.schema import ZERO_UUID

Topic = DescribeTopicPartitionsResponse.Topic
Cursor = DescribeTopicPartitionsResponse.Cursor


@handles(DescribeTopicPartitionsRequest)
def describe_topic_partitions(
    broker: Broker, request: DescribeTopicPartitionsRequest, peer: Peer
) -> DescribeTopicPartitionsResponse:
    try:
        names, first = beginning(broker.image, request)
    except BrokerError as error:
        refused = [empty(each.name, error.code) for each in request.topics]
        return DescribeTopicPartitionsResponse(topics=refused)
    most = min(request.response_partition_limit, broker.config["max.request.partition.size.limit"])
    return page(broker.image, names, first, max(most, 1))


def beginning(image: Image, request: DescribeTopicPartitionsRequest) -> tuple[list[str], int]:
    """The topics to describe, and the partition of the first of them to begin with."""
    names = sorted({each.name for each in request.topics} or image.topics)
    if "" in names:
        raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR)
    cursor = request.cursor
    if cursor is None:
        return names, 0
    if cursor.partition_index < 0:
        raise BrokerError(ErrorCode.INVALID_REQUEST)
    names = [each for each in names if each >= cursor.topic_name]
    found = bool(names) and names[0] == cursor.topic_name
    if request.topics and not found:
        raise BrokerError(ErrorCode.INVALID_REQUEST)
    return names, cursor.partition_index if found else 0


def page(image: Image, names: Sequence[str], first: int, most: int) -> DescribeTopicPartitionsResponse:
    topics: list[Topic] = []
    for name in names:
        if most == 0:
            return DescribeTopicPartitionsResponse(
                topics=topics, next_cursor=Cursor(topic_name=name, partition_index=0)
            )
        topic = describe(image, name, first, most)
        topics.append(topic)
        end = first + len(topic.partitions)
        if name in image.topics and end < len(image.topics[name].partitions):
            return DescribeTopicPartitionsResponse(
                topics=topics, next_cursor=Cursor(topic_name=name, partition_index=end)
            )
        most -= len(topic.partitions)
        first = 0
    return DescribeTopicPartitionsResponse(topics=topics)


def describe(image: Image, name: str, first: int, most: int) -> Topic:
    """One topic, with at most so many partitions."""
    topic = image.topics.get(name)
    if topic is None:
        return empty(name, code_of_unknown(name), OF_TOPICS)
    return Topic(
        name=name,
        topic_id=topic.id,
        is_internal=is_internal(name),
        partitions=[
            Topic.Partition(
                error_code=ErrorCode.LEADER_NOT_AVAILABLE if state.leader == NO_LEADER else ErrorCode.NONE,
                partition_index=index,
                leader_id=state.leader,
                leader_epoch=state.leader_epoch,
                replica_nodes=list(state.replicas),
                isr_nodes=list(state.isr),
                eligible_leader_replicas=list(state.elr),
                last_known_elr=[],
                offline_replicas=image.offline_replicas(name, index),
            )
            for index, state in list(enumerate(topic.partitions))[first : first + most]
        ],
        topic_authorized_operations=OF_TOPICS,
    )


def code_of_unknown(name: str) -> ErrorCode:
    try:
        check_name(name)
    except BrokerError as error:
        return error.code
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def empty(name: str, code: ErrorCode, operations: int = -(2**31)) -> Topic:
    return Topic(
        error_code=code,
        name=name,
        topic_id=ZERO_UUID,
        is_internal=is_internal(name),
        partitions=[],
        topic_authorized_operations=operations,
    )
