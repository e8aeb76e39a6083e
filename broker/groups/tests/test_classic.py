"""Classic groups, told with plain numbers as times."""

import pytest

from trilogue.broker.groups.classic.group import ClassicGroup
from trilogue.broker.groups.classic.state import NEXT, State
from trilogue.broker.groups.tests.answers import SUBSCRIBED, joined, refused
from trilogue.broker.groups.tests.stage import START_MS, Stage, subscription
from trilogue.wire.apis.join_group import JoinGroupResponse
from trilogue.wire.apis.sync_group import SyncGroupResponse
from trilogue.wire.errors import ErrorCode
from trilogue.wire.internal.offsets import GroupMetadataKey, GroupMetadataValue, MemberMetadata

# -- joining -------------------------------------------------------------------------------------------


def test_whoever_has_no_id_is_told_one_and_joins_with_it():
    stage = Stage()

    assert stage.join().response == refused(ErrorCode.MEMBER_ID_REQUIRED, "c-1")
    assert stage.join("c-1").response == joined("c-1", "c-1", members=["c-1"])


def test_before_v4_nobody_has_to_come_back():
    assert Stage().join(version=3).response == joined("c-1", "c-1", members=["c-1"])


def test_before_v7_a_refusal_names_no_protocol_instead_of_null():
    assert Stage().join(version=6).response == refused(ErrorCode.MEMBER_ID_REQUIRED, "c-1", protocol="")


def test_an_id_that_was_not_given_is_unknown():
    stage = Stage()

    assert stage.join("nobody").response == refused(ErrorCode.UNKNOWN_MEMBER_ID, "nobody")
    assert stage.group() is None
    stage.stable("a")
    assert stage.join("nobody").response == refused(ErrorCode.UNKNOWN_MEMBER_ID, "nobody")


def test_an_id_is_kept_for_a_session_timeout():
    stage = Stage()
    stage.join(session=10)

    assert stage.at(9.9).join("c-1").response.error_code == ErrorCode.NONE

    stage = Stage()
    stage.join(session=10)
    assert stage.at(10).join("c-1").response == refused(ErrorCode.UNKNOWN_MEMBER_ID, "c-1")


def test_a_rebalance_waits_for_who_was_given_an_id():
    stage = Stage()
    generation = stage.stable("a")
    stage.join(client="b")
    assert stage.heartbeat("a-1", generation) == ErrorCode.NONE  # an id alone is no reason to rebalance

    late = stage.join("b-1")
    stage.join(client="c")
    first = stage.join("a-1")
    assert (first.response, late.response) == (None, None)
    stage.join("c-1")
    assert first.response == joined("a-1", "a-1", 2, ["a-1", "b-1", "c-1"])
    assert late.response == joined("b-1", "a-1", 2)


def test_who_was_given_an_id_and_does_not_come_is_not_waited_for_longer():
    stage = Stage()
    stage.stable("a")
    stage.join(client="b", session=6)
    first = stage.join("a-1")

    stage.at(5.9)
    assert first.response is None
    stage.at(6)
    assert first.response == joined("a-1", "a-1", 2, ["a-1"])


@pytest.mark.parametrize(
    ("kind", "protocols"),
    [("", {"range": b""}), ("consumer", {})],
)
def test_a_group_needs_a_kind_and_a_protocol(kind, protocols):
    answer = Stage().join(kind=kind, protocols=protocols).response
    assert answer == refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


@pytest.mark.parametrize(
    ("kind", "protocols"),
    [("connect", {"range": b""}), ("consumer", {"other": b""}), ("consumer", {})],
)
def test_newcomers_must_fit_in(kind, protocols):
    stage = Stage()
    stage.stable("a")

    answer = stage.join(client="b", kind=kind, protocols=protocols).response
    assert answer == refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def test_groups_of_other_kinds_keep_their_secrets():
    stage = Stage()
    answer = stage.join(version=3, kind="connect", protocols={"sessioned": b"\xff\xfe"}).response

    assert answer.protocol_type == "connect"
    assert answer.members == [JoinGroupResponse.Member(member_id="c-1", metadata=b"\xff\xfe")]


def test_the_protocol_with_the_most_votes_wins_of_those_that_all_have():
    stage = Stage(group_initial_rebalance_delay_ms=1000)
    tickets = [
        stage.join(client=client, version=3, protocols=dict.fromkeys(names, b""))
        for client, names in [("a", ["x", "y", "z"]), ("b", ["z", "y"]), ("c", ["x", "y", "z"]), ("d", ["y", "z"])]
    ]
    stage.at(1).at(2)

    assert {each.response.protocol_name for each in tickets} == {"y"}


def test_only_the_leader_hears_of_the_others():
    stage = Stage(group_initial_rebalance_delay_ms=1000)
    first, second = stage.join(client="a", version=3), stage.join(client="b", version=3)
    stage.at(1).at(2)

    assert first.response == joined("a-1", "a-1", members=["a-1", "b-1"])
    assert second.response == joined("b-1", "a-1")


def test_a_group_has_room_for_so_many():
    stage = Stage(group_max_size=2)
    generation = stage.stable("a", "b")

    assert stage.join(client="c", version=3).response == refused(ErrorCode.GROUP_MAX_SIZE_REACHED, protocol="")
    stage.join("a-1")  # members do join again
    assert stage.heartbeat("b-1", generation) == ErrorCode.REBALANCE_IN_PROGRESS
    third = stage.join(client="c", version=3)  # quicker than b
    assert third.response is None
    assert stage.join("b-1").response == refused(ErrorCode.GROUP_MAX_SIZE_REACHED)
    assert third.response.generation_id == generation + 1


# -- the first rebalance -------------------------------------------------------------------------------


def test_an_empty_group_waits_a_little_for_more():
    stage = Stage(group_initial_rebalance_delay_ms=3000)
    first = stage.join(version=3)

    stage.at(2.9)
    assert first.response is None
    stage.at(3)
    assert first.response == joined("c-1", "c-1", members=["c-1"])


def test_it_waits_again_when_more_have_come_but_not_for_ever():
    stage = Stage(group_initial_rebalance_delay_ms=3000)
    first = stage.join(client="a", version=3, rebalance=8)
    for number, now in enumerate((2, 5, 7.5)):
        stage.at(now).join(client=f"b{number}", version=3, rebalance=8)
        if now == 2:
            stage.at(3)
        elif now == 5:
            stage.at(6)
    stage.at(7.9)
    assert first.response is None
    stage.at(8)
    assert len(first.response.members) == 4


def test_an_opening_group_that_is_left_becomes_empty():
    stage = Stage(group_initial_rebalance_delay_ms=3000)
    parked = stage.join(version=3)
    assert stage.leave("c-1") == [ErrorCode.NONE]
    assert parked.response == refused(ErrorCode.UNKNOWN_MEMBER_ID, protocol="")
    assert stage.group().state is State.PREPARING

    stage.at(3)
    assert (stage.group().state, stage.group().generation) == (State.EMPTY, 1)


# -- the assignment ------------------------------------------------------------------------------------


def test_everybody_hears_their_part_when_the_leaders_is_stored():
    stage = Stage(group_initial_rebalance_delay_ms=1000)
    stage.join(client="a", version=3)
    stage.join(client="b", version=3)
    stage.at(1).at(2)
    second = stage.sync("b-1", 1)
    assert second.response is None

    first = stage.sync("a-1", 1, a_1=b"A", b_1=b"B", nobody=b"?")
    assert first.response == SyncGroupResponse(protocol_type="consumer", protocol_name="range", assignment=b"A")
    assert second.response == SyncGroupResponse(protocol_type="consumer", protocol_name="range", assignment=b"B")
    assert stage.group().state is State.STABLE
    assert stage.log[-1] == (last_record(stage), -1)


def last_record(stage):
    members = [
        MemberMetadata(
            member_id=f"{each}-1",
            client_id=each,
            client_host="/h",
            rebalance_timeout=30000,
            session_timeout=10000,
            subscription=SUBSCRIBED,
            assignment=each.upper().encode(),
        )
        for each in "ab"
    ]
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=1,
        protocol="range",
        leader="a-1",
        current_state_timestamp=START_MS + 2000,
        members=members,
    )
    return type(stage.log[-1][0])(GroupMetadataKey(group="g"), value, 3)


def test_who_was_not_given_anything_has_nothing():
    stage = Stage()
    stage.join(version=3)
    assert stage.sync("c-1", 1).response.assignment == b""


def test_who_asks_late_hears_their_part():
    stage = Stage()
    generation = stage.stable("a", "b")
    assert stage.sync("b-1", generation).response.assignment == b"b-1"


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"member": "x"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation": 9}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation": -1}, ErrorCode.ILLEGAL_GENERATION),
        ({"kind": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol": "other"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"kind": "consumer", "protocol": "range"}, ErrorCode.NONE),
        ({"instance": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group": "other"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_may_ask_for_an_assignment(asked, code):
    stage = Stage()
    generation = stage.stable("a")
    assert stage.sync(**{"member": "a-1", "generation": generation, **asked}).response.error_code == code


def test_in_a_rebalance_there_is_no_assignment():
    stage = Stage()
    generation = stage.stable("a", "b")
    stage.join("a-1")

    assert stage.sync("b-1", generation).response == SyncGroupResponse(
        error_code=ErrorCode.REBALANCE_IN_PROGRESS, assignment=b""
    )


def test_a_newcomer_interrupts_those_who_wait_for_the_leader():
    stage = Stage(group_initial_rebalance_delay_ms=1000)
    stage.join(client="a", version=3)
    stage.join(client="b", version=3)
    stage.at(1).at(2)
    waiting = stage.sync("b-1", 1)

    stage.join(client="c", version=3)
    assert waiting.response == SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS, assignment=b"")
    assert stage.group().state is State.PREPARING


def test_who_does_not_ask_for_its_part_is_put_out():
    stage = Stage(group_initial_rebalance_delay_ms=1000)
    for client in "ab":
        stage.join(client=client, version=3, session=100, rebalance=30)
    stage.at(1).at(2)
    stage.sync("a-1", 1, a_1=b"A")

    stage.at(31.9)
    assert stage.group().state is State.STABLE
    stage.at(32)
    assert stage.group().state is State.PREPARING
    assert list(stage.group().members) == ["a-1"]


# -- joining again -------------------------------------------------------------------------------------


def test_a_repeated_join_hears_the_same_answer():
    stage = Stage()
    answer = stage.join(version=3).response

    assert stage.join("c-1").response == answer
    assert stage.group().state is State.COMPLETING


def test_a_follower_that_joins_again_unchanged_changes_nothing():
    stage = Stage()
    generation = stage.stable("a", "b")

    assert stage.join("b-1").response == joined("b-1", "a-1", generation)
    assert stage.group().state is State.STABLE


def test_a_follower_with_news_makes_everybody_join():
    stage = Stage()
    stage.stable("a", "b")

    assert stage.join("b-1", protocols={"range": subscription("u")}).response is None
    assert stage.group().state is State.PREPARING


def test_a_leader_that_joins_again_makes_everybody_join():
    stage = Stage()
    stage.stable("a", "b")

    assert stage.join("a-1").response is None
    assert stage.group().state is State.PREPARING


def test_a_join_on_another_connection_takes_the_place_of_the_first():
    stage = Stage()
    stage.stable("a", "b")
    first, second = stage.join("a-1"), stage.join("a-1")
    assert first.response == refused(ErrorCode.REBALANCE_IN_PROGRESS, "a-1")

    stage.join("b-1")
    assert second.response.generation_id == 3


def test_who_does_not_join_again_in_time_is_left_behind():
    stage = Stage()
    generation = stage.stable("a", "b", rebalance=8)
    first = stage.join("a-1", rebalance=8)
    stage.at(7.9)
    assert first.response is None
    assert stage.heartbeat("b-1", generation) == ErrorCode.REBALANCE_IN_PROGRESS

    stage.at(8)
    assert first.response == joined("a-1", "a-1", generation + 1, ["a-1"])
    assert stage.heartbeat("b-1", generation) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_leader_that_does_not_join_again_is_succeeded():
    stage = Stage()
    stage.stable("a", "b", rebalance=8)
    second = stage.join("b-1", protocols={"range": subscription("u")}, rebalance=8)

    stage.at(8)
    assert second.response.leader == "b-1"


# -- the table -----------------------------------------------------------------------------------------


def test_every_transition_of_the_table_is_taken_and_no_other(monkeypatch):
    taken = set()
    enter = ClassicGroup._enter
    monkeypatch.setattr(
        ClassicGroup, "_enter", lambda self, state: (taken.add((self.state, state)), enter(self, state))[1]
    )
    stage = Stage()
    stage.stable("a")  # empty, preparing, completing, stable
    stage.join(client="b", version=3)  # stable, preparing
    stage.join("a-1")  # preparing, completing
    stage.join(client="c", version=3)  # completing, preparing
    stage.leave("a-1", "b-1", "c-1")  # preparing, empty

    assert taken == {(before, after) for before, following in NEXT.items() for after in following}


@pytest.mark.parametrize("before", State)
@pytest.mark.parametrize("after", State)
def test_a_group_does_not_go_where_the_table_does_not_lead(before, after):
    group = ClassicGroup("g", Stage().world)
    group.state = before
    if after in NEXT[before]:
        group._enter(after)
        assert group.state is after
    else:
        with pytest.raises(AssertionError):
            group._enter(after)
