"""ConsumerGroupHeartbeat as it may be sent, and ConsumerGroupDescribe as it is answered."""

from collections.abc import Collection, Iterable

from trilogue.broker.cluster.image import Image
from trilogue.broker.groups.consumer.group import LEAVES, ConsumerGroup
from trilogue.broker.groups.consumer.member import TEMPORARILY_GONE, ConsumerMember, by_topic
from trilogue.broker.names import TopicIdPartition
from trilogue.wire.apis.consumer_group_describe import Assignment, ConsumerGroupDescribeResponse, TopicPartitions
from trilogue.wire.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from trilogue.wire.errors import BrokerError, ErrorCode

OWN_ID_SINCE = 1
"""From this version on members bring their id."""

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1

Described = ConsumerGroupDescribeResponse.Group


def check(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Collection[str]) -> None:
    """Raises for what contradicts itself."""
    epoch = request.member_epoch
    demand(request.group_id != "", "GroupId can't be empty.")
    demand(request.instance_id != "", "InstanceId can't be empty.")
    demand(request.rack_id != "", "RackId can't be empty.")
    demand(epoch >= 0 or epoch in (LEAVES, TEMPORARILY_GONE), "MemberEpoch is invalid.")
    demand(request.member_id != "" or (epoch == 0 and version < OWN_ID_SINCE), "MemberId can't be empty.")
    demand(epoch != TEMPORARILY_GONE or request.instance_id is not None, "InstanceId can't be null.")
    if epoch == 0:
        demand(request.rebalance_timeout_ms != -1, "RebalanceTimeoutMs must be provided in first request.")
        demand(request.topic_partitions == [], "TopicPartitions must be empty when (re-)joining.")
        subscribes = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
        demand(subscribes, "SubscribedTopicNames or SubscribedTopicRegex must be given when (re-)joining.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        problem = f"ServerAssignor {request.server_assignor} is not one of ours: {', '.join(assignors)}."
        raise BrokerError(ErrorCode.UNSUPPORTED_ASSIGNOR, problem)


def demand(holds: bool, otherwise: str) -> None:
    if not holds:
        raise BrokerError(ErrorCode.INVALID_REQUEST, otherwise)


def heartbeat_refusal(code: ErrorCode, message: str | None = None) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        error_code=code, error_message=message, member_epoch=0, heartbeat_interval_ms=0
    )


def describe(group: ConsumerGroup, image: Image) -> Described:
    return Described(
        group_id=group.id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor(group.members.values()),
        members=[member(each, group, image) for each in group.members.values()],
    )


def member(it: ConsumerMember, group: ConsumerGroup, image: Image) -> Described.Member:
    return Described.Member(
        member_id=it.id,
        instance_id=it.instance_id,
        rack_id=it.rack_id,
        member_epoch=it.epoch,
        client_id=it.client_id,
        client_host=it.client_host,
        subscribed_topic_names=sorted(it.topics),
        subscribed_topic_regex=it.regex,
        assignment=assignment(it.assigned, image),
        target_assignment=assignment(group.target.get(it.id, ()), image),
        member_type=CONSUMER_MEMBER if it.classic is None else CLASSIC_MEMBER,
    )


def assignment(partitions: Iterable[TopicIdPartition], image: Image) -> Assignment:
    """A topic that is gone meanwhile has no name to be shown by."""
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=image.topic_names[topic_id], partitions=indexes)
            for topic_id, indexes in by_topic(partitions).items()
            if topic_id in image.topic_names
        ]
    )


def undescribed(group_id: str, code: ErrorCode, message: str | None = None) -> Described:
    return Described(
        group_id=group_id,
        error_code=code,
        error_message=message,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
        members=[],
    )
