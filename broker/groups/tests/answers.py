"""What members of a classic group are to hear."""

from trilogue.broker.groups.tests.stage import subscription
from trilogue.wire.apis.join_group import JoinGroupResponse

SUBSCRIBED = subscription("t")


def joined(member, leader, generation=1, members=(), protocol="range", **more):
    return JoinGroupResponse(
        generation_id=generation,
        protocol_type="consumer",
        protocol_name=protocol,
        leader=leader,
        member_id=member,
        members=[JoinGroupResponse.Member(member_id=each, metadata=SUBSCRIBED) for each in members],
        **more,
    )


def refused(code, member="", protocol=None):
    return JoinGroupResponse(error_code=code, protocol_name=protocol, leader="", member_id=member, members=[])
