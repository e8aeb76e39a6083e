"""Members of a consumer group that speak the classic protocol: what their JoinGroup says, and how it is answered.

To them the group is a coordinator that needs no leader: JoinGroup brings a member one step towards its target
assignment, SyncGroup tells it what it has, and Heartbeat whether the next step is due.  Its generation is its epoch.
"""

from collections.abc import Iterable
from dataclasses import replace

from trilogue.broker.groups.classic.state import CONSUMER
from trilogue.broker.groups.consumer.member import ConsumerMember
from trilogue.broker.groups.consumer.migration import classic_metadata
from trilogue.broker.groups.subscription import read_subscription
from trilogue.broker.groups.world import Caller
from trilogue.wire.apis.join_group import JoinGroupRequest, JoinGroupResponse
from trilogue.wire.errors import BrokerError, ErrorCode, MalformedMessage
from trilogue.wire.internal.consumer_protocol import ConsumerProtocolSubscription


def check_protocols(request: JoinGroupRequest, members: Iterable[ConsumerMember]) -> None:
    """One of its protocols must be known to all classic members."""
    names = {each.name for each in request.protocols}
    for each in members:
        if each.classic is not None:
            names &= {protocol.name for protocol in each.classic.supported_protocols}
    if request.protocol_type != CONSUMER or not names:
        raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def subscription_in(request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    """Of all protocols the same, so of the first."""
    try:
        return read_subscription(request.protocols[0].metadata)
    except MalformedMessage:
        raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, "The subscription is malformed.") from None


def described(
    member: ConsumerMember, request: JoinGroupRequest, told: ConsumerProtocolSubscription, caller: Caller
) -> ConsumerMember:
    """The member as it describes itself now.  Classic members have no patterns, and no word about assignors."""
    protocols = ((each.name, each.metadata) for each in request.protocols)
    return replace(
        member,
        instance_id=member.instance_id if request.group_instance_id is None else request.group_instance_id,
        rack_id=told.rack_id or member.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topics=frozenset(told.topics),
        regex="",
        client_id=caller.client_id,
        client_host=caller.host,
        classic=classic_metadata(request.session_timeout_ms, protocols),
    )


def joined(member: ConsumerMember, generation: int) -> JoinGroupResponse:
    """Nobody leads: there is nothing to assign."""
    assert member.classic is not None
    return JoinGroupResponse(
        generation_id=generation,
        protocol_type=CONSUMER,
        protocol_name=member.classic.supported_protocols[0].name,
        leader="",
        member_id=member.id,
        members=[],
    )
