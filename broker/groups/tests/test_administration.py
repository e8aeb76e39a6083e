"""Groups as administrators see and remove them."""

import pytest

from trilogue.broker.groups.coordinator import GroupCoordinator
from trilogue.broker.groups.requests import classic, consumer
from trilogue.broker.groups.tests.stage import Stage, subscription
from trilogue.broker.groups.world import Caller
from trilogue.wire.apis.describe_groups import DescribeGroupsResponse
from trilogue.wire.apis.list_groups import ListGroupsResponse
from trilogue.wire.errors import ErrorCode

Described = DescribeGroupsResponse.Group
Listed = ListGroupsResponse.Group


def describe(stage, group="g", version=6):
    return stage.ask(classic.describe, group, Caller(version)).response


def describe_consumer(stage, group="g"):
    return stage.ask(consumer.describe, group).response


def delete(stage, group="g"):
    return stage.ask(GroupCoordinator.delete_group, group).response.error_code


def test_a_stable_group_shows_everything():
    stage = Stage()
    stage.stable("a")

    member = Described.Member(
        member_id="a-1",
        client_id="a",
        client_host="/h",
        member_metadata=subscription("t"),
        member_assignment=b"a-1",
    )
    assert describe(stage) == Described(
        group_id="g", group_state="Stable", protocol_type="consumer", protocol_data="range", members=[member]
    )


def test_a_group_in_a_rebalance_shows_who_is_there():
    stage = Stage()
    stage.stable("a", "b")
    stage.join("a-1")

    answer = describe(stage)
    assert (answer.group_state, answer.protocol_data) == ("PreparingRebalance", "")
    assert [(each.member_id, each.member_metadata) for each in answer.members] == [("a-1", b""), ("b-1", b"")]


@pytest.mark.parametrize(
    ("version", "code", "message"), [(5, ErrorCode.NONE, None), (6, ErrorCode.GROUP_ID_NOT_FOUND, "Group g not found.")]
)
def test_a_group_that_is_not_there_is_dead_and_from_v6_on_not_found(version, code, message):
    assert describe(Stage(), version=version) == Described(
        group_id="g",
        error_code=code,
        error_message=message,
        group_state="Dead",
        protocol_type="",
        protocol_data="",
        members=[],
    )


def test_a_group_of_another_kind_is_not_found_and_said_not_to_be_of_this_one():
    stage = Stage()
    stage.stable("a")
    stage.beat(group="consumer")

    told = [describe(stage, "consumer"), describe_consumer(stage), describe_consumer(stage, "none")]
    assert [(each.error_code, each.error_message) for each in told] == [
        (ErrorCode.GROUP_ID_NOT_FOUND, "Group consumer is not a classic group."),
        (ErrorCode.GROUP_ID_NOT_FOUND, "Group g is not a consumer group."),
        (ErrorCode.GROUP_ID_NOT_FOUND, "Group none not found."),
    ]
    assert describe_consumer(stage, "consumer").group_state == "Stable"


def test_groups_are_listed_by_state_and_kind():
    stage = Stage()
    stage.stable("a")
    stage.commit(group="simple")
    stable = Listed(group_id="g", protocol_type="consumer", group_state="Stable", group_type="classic")
    empty = Listed(group_id="simple", protocol_type="", group_state="Empty", group_type="classic")

    assert stage.machine.list_groups([], []) == [stable, empty]
    assert stage.machine.list_groups(["stable", "dead"], []) == [stable]
    assert stage.machine.list_groups(["empty"], ["classic"]) == [empty]
    assert stage.machine.list_groups([], ["consumer"]) == []


def test_only_groups_without_members_are_deleted_and_with_them_what_they_committed():
    stage = Stage()
    generation = stage.stable("a")
    stage.commit(member="a-1", generation=generation)
    stage.commit_in_transaction(9, member="a-1", generation=generation, partition=1)
    assert delete(stage) == ErrorCode.NON_EMPTY_GROUP

    stage.leave("a-1")
    assert delete(stage) == ErrorCode.NONE
    stage.end_transaction(7, True)
    assert delete(stage) == ErrorCode.GROUP_ID_NOT_FOUND
    assert stage.fetch(0, 1) == [(0, -1, ErrorCode.NONE), (1, -1, ErrorCode.NONE)]
    stage.open()
    assert stage.group() is None
