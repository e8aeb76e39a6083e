"""ConsumerGroupHeartbeat: what may be sent, what it says about a member, and how it is answered."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from trilogue.broker.groups.consumer.member import TEMPORARILY_GONE, ConsumerMember, by_topic
from trilogue.broker.groups.world import Caller
from trilogue.broker.names import TopicIdPartition
from trilogue.wire.apis.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from trilogue.wire.errors import BrokerError, ErrorCode

Request = ConsumerGroupHeartbeatRequest
Response = ConsumerGroupHeartbeatResponse

JOINS = 0
"""The epoch of a member that joins, or starts over."""

LEAVES = -1
"""The epoch of a member that goes for good."""

OWN_ID_SINCE = 1
"""From this version on members bring their id."""

# -- what is asked ---------------------------------------------------------------------------------


def check(request: Request, version: int, assignors: Collection[str]) -> None:
    """Raises for what contradicts itself."""
    epoch = request.member_epoch
    demand(request.group_id != "", "GroupId can't be empty.")
    demand(request.instance_id != "", "InstanceId can't be empty.")
    demand(request.rack_id != "", "RackId can't be empty.")
    demand(epoch >= JOINS or epoch in (LEAVES, TEMPORARILY_GONE), "MemberEpoch is invalid.")
    demand(request.member_id != "" or (epoch == JOINS and version < OWN_ID_SINCE), "MemberId can't be empty.")
    demand(epoch != TEMPORARILY_GONE or request.instance_id is not None, "InstanceId can't be null.")
    if epoch == JOINS:
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


def check_epoch(member: ConsumerMember, request: Request) -> None:
    """An older epoch will do if it is the last one and the answer with the newer may have been lost.  0 starts over."""
    epoch = request.member_epoch
    if epoch in (JOINS, member.epoch):
        return
    owned = request.topic_partitions
    lost = owned is not None and all(partition in member.assigned for partition in partitions_in(owned))
    if epoch != member.previous_epoch or not lost:
        problem = f"The member's epoch is {member.epoch}, not {epoch}.  It must abandon its partitions and rejoin."
        raise BrokerError(ErrorCode.FENCED_MEMBER_EPOCH, problem)


def is_full(request: Request) -> bool:
    """Whether the member tells everything, and so may know nothing."""
    subscribes = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    return request.member_epoch == JOINS or (
        request.rebalance_timeout_ms != -1 and subscribes and request.topic_partitions is not None
    )


def described(member: ConsumerMember, request: Request, caller: Caller) -> ConsumerMember:
    """The member as it describes itself now; what it does not mention is as before."""
    names = request.subscribed_topic_names
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms
        if request.rebalance_timeout_ms == -1
        else request.rebalance_timeout_ms,
        topics=member.topics if names is None else frozenset(names),
        regex=member.regex if request.subscribed_topic_regex is None else request.subscribed_topic_regex,
        assignor=member.assignor if request.server_assignor is None else request.server_assignor,
        client_id=caller.client_id,
        client_host=caller.host,
        classic=None,
    )


def owned_by(request: Request) -> set[TopicIdPartition] | None:
    """What the member says it has; None if it does not say."""
    return None if request.topic_partitions is None else set(partitions_in(request.topic_partitions))


def partitions_in(topics: Iterable[Request.TopicPartitions]) -> Iterator[TopicIdPartition]:
    return ((topic.topic_id, index) for topic in topics for index in topic.partitions)


# -- what is answered ------------------------------------------------------------------------------


def answer(member: ConsumerMember, interval_ms: int, *, with_assignment: bool) -> Response:
    assignment = None
    if with_assignment:
        assignment = Response.Assignment(
            topic_partitions=[
                TopicPartitions(topic_id=topic_id, partitions=indexes)
                for topic_id, indexes in by_topic(member.assigned).items()
            ]
        )
    return Response(
        member_id=member.id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=interval_ms,
        assignment=assignment,
    )


def farewell(member: ConsumerMember, epoch: int) -> Response:
    return Response(member_id=member.id, member_epoch=epoch, heartbeat_interval_ms=0)


def heartbeat_refusal(code: ErrorCode, message: str | None = None) -> Response:
    return Response(error_code=code, error_message=message, member_epoch=0, heartbeat_interval_ms=0)
