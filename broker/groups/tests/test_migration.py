"""Groups that change their protocol while their members live: from the classic one to the new, and restarts between."""

import pytest

from trilogue.broker.groups.consumer.migration import POLICY
from trilogue.broker.groups.tests.migrating import EAGER, classic, cooperative, given, has, kinds, migrating, rejoin, t
from trilogue.broker.groups.tests.stage import Stage, subscription, topic_id
from trilogue.wire.errors import ErrorCode
from trilogue.wire.internal import consumer_groups as stored

# -- upgrades ------------------------------------------------------------------------------------------


def test_a_consumer_makes_a_classic_group_one_of_the_new_protocol():
    stage = migrating()

    assert kinds(stage) == ("consumer", {"c-1": True, "n": False})
    assert stage.group().state_name == "Stable"
    assert stage.heartbeat("c-1", 2) == ErrorCode.NONE


def test_what_an_upgrade_stores_is_what_kafka_stores():
    stage = classic("c")
    before = len(stage.log)
    stage.beat("n", topics=[])

    everything = stored.TopicPartitions(topic_id=topic_id("t"), partitions=[0, 1, 2, 3], assignment_epochs=[1] * 4)
    metadata = stored.ConsumerGroupMemberMetadataValue
    told = [put for put, _ in stage.log[before:]]
    assert [type(put.key).__name__ for put in told[:6]] == [
        "GroupMetadataKey",
        "ConsumerGroupMemberMetadataKey",
        "ConsumerGroupMetadataKey",
        "ConsumerGroupTargetAssignmentMemberKey",
        "ConsumerGroupTargetAssignmentMetadataKey",
        "ConsumerGroupCurrentMemberAssignmentKey",
    ]
    assert told[0].value is None
    assert told[1].value == metadata(
        instance_id=None,
        rack_id=None,
        client_id="c",
        client_host="/h",
        subscribed_topic_names=["t"],
        subscribed_topic_regex="",
        rebalance_timeout_ms=30_000,
        server_assignor=None,
        classic_member_metadata=metadata.ClassicMemberMetadata(
            session_timeout_ms=10_000,
            supported_protocols=[
                metadata.ClassicMemberMetadata.SupportedProtocol(name="range", metadata=subscription("t"))
            ],
        ),
    )
    assert told[2].value.epoch == told[4].value.assignment_epoch == 1
    assert told[5].value == stored.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=1,
        previous_member_epoch=1,
        state=0,
        assigned_partitions=[everything],
        partitions_pending_revocation=[],
    )


def test_whoever_waits_when_a_group_is_upgraded_asks_again():
    stage = Stage(group_initial_rebalance_delay_ms=3000)
    waiting = stage.join(client="c", version=3, protocols=EAGER)

    assert stage.beat("n").code == ErrorCode.NONE
    assert waiting.response.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert kinds(stage) == ("consumer", {"c-1": True, "n": False})


def test_a_refused_heartbeat_leaves_the_group_and_whoever_waits_as_they_were():
    stage = Stage(group_initial_rebalance_delay_ms=3000)
    waiting = stage.join(client="c", version=3, protocols=EAGER)

    assert stage.beat("n", topics=None, regex="(").code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert waiting.response is None
    assert stage.group().kind == "classic"


@pytest.mark.parametrize(
    ("settings", "kind", "protocols"),
    [
        ({POLICY: "disabled"}, "consumer", EAGER),
        ({POLICY: "Downgrade"}, "consumer", EAGER),
        ({"group.consumer.max.size": 1}, "consumer", EAGER),
        ({}, "connect", EAGER),
        ({}, "consumer", {"range": b"nonsense"}),
    ],
)
def test_groups_that_stay_classic(settings, kind, protocols):
    stage = Stage(**settings)
    stage.stable("c", "d", kind=kind, protocols=protocols)

    assert stage.beat("n").code == ErrorCode.GROUP_ID_NOT_FOUND
    assert stage.group().kind == "classic"


def test_a_group_whose_assignor_keeps_notes_in_assignments_stays_classic():
    stage = Stage()
    generation = stage.join(client="c", version=3, protocols=EAGER).response.generation_id
    stage.sync("c-1", generation, c_1=given(0)[:-4] + b"\0\0\0\x04note")

    assert stage.beat("n").code == ErrorCode.GROUP_ID_NOT_FOUND


def test_only_who_joins_upgrades():
    stage = classic("c")

    assert stage.beat("n", 3).code == ErrorCode.GROUP_ID_NOT_FOUND
    assert stage.beat("n", -1).code == ErrorCode.GROUP_ID_NOT_FOUND
    assert stage.group().kind == "classic"


# -- classic members in a consumer group -----------------------------------------------------------------


def test_a_classic_member_joins_a_consumer_group():
    stage = Stage(group_consumer_assignment_interval_ms=0)
    assert stage.beat("n") == (2, t(0, 1, 2, 3))

    first = stage.join(protocols=EAGER, fresh="new").response
    assert (first.error_code, first.member_id) == (ErrorCode.MEMBER_ID_REQUIRED, "new")
    assert rejoin(stage, "new") == (3, set())
    assert stage.heartbeat("new", 3) == ErrorCode.NONE, "what it is to have is not free yet"
    assert stage.beat("n", 2, owned=t(0, 1, 2, 3)) == (2, t(0, 1))
    assert stage.beat("n", 2, owned=t(0, 1)) == (3, None)
    assert stage.heartbeat("new", 3) == ErrorCode.REBALANCE_IN_PROGRESS, "now it is"
    assert rejoin(stage, "new") == (3, t(2, 3))
    assert stage.heartbeat("new", 3) == ErrorCode.NONE


def test_a_cooperative_member_gives_back_before_it_gets_the_new_epoch():
    stage = Stage(group_consumer_assignment_interval_ms=0)
    stage.beat("n", topics=[])
    assert rejoin(stage, "c", cooperative()) == (2, t(0, 1, 2, 3))
    assert stage.beat("n", topics=["t"]) == (3, set())

    assert stage.heartbeat("c", 2) == ErrorCode.REBALANCE_IN_PROGRESS
    assert rejoin(stage, "c", cooperative(0, 1, 2, 3)) == (2, t(0, 1)), "it is asked to give back the others"
    assert stage.heartbeat("c", 2) == ErrorCode.REBALANCE_IN_PROGRESS
    assert rejoin(stage, "c", cooperative(0, 1)) == (3, t(0, 1))
    assert stage.heartbeat("c", 3) == ErrorCode.NONE
    assert stage.beat("n", 3) == (3, t(2, 3))


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"kind": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": {}}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": {"other": subscription("t")}}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": {"range": b""}, "version": 3}, ErrorCode.UNKNOWN_SERVER_ERROR),
        ({"instance": "i", "member": "stranger"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_joins_that_a_consumer_group_refuses(more, code):
    assert migrating().join(**more).response.error_code == code


def test_a_full_consumer_group_takes_no_more_classic_members():
    stage = Stage(group_consumer_max_size=1)
    stage.beat("n")

    assert stage.join(version=3, protocols=EAGER).response.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_who_is_no_classic_member_is_told_so():
    stage = migrating()

    for member, generation, code in [
        ("n", 2, ErrorCode.UNKNOWN_MEMBER_ID),
        ("stranger", 2, ErrorCode.UNKNOWN_MEMBER_ID),
        ("c-1", 1, ErrorCode.ILLEGAL_GENERATION),
    ]:
        assert stage.heartbeat(member, generation) == code
        assert has(stage.sync(member, generation)) == code
    assert has(stage.sync("c-1", 2, kind="connect")) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert has(stage.sync("c-1", 2, protocol="mine")) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert has(stage.sync("c-1", 2, kind="consumer", protocol="range")) == t(0, 1)


def test_a_member_that_is_behind_is_told_to_join_again_when_it_asks_what_it_has():
    stage = migrating()
    stage.beat("m")

    assert has(stage.sync("c-1", 2)) == ErrorCode.REBALANCE_IN_PROGRESS


def test_classic_members_commit_as_before():
    stage = migrating()

    assert stage.commit(5, member="c-1", generation=2, version=5) == ErrorCode.NONE
    assert stage.commit(6, member="c-1", generation=1, version=5) == ErrorCode.ILLEGAL_GENERATION
    assert stage.commit(6, member="c-1", generation=3, version=5) == ErrorCode.ILLEGAL_GENERATION
    assert stage.commit(6, member="n", generation=2, version=5) == ErrorCode.UNSUPPORTED_VERSION
    assert stage.offset() == 5


def test_a_classic_member_leaves_a_consumer_group():
    stage = migrating()

    assert stage.leave("stranger", "c-1", instances=["i"]) == [
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert kinds(stage) == ("consumer", {"n": False})
    assert stage.beat("n", 2, owned=t(2, 3)) == (3, t(0, 1, 2, 3))


def test_a_silent_classic_member_is_put_out_after_its_own_session():
    stage = migrating()
    stage.at(9.9).beat("n", 2)
    assert "c-1" in stage.group().members
    stage.at(10)
    assert "c-1" not in stage.group().members


def test_a_classic_member_that_does_not_join_again_is_put_out():
    stage = migrating()
    stage.beat("m")
    for now in range(0, 30, 5):
        stage.at(now)
        assert stage.heartbeat("c-1", 2) == ErrorCode.REBALANCE_IN_PROGRESS
    stage.at(29.9)
    assert "c-1" in stage.group().members
    stage.at(30)
    assert stage.heartbeat("c-1", 2) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_classic_member_that_does_not_ask_what_it_has_is_put_out():
    stage = migrating()
    stage.join("c-1", protocols=EAGER)
    for now in (5, 10, 15, 20, 25, 29.9):
        stage.at(now)
        assert stage.heartbeat("c-1", 2) == ErrorCode.NONE
    stage.at(30)
    assert stage.heartbeat("c-1", 2) == ErrorCode.UNKNOWN_MEMBER_ID


# -- static members --------------------------------------------------------------------------------------


def test_a_static_member_comes_back_with_the_new_protocol_and_then_with_the_old():
    stage = classic("c", "d", instance="i-")
    c = stage.group()._statics["i-c"]
    d = stage.group()._statics["i-d"]

    assert stage.beat("n", instance="i-c") == (2, t(0, 1)), "it takes its own place"
    assert kinds(stage) == ("consumer", {d: True, "n": False})
    assert stage.heartbeat(c, 2, instance="i-c") == ErrorCode.FENCED_INSTANCE_ID
    assert stage.heartbeat(d, 2, instance="i-d") == ErrorCode.NONE, "nothing has changed for the other"

    back = stage.join(instance="i-c", protocols=EAGER, fresh="back").response
    assert (stage.group().kind, stage.group().state_name) == ("classic", "Stable")
    assert back.generation_id == stage.group().generation == 2
    assert has(stage.sync(back.member_id, 2, instance="i-c")) == t(0, 1)
    assert stage.heartbeat(d, 2, instance="i-d") == ErrorCode.NONE


def test_a_static_member_that_comes_back_otherwise_has_the_group_rebalance():
    stage = classic("c", instance="i-")
    stage.beat("n", instance="i-c")

    back = stage.join(instance="i-c", protocols={"range": subscription("t", "u")}, fresh="back").response
    assert back.generation_id == 0
    assert stage.group().state_name == "PreparingRebalance"
    assert has(stage.sync(back.member_id, 0, instance="i-c")) == ErrorCode.ILLEGAL_GENERATION


def test_a_static_member_that_was_replaced_leaves_no_alarm_behind():
    stage = Stage()
    stage.beat("a", instance="i")
    stage.beat("a", -2, instance="i")
    stage.beat("b", instance="i")
    stage.at(40).beat("b", 2)
    stage.at(46)

    assert stage.machine.deadline > 46
    assert "b" in stage.group().members


# -- restarts --------------------------------------------------------------------------------------------


def test_a_group_in_the_middle_of_a_migration_survives_a_restart():
    stage = migrating()
    before = stage.group().members
    stage.open()

    assert stage.group().members == before
    assert stage.heartbeat("c-1", 2) == ErrorCode.NONE
    assert stage.beat("n", 2) == (2, None)
    stage.at(10)
    assert "c-1" not in stage.group().members, "its session is still its own"


def test_a_downgraded_group_survives_a_restart():
    stage = migrating()
    stage.beat("n", -1)
    stage.open()

    assert (stage.group().kind, stage.group().generation) == ("classic", 2)
    assert stage.join("c-1", protocols=EAGER).response.generation_id == 3


def test_an_upgrade_is_one_batch():
    """A crash must not leave a consumer group in which nobody speaks the new protocol."""
    stage = classic("c")
    stored_before = []
    carry_out = stage.carry_out

    def watch(todo):
        stored_before.extend(type(effect).__name__ for effect in todo)
        return carry_out(todo)

    stage.carry_out = watch
    stage.beat("n")
    assert stored_before == ["Store", "Reply"]
