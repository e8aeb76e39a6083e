"""Metadata: who the brokers are, and which of them leads what.

v0: no topics named asks for all; later null does.  Topics that are not there are made, if the client (v4+: says so)
and `auto.create.topics.enable` agree; it hears UNKNOWN_TOPIC_OR_PARTITION and asks again, as with Kafka.  v10+: topics
have ids; v12+: may be asked for by id, which never makes any; then names in the same request are not looked at.
v8-10: the cluster's authorized operations.  v13+: an error of the whole.
"""

import logging

from trilogue.broker.broker import Broker
from trilogue.broker.cluster.decisions import NewTopic
from trilogue.broker.cluster.image import NO_LEADER, Image
from trilogue.broker.cluster.image import Topic as TopicImage
from trilogue.broker.names import check_name, is_internal
from trilogue.broker.requests.endpoints import endpoint
from trilogue.broker.requests.later import Later
from trilogue.broker.requests.making import make_topic
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.broker.security.operations import NOT_ASKED, OF_CLUSTER, OF_TOPICS
from trilogue.wire.apis.metadata import MetadataRequest, MetadataResponse
from trilogue.wire.errors import BrokerError, ErrorCode
from trilogue.wire.schema import ZERO_UUID

logger = logging.getLogger(__name__)

BY_ID = 12
"""From this version on topics may be asked for by their ids."""

Topic = MetadataResponse.Topic
Partition = Topic.Partition


@handles(MetadataRequest)
def metadata(broker: Broker, request: MetadataRequest, peer: Peer) -> MetadataResponse | Later[MetadataResponse]:
    image = broker.image

    def whole(topics: list[Topic]) -> MetadataResponse:
        return MetadataResponse(
            brokers=living(broker, image, peer),
            cluster_id=image.cluster_id,
            controller_id=image.controller,
            topics=topics,
            cluster_authorized_operations=(OF_CLUSTER if request.include_cluster_authorized_operations else NOT_ASKED),
        )

    if request.topics is None or (peer.version == 0 and not request.topics):
        return broker.turns.each(image.topics.values(), lambda topic: describe(broker, topic, request), whole)
    if (code := misunderstood(request.topics, peer.version)) is not None:
        return refuse_all(request.topics, code)
    return broker.turns.each(once(request.topics), lambda asked: one(broker, asked, request, peer), whole)


def misunderstood(topics: list[MetadataRequest.Topic], version: int) -> ErrorCode | None:
    """Why a request is refused as a whole: ids before their time, or a topic without name and id."""
    if version < BY_ID and any(each.name is None or each.topic_id != ZERO_UUID for each in topics):
        return ErrorCode.INVALID_REQUEST
    if any(each.name is None and each.topic_id == ZERO_UUID for each in topics):
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return None


def refuse_all(topics: list[MetadataRequest.Topic], code: ErrorCode) -> MetadataResponse:
    refused = [Topic(error_code=code, name=each.name or "", topic_id=each.topic_id, partitions=[]) for each in topics]
    return MetadataResponse(brokers=[], topics=refused, error_code=code)


def once(topics: list[MetadataRequest.Topic]) -> list[MetadataRequest.Topic]:
    """Every topic one time; by id, if any is."""
    by_id = {each.topic_id: each for each in topics if each.topic_id != ZERO_UUID}
    by_name = {each.name: each for each in topics}
    return list(by_id.values() or by_name.values())


def living(broker: Broker, image: Image, peer: Peer) -> list[MetadataResponse.Broker]:
    found = []
    for info in image.brokers.values():
        where = endpoint(broker, info, peer)
        if where is not None:
            found.append(MetadataResponse.Broker(node_id=info.id, host=where[0], port=where[1], rack=info.rack))
    return found


def one(broker: Broker, asked: MetadataRequest.Topic, request: MetadataRequest, peer: Peer) -> Topic:
    if asked.topic_id != ZERO_UUID:
        found = broker.image.topic_by_id(asked.topic_id)
        if found is None:
            return Topic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=asked.topic_id, partitions=[])
        return describe(broker, found, request)
    name = asked.name or ""
    found = broker.image.topics.get(name)
    if found is not None:
        return describe(broker, found, request)
    try:
        check_name(name)
    except BrokerError as error:
        return Topic(error_code=error.code, name=name, is_internal=is_internal(name), partitions=[])
    if (request.allow_auto_topic_creation or peer.version < 4) and broker.config["auto.create.topics.enable"]:
        broker.tasks.start_soon(make, broker, peer, name)
    return Topic(
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name=name, is_internal=is_internal(name), partitions=[]
    )


async def make(broker: Broker, peer: Peer, name: str) -> None:
    """Make a topic that somebody has asked for.  Whoever it was asks again, and finds it."""
    try:
        await make_topic(broker, peer, NewTopic(name, -1, -1, {}, {}), broker.topic_defaults)
    except BrokerError as error:
        if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
            logger.warning("topic %r was asked for and cannot be made: %s", name, error)


def describe(broker: Broker, topic: TopicImage, request: MetadataRequest) -> Topic:
    return Topic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=is_internal(topic.name),
        partitions=[
            Partition(
                error_code=ErrorCode.LEADER_NOT_AVAILABLE if state.leader == NO_LEADER else ErrorCode.NONE,
                partition_index=index,
                leader_id=state.leader,
                leader_epoch=state.leader_epoch,
                replica_nodes=list(state.replicas),
                isr_nodes=list(state.isr),
                offline_replicas=broker.image.offline_replicas(topic.name, index),
            )
            for index, state in enumerate(topic.partitions)
        ],
        topic_authorized_operations=(OF_TOPICS if request.include_topic_authorized_operations else NOT_ASKED),
    )
