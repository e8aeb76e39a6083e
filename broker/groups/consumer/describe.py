"""A consumer group as administrators see it: ConsumerGroupDescribe."""

from collections.abc import Iterable

from trilogue.broker.cluster.image import Image
from trilogue.broker.groups.consumer.member import ConsumerMember, by_topic
from trilogue.broker.groups.consumer.state import ConsumerState
from trilogue.broker.names import TopicIdPartition
from trilogue.wire.apis.consumer_group_describe import Assignment, ConsumerGroupDescribeResponse, TopicPartitions
from trilogue.wire.errors import ErrorCode

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1

Described = ConsumerGroupDescribeResponse.Group


def described(group: ConsumerState, image: Image) -> Described:
    return Described(
        group_id=group.id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor(group.members.values()),
        members=[member(each, group, image) for each in group.members.values()],
    )


def member(it: ConsumerMember, group: ConsumerState, image: Image) -> Described.Member:
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
