"""Groups that go back to the classic protocol while their members live."""

import pytest

from trilogue.broker.groups.consumer.migration import POLICY
from trilogue.broker.groups.tests.migrating import EAGER, classic, given, has, kinds, migrating, rejoin, t
from trilogue.broker.groups.tests.stage import Stage, subscription
from trilogue.wire.errors import ErrorCode
from trilogue.wire.internal.offsets import GroupMetadataKey, GroupMetadataValue

# -- downgrades ------------------------------------------------------------------------------------------


def leaves(stage):
    stage.beat("n", -1)


def expires(stage):
    for now in (9, 18, 27, 36, 44.9):
        stage.at(now)
        assert stage.heartbeat("c-1", 2) == ErrorCode.NONE
    stage.at(45)


@pytest.mark.parametrize("go", [leaves, expires])
def test_when_the_last_of_the_new_protocol_goes_the_group_is_classic_again(go):
    stage = migrating()
    go(stage)

    assert (stage.group().kind, stage.group().state_name) == ("classic", "PreparingRebalance")
    assert stage.heartbeat("c-1", 2) == ErrorCode.REBALANCE_IN_PROGRESS
    joined = stage.join("c-1", protocols=EAGER).response
    assert (joined.generation_id, joined.leader) == (3, "c-1")
    assert has(stage.sync("c-1", 3, c_1=given(0, 1, 2, 3))) == t(0, 1, 2, 3)
    assert stage.heartbeat("c-1", 3) == ErrorCode.NONE


def test_a_classic_and_the_last_new_member_that_die_together_leave_a_classic_group():
    stage = migrating()
    rejoin(stage, "d", session=60)
    kept = stage.beat("n", 2, owned=t(2, 3)).assigned
    stage.beat("n", 2, owned=kept)
    rejoin(stage, "c-1", session=45)  # as long as that of the new protocol
    stage.at(44.9)
    assert members_of(stage) == ("consumer", {"c-1", "d", "n"})
    stage.at(45).at(45)
    assert members_of(stage) == ("classic", {"d"})


def test_a_member_that_says_nothing_in_the_protocol_of_all_gets_the_oldest_assignment():
    stage = Stage(group_consumer_assignment_interval_ms=0)
    stage.beat("n")
    rejoin(stage, "c", {"mine": subscription("t"), "range": b""})
    rejoin(stage, "d")
    stage.beat("n", -1)

    assert members_of(stage) == ("classic", {"c", "d"})
    assert stage.group().protocol == "range"


def members_of(stage):
    return stage.group().kind, set(stage.group().members)


def test_what_a_downgrade_stores_is_what_kafka_stores():
    stage = migrating()
    before = len(stage.log)
    stage.beat("n", -1)

    told = [put for put, _ in stage.log[before:]]
    assert [put.value for put in told[:-1]] == [None] * 8, "three for each member, two for the group"
    assert told[-1].key == GroupMetadataKey(group="g")
    assert told[-1].value == GroupMetadataValue(
        protocol_type="consumer",
        generation=2,
        protocol="range",
        leader="c-1",
        current_state_timestamp=stage.world.now_ms,
        members=[stage.group().members["c-1"].to_record("range", given(0, 1))],
    )


@pytest.mark.parametrize("policy", ["disabled", "upgrade"])
def test_a_group_that_may_not_be_downgraded_goes_on_as_it_is(policy):
    stage = migrating()
    stage.world.config = stage.world.config.__class__.parse(
        {POLICY: policy, "group.consumer.assignment.interval.ms": "0"}
    )
    stage.beat("n", -1)

    assert kinds(stage) == ("consumer", {"c-1": True})
    assert stage.heartbeat("c-1", 2) == ErrorCode.REBALANCE_IN_PROGRESS
    assert rejoin(stage, "c-1") == (3, t(0, 1, 2, 3))


def test_more_members_than_a_classic_group_may_have_stay_a_consumer_group():
    stage = Stage(group_max_size=1)
    stage.beat("n")
    rejoin(stage, "c")
    rejoin(stage, "d")
    stage.beat("n", -1)

    assert stage.group().kind == "consumer"


def test_the_last_member_leaves_an_empty_consumer_group():
    stage = Stage()
    stage.beat("n")
    stage.beat("n", -1)

    assert (stage.group().kind, stage.group().state_name) == ("consumer", "Empty")


def test_offsets_outlive_migrations():
    stage = classic("c")
    stage.commit(7, member="c-1", generation=1)
    stage.beat("n")
    assert stage.offset() == 7
    stage.beat("n", -1)
    assert stage.offset() == 7
    stage.open()
    assert stage.offset() == 7
