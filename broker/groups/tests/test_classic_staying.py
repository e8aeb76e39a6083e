"""Members of a classic group that stay: heartbeats and sessions, leaving, static members, and after a restart."""

import pytest

from trilogue.broker.groups.classic.state import State
from trilogue.broker.groups.tests.answers import joined, refused
from trilogue.broker.groups.tests.stage import START_MS, Stage
from trilogue.wire.errors import ErrorCode
from trilogue.wire.internal.offsets import GroupMetadataValue

# -- heartbeats and sessions ---------------------------------------------------------------------------


def test_a_member_is_gone_when_its_session_is_over():
    stage = Stage()
    generation = stage.stable("a", "b")
    stage.at(5)
    assert stage.heartbeat("a-1", generation) == ErrorCode.NONE

    stage.at(9.9)
    assert stage.group().state is State.STABLE
    stage.at(10)
    assert stage.group().state is State.PREPARING
    assert stage.heartbeat("b-1", generation) == ErrorCode.UNKNOWN_MEMBER_ID
    assert stage.heartbeat("a-1", generation) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_commit_is_a_sign_of_life():
    stage = Stage()
    generation = stage.stable("a")
    stage.at(9)
    assert stage.commit(member="a-1", generation=generation) == ErrorCode.NONE

    stage.at(18.9)
    assert stage.group().state is State.STABLE
    stage.at(19)
    assert stage.group().state is State.EMPTY


def test_the_last_ones_session_ends_the_generation():
    stage = Stage()
    generation = stage.stable("a")
    stage.at(10)

    assert (stage.group().state, stage.group().generation) == (State.EMPTY, generation + 1)
    value = stage.log[-1][0].value
    assert value == GroupMetadataValue(
        protocol_type="consumer",
        generation=generation + 1,
        protocol=None,
        leader=None,
        current_state_timestamp=START_MS + 10_000,
        members=[],
    )
    assert stage.heartbeat("a-1", generation) == ErrorCode.UNKNOWN_MEMBER_ID


def test_who_waits_for_us_is_not_late():
    stage = Stage()
    stage.stable("a", "b", session=6, rebalance=60)
    waiting = stage.join("a-1", session=6, rebalance=60)
    for now in range(5, 60, 5):
        stage.at(now).heartbeat("b-1", 2)

    assert waiting.response is None
    stage.join("b-1", session=6, rebalance=60)
    assert waiting.response.generation_id == 3


def test_somebody_new_waits_five_minutes_at_most():
    stage = Stage(group_initial_rebalance_delay_ms=1000)
    stage.join(client="a", version=3, session=1000, rebalance=1000)
    stage.at(1)
    stage.sync("a-1", 1)
    new = stage.join(client="b", version=3, session=6, rebalance=1000)

    stage.at(300.9)
    assert new.response is None
    stage.at(301)
    assert new.response == refused(ErrorCode.UNKNOWN_MEMBER_ID, protocol="")


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({}, ErrorCode.NONE),
        ({"member": "x"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation": 9}, ErrorCode.ILLEGAL_GENERATION),
        ({"group": "other"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"instance": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_what_a_heartbeat_hears(asked, code):
    stage = Stage()
    generation = stage.stable("a")
    assert stage.heartbeat(**{"member": "a-1", "generation": generation, **asked}) == code


# -- leaving -------------------------------------------------------------------------------------------


def test_members_leave_together_and_each_hears_its_own():
    stage = Stage()
    generation = stage.stable("a", "b", "c")

    assert stage.leave("a-1", "x", "b-1") == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE]
    assert stage.group().leader == "c-1"
    assert stage.heartbeat("c-1", generation) == ErrorCode.REBALANCE_IN_PROGRESS
    assert stage.leave("c-1") == [ErrorCode.NONE]
    assert stage.group().state is State.EMPTY


def test_who_was_given_an_id_can_leave_with_it():
    stage = Stage()
    stage.join()
    assert stage.leave("c-1") == [ErrorCode.NONE]
    assert stage.leave("c-1") == [ErrorCode.UNKNOWN_MEMBER_ID]


def test_nobody_leaves_a_group_that_is_not_there():
    assert Stage().leave("x", instances=["i"]) == [ErrorCode.UNKNOWN_MEMBER_ID] * 2


def test_who_waits_for_the_others_and_leaves_hears_so():
    stage = Stage()
    stage.stable("a", "b")
    waiting = stage.join("a-1")
    stage.leave("a-1")

    assert waiting.response == refused(ErrorCode.UNKNOWN_MEMBER_ID)


# -- static members ------------------------------------------------------------------------------------


def static(stage, *instances):
    """A stable group of static members: the first leads, ids are i-1 for instance i."""
    for instance in instances:
        stage.join(instance=instance, rebalance=8)
    for instance in instances[:-1]:
        stage.join(f"{instance}-1", instance=instance, rebalance=8)
    generation = stage.group().generation
    for instance in reversed(instances):
        stage.sync(f"{instance}-1", generation, instance=instance, **{f"{i}_1": i.encode() for i in instances})
    assert stage.group().state is State.STABLE
    return generation


def test_a_static_member_joins_without_a_detour_and_keeps_its_place():
    stage = Stage()
    generation = static(stage, "i", "j")

    answer = stage.join(instance="j", fresh="2", rebalance=8).response
    assert answer == joined("j-2", "i-1", generation)
    assert stage.group().state is State.STABLE
    assert stage.sync("j-2", generation, instance="j").response.assignment == b"j"
    assert [each.member_id for each in stage.log[-1][0].value.members] == ["i-1", "j-2"]


def test_a_static_leader_that_returns_learns_who_is_here_and_assigns_nothing():
    stage = Stage()
    generation = static(stage, "i", "j")

    answer = stage.join(instance="i", fresh="2", rebalance=8).response
    assert (answer.leader, answer.skip_assignment) == ("i-2", True)
    assert [each.member_id for each in answer.members] == ["j-1", "i-2"]
    assert answer.generation_id == generation


def test_before_v9_a_static_leader_that_returns_does_not_learn_that_it_leads():
    stage = Stage()
    static(stage, "i", "j")

    answer = stage.join(instance="i", fresh="2", rebalance=8, version=8).response
    assert (answer.leader, answer.member_id, answer.members) == ("i-1", "i-2", [])


def test_the_old_id_of_a_static_member_is_fenced():
    stage = Stage()
    generation = static(stage, "i", "j")
    stage.join(instance="j", fresh="2", rebalance=8)

    assert stage.heartbeat("j-1", generation, instance="j") == ErrorCode.FENCED_INSTANCE_ID
    assert stage.sync("j-1", generation, instance="j").response.error_code == ErrorCode.FENCED_INSTANCE_ID
    assert stage.commit(member="j-1", generation=generation, instance="j") == ErrorCode.FENCED_INSTANCE_ID
    assert stage.join("j-1", instance="j").response.error_code == ErrorCode.FENCED_INSTANCE_ID
    assert stage.heartbeat("j-1", generation) == ErrorCode.UNKNOWN_MEMBER_ID
    assert stage.heartbeat("j-2", generation, instance="j") == ErrorCode.NONE


def test_whoever_waits_under_the_old_id_is_fenced_at_once():
    stage = Stage()
    generation = static(stage, "i", "j")
    waiting = stage.join("i-1", instance="i", rebalance=8)

    stage.join(instance="i", fresh="2", rebalance=8)
    assert waiting.response == refused(ErrorCode.FENCED_INSTANCE_ID, "i-1")
    stage.join("j-1", instance="j", rebalance=8)
    assert stage.group().generation == generation + 1


def test_a_static_member_that_returns_otherwise_makes_everybody_join():
    stage = Stage()
    for instance in "ij":
        stage.join(instance=instance, protocols={"x": b"", "y": b""}, rebalance=8)
    stage.join("i-1", instance="i", protocols={"x": b"", "y": b""}, rebalance=8)
    stage.sync("i-1", 2)
    stage.sync("j-1", 2)

    assert stage.join(instance="j", fresh="2", protocols={"y": b""}, rebalance=8).response is None
    assert stage.group().state is State.PREPARING


def test_static_members_may_miss_a_rebalance():
    stage = Stage()
    generation = static(stage, "i", "j")
    first = stage.join("i-1", instance="i", rebalance=8)

    stage.at(8)
    assert [each.member_id for each in first.response.members] == ["i-1", "j-1"]
    assert first.response.generation_id == generation + 1


def test_when_all_static_members_are_away_the_group_waits():
    stage = Stage()
    generation = static(stage, "i", "j")
    stage.join("i-1", instance="i", rebalance=8, session=60)
    stage.leave(instances=["i"])
    assert stage.group().state is State.PREPARING

    stage.heartbeat("j-1", generation, instance="j")
    stage.at(8).heartbeat("j-1", generation, instance="j")
    assert (stage.group().state, stage.group().generation) == (State.PREPARING, generation)
    assert stage.join("j-1", instance="j", rebalance=8).response.generation_id == generation + 1


def test_an_administrator_puts_out_a_static_member_by_its_name():
    stage = Stage()
    static(stage, "i", "j")

    assert stage.leave(instances=["j", "k"]) == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert list(stage.group().members) == ["i-1"]


def test_a_static_member_is_gone_when_its_session_is_over():
    stage = Stage()
    static(stage, "i")
    stage.at(9.9)
    assert stage.group().state is State.STABLE
    stage.at(10)
    assert stage.group().state is State.EMPTY


# -- after a restart -----------------------------------------------------------------------------------


def test_members_stay_members_through_a_restart():
    stage = Stage()
    generation = stage.stable("a", "b")
    stage.at(9).open()

    assert stage.group().state is State.STABLE
    assert stage.at(18.9).heartbeat("a-1", generation) == ErrorCode.NONE
    assert stage.sync("b-1", generation).response.assignment == b"b-1"
    assert stage.at(19).heartbeat("b-1", generation) == ErrorCode.UNKNOWN_MEMBER_ID


def test_static_members_are_known_by_name_after_a_restart():
    stage = Stage()
    generation = static(stage, "i", "j")
    stage.open()

    assert stage.join(instance="j", fresh="2", rebalance=8).response.generation_id == generation
    assert stage.heartbeat("j-1", generation, instance="j") == ErrorCode.FENCED_INSTANCE_ID


def test_a_group_that_nobody_has_joined_yet_is_there_after_a_restart():
    stage = Stage()
    stage.join()
    stage.open()

    assert stage.group().state is State.EMPTY
    assert stage.join("c-1").response == refused(ErrorCode.UNKNOWN_MEMBER_ID, "c-1")


def test_a_group_that_is_too_large_now_rebalances():
    stage = Stage()
    generation = stage.stable("a", "b")
    stage.world.config = Stage(group_max_size=1).world.config
    stage.open()

    assert stage.heartbeat("a-1", generation) == ErrorCode.REBALANCE_IN_PROGRESS
