"""Consumer groups of the new protocol (KIP-848), heartbeat by heartbeat."""

import pytest

from trilogue.broker.cluster.image import Image
from trilogue.broker.groups.consumer.member import MemberState
from trilogue.broker.groups.tests.stage import START_MS, Stage, image, topic_id
from trilogue.wire.errors import ErrorCode
from trilogue.wire.internal import consumer_groups as stored


def t(*partitions, topic="t"):
    return {(topic, each) for each in partitions}


def alone(**more):
    """A member that has everything."""
    stage = Stage(**more)
    assert stage.beat("a") == (2, t(0, 1, 2, 3))
    return stage


def pair(**more):
    """Two members, a and b, that share t: both in epoch 3."""
    stage = alone(**more)
    assert stage.beat("b") == (2, set())
    stage.at(1)
    assert stage.beat("a", 2) == (2, t(0, 1))
    assert stage.beat("a", 2, owned=t(0, 1)) == (3, None)
    assert stage.beat("b", 2) == (3, t(2, 3))
    return stage


# -- joining and staying -----------------------------------------------------------------------------


def test_who_is_alone_has_everything_at_once():
    stage = alone()
    assert stage.beat("a", 2) == (2, None)
    assert stage.group().state_name == "Stable"


def test_what_is_stored_of_a_first_heartbeat_is_what_kafka_stores():
    stage = alone()
    target = stored.ConsumerGroupTargetAssignmentMemberValue
    current = stored.ConsumerGroupCurrentMemberAssignmentValue
    everything = stored.TopicPartitions(topic_id=topic_id("t"), partitions=[0, 1, 2, 3], assignment_epochs=[2] * 4)

    assert [put.value for put, _ in stage.log] == [
        stored.ConsumerGroupMemberMetadataValue(
            instance_id=None,
            rack_id=None,
            client_id="c",
            client_host="/h",
            subscribed_topic_names=["t"],
            subscribed_topic_regex="",
            rebalance_timeout_ms=30000,
            server_assignor=None,
            classic_member_metadata=None,
        ),
        stored.ConsumerGroupMetadataValue(epoch=2, metadata_hash=stage.group().metadata_hash),
        target(topic_partitions=[target.TopicPartitions(topic_id=topic_id("t"), partitions=[0, 1, 2, 3])]),
        stored.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=2, assignment_timestamp=START_MS),
        current(
            member_epoch=2,
            previous_member_epoch=0,
            state=0,
            assigned_partitions=[everything],
            partitions_pending_revocation=[],
        ),
    ]


def test_a_heartbeat_that_changes_nothing_stores_nothing():
    stage = alone()
    before = len(stage.log)
    stage.beat("a", 2)
    stage.beat("a", 2, topics=["t"], owned=t(0, 1, 2, 3), rebalance=30)
    assert len(stage.log) == before


def test_who_tells_everything_hears_everything():
    stage = alone()
    assert stage.beat("a", 2, topics=["t"], owned=t(0, 1, 2, 3), rebalance=30) == (2, t(0, 1, 2, 3))


def test_before_v1_the_coordinator_names_its_members():
    assert Stage().beat("", version=0).member == "fresh"
    assert Stage().beat("", version=1).code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"group": ""}, ErrorCode.INVALID_REQUEST),
        ({"epoch": -3}, ErrorCode.INVALID_REQUEST),
        ({"rebalance": None}, ErrorCode.INVALID_REQUEST),
        ({"owned": t(0)}, ErrorCode.INVALID_REQUEST),
        ({"owned": None}, ErrorCode.INVALID_REQUEST),
        ({"instance": ""}, ErrorCode.INVALID_REQUEST),
        ({"rack": ""}, ErrorCode.INVALID_REQUEST),
        ({"epoch": -2}, ErrorCode.INVALID_REQUEST),
        ({"member": "", "epoch": 1}, ErrorCode.INVALID_REQUEST),
        ({"assignor": "nope"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        ({"assignor": "range"}, ErrorCode.NONE),
        ({"regex": "("}, ErrorCode.INVALID_REGULAR_EXPRESSION),
        ({"regex": r"(t)\1"}, ErrorCode.INVALID_REGULAR_EXPRESSION),
        ({"epoch": 5}, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"epoch": -1}, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"topics": []}, ErrorCode.NONE),
    ],
)
def test_what_a_first_heartbeat_may_say(asked, code):
    stage = Stage()
    assert stage.beat(**asked).code == code
    assert (stage.group() is None) == (code != ErrorCode.NONE)


def test_who_is_not_known_has_to_join():
    assert alone().beat("x", 2).code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_wrong_epoch_is_fenced():
    stage = pair()
    assert stage.beat("a", 4).code == ErrorCode.FENCED_MEMBER_EPOCH
    assert stage.beat("a", 1).code == ErrorCode.FENCED_MEMBER_EPOCH
    assert stage.beat("a", 2).code == ErrorCode.FENCED_MEMBER_EPOCH  # the last one, but it does not say what it has
    assert stage.beat("a", 2, owned=t(0, 3)).code == ErrorCode.FENCED_MEMBER_EPOCH


def test_the_last_epoch_will_do_if_the_answer_may_have_been_lost():
    assert pair().beat("a", 2, owned=t(0, 1)) == (3, None)


def test_who_starts_over_hears_what_it_has():
    assert pair().beat("a", 0) == (3, t(0, 1))


def test_a_group_has_room_for_so_many():
    stage = alone(group_consumer_max_size=1)
    assert stage.beat("b").code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert stage.beat("a", 2).code == ErrorCode.NONE


# -- giving back before taking -------------------------------------------------------------------------


def test_partitions_are_given_back_before_they_are_taken():
    stage = alone()
    stage.beat("b")
    stage.at(1)

    assert stage.beat("b", 2) == (3, None)
    assert stage.group().members["b"].state is MemberState.UNRELEASED_PARTITIONS
    assert stage.beat("a", 2) == (2, t(0, 1))
    assert stage.group().members["a"].state is MemberState.UNREVOKED_PARTITIONS
    assert stage.beat("b", 3) == (3, None)  # a has not said that it has given anything back
    assert stage.beat("a", 2, owned=t(0, 1, 2)) == (2, None)
    assert stage.beat("b", 3) == (3, None)  # two of three are still a's
    assert stage.beat("a", 2, owned=t(0, 1)) == (3, None)
    assert stage.beat("b", 3) == (3, t(2, 3))
    assert stage.group().state_name == "Stable"


def test_who_gives_nothing_back_in_time_is_put_out():
    stage = alone()
    stage.beat("b", rebalance=5)
    stage.at(1)
    stage.beat("a", 2, owned=t(0, 1, 2, 3))
    for now in (10, 20, 30):
        stage.at(now).beat("a", 2)

    stage.at(30.9)
    assert stage.beat("a", 2).code == ErrorCode.NONE
    stage.at(31)
    assert stage.beat("a", 2).code == ErrorCode.UNKNOWN_MEMBER_ID
    assert stage.beat("b", 2) == (4, t(0, 1, 2, 3))


def test_an_assignment_is_kept_for_an_interval():
    stage = alone()
    stage.beat("b")
    stage.at(0.9)
    assert stage.beat("a", 2) == (2, None)
    assert stage.group().state_name == "Assigning"
    stage.at(1)
    assert stage.beat("a", 2) == (2, t(0, 1))
    assert stage.group().state_name == "Reconciling"


def test_the_interval_is_over_if_the_clock_is_put_back():
    stage = alone()
    stage.beat("b")
    stage.world.now_ms -= 3_600_000
    assert stage.beat("a", 2) == (2, t(0, 1))


def test_the_interval_may_be_the_groups_own():
    stage = Stage()
    stage.world.image = Image(
        topics=stage.world.image.topics,
        topic_names=stage.world.image.topic_names,
        configs={("groups", "g"): {"consumer.assignment.interval.ms": "0", "consumer.heartbeat.interval.ms": "7000"}},
    )
    assert stage.beat("a").response.heartbeat_interval_ms == 7000
    stage.beat("b")
    assert stage.beat("a", 2) == (2, t(0, 1))


# -- leaving ---------------------------------------------------------------------------------------------


def test_what_a_member_leaves_is_the_others():
    stage = pair()
    stage.at(2)
    assert stage.beat("b", -1) == (-1, None)

    assert stage.beat("a", 3) == (4, t(0, 1, 2, 3))
    assert stage.beat("b", 3).code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_is_silent_for_a_session_is_gone():
    stage = pair()
    stage.at(20).beat("a", 3)
    stage.at(45.9)
    assert set(stage.group().members) == {"a", "b"}
    stage.at(46)
    assert set(stage.group().members) == {"a"}
    assert stage.beat("a", 3) == (4, t(0, 1, 2, 3))


def test_a_group_that_all_have_left_is_empty():
    stage = alone()
    stage.beat("a", -1)
    assert (stage.group().state_name, stage.group().epoch, stage.group().metadata_hash) == ("Empty", 3, 0)
    assert stage.at(600).group() is None


# -- static members --------------------------------------------------------------------------------------


def static():
    stage = Stage()
    assert stage.beat("a", instance="i") == (2, t(0, 1, 2, 3))
    return stage


def test_an_instance_has_one_member_at_a_time():
    stage = static()
    assert stage.beat("b", instance="i").code == ErrorCode.UNRELEASED_INSTANCE_ID


def test_a_static_member_that_will_be_back_keeps_its_place():
    stage = static()
    stage.beat("z", instance="z")
    stage.at(1)
    stage.beat("a", 2, instance="i", owned=t(0, 1, 2, 3))
    stage.beat("a", 2, instance="i", owned=t(0, 1))
    assert stage.beat("z", 2, instance="z") == (3, t(2, 3))

    assert stage.beat("a", -2, instance="i") == (-2, None)
    assert stage.beat("z", 3, instance="z") == (3, None)
    assert stage.beat("b", instance="i") == (3, t(0, 1))
    assert stage.group().epoch == 3
    assert stage.beat("a", 3, instance="i").code == ErrorCode.FENCED_INSTANCE_ID
    assert stage.beat("b", 3, instance="i") == (3, None)
    assert stage.beat("b", 3, instance="j").code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_that_stays_away_is_gone_after_its_session():
    stage = static()
    stage.beat("a", -2, instance="i")
    stage.at(44.9)
    assert list(stage.group().members) == ["a"]
    stage.at(45)
    assert list(stage.group().members) == []


def test_a_static_member_may_leave_for_good():
    stage = static()
    assert stage.beat("x", -1, instance="i").code == ErrorCode.FENCED_INSTANCE_ID
    assert stage.beat("a", -1, instance="x").code == ErrorCode.UNKNOWN_MEMBER_ID
    assert stage.beat("a", -1, instance="i") == (-1, None)
    assert list(stage.group().members) == []


# -- topics ----------------------------------------------------------------------------------------------


def test_topics_that_are_not_there_yet_are_assigned_when_they_are():
    stage = Stage()
    assert stage.beat("a", topics=["t", "u"]) == (2, t(0, 1, 2, 3))
    stage.world.image = image(t=4, u=1)
    stage.at(1)
    assert stage.beat("a", 2) == (3, t(0, 1, 2, 3) | t(0, topic="u"))


def test_topics_that_grow_are_assigned_anew():
    stage = alone()
    stage.world.image = image(t=6)
    stage.at(1)
    assert stage.beat("a", 2) == (3, t(0, 1, 2, 3, 4, 5))


def test_topics_that_are_gone_are_given_back():
    stage = alone()
    stage.world.image = image(u=1)
    stage.at(1)
    assert stage.beat("a", 2) == (2, set())
    assert stage.beat("a", 2, owned=[]) == (3, None)


def test_a_change_of_other_topics_changes_nothing():
    stage = alone()
    stage.world.image = image(t=4, u=1)
    stage.at(1)
    assert stage.beat("a", 2) == (2, None)
    assert stage.group().epoch == 2


def test_who_subscribes_to_something_else_gives_back_what_it_has():
    stage = alone(topics={"t": 4, "u": 2})
    stage.at(1)
    assert stage.beat("a", 2, topics=["u"]) == (2, set())
    assert stage.beat("a", 2, owned=[]) == (3, t(0, 1, topic="u"))


def test_topics_by_pattern_from_beginning_to_end():
    stage = Stage(topics={"t1": 1, "t2": 1, "xt": 1, "tx": 1})
    assert stage.beat("a", regex="t[0-9]") == (2, t(0, topic="t1") | t(0, topic="t2"))

    stage.world.image = image(t1=1, t2=1, t3=1)
    stage.at(1)
    assert stage.beat("a", 2) == (3, t(0, topic="t1") | t(0, topic="t2") | t(0, topic="t3"))
    assert stage.group().patterns == {"t[0-9]": {"t1", "t2", "t3"}}


def test_a_pattern_that_nobody_has_any_more_is_forgotten():
    stage = Stage(topics={"t1": 1, "u1": 1})
    stage.beat("a", regex="t.*")
    stage.at(1).beat("a", 2, regex="u.*", owned=[])
    assert stage.group().patterns == {"u.*": {"u1"}}
    assert stage.beat("a", 3, regex="u.*", rebalance=30, owned=[]).assigned == t(0, topic="u1")


def test_who_subscribes_to_nothing_is_a_member_too():
    stage = Stage()
    assert stage.beat("a", topics=[]) == (1, set())
    assert stage.beat("a", 1, topics=["t"]) == (2, t(0, 1, 2, 3))


# -- offsets ---------------------------------------------------------------------------------------------


def test_who_may_commit_to_a_consumer_group():
    stage = pair()
    assert stage.commit(member="a", generation=3) == ErrorCode.NONE
    assert stage.commit(member="a", generation=3, by_id=topic_id("t"), version=10) == ErrorCode.NONE
    assert stage.commit(member="a", generation=4) == ErrorCode.STALE_MEMBER_EPOCH
    assert stage.commit(member="x", generation=3) == ErrorCode.UNKNOWN_MEMBER_ID
    assert stage.commit() == ErrorCode.UNKNOWN_MEMBER_ID
    assert stage.commit(member="a", generation=3, version=8) == ErrorCode.UNSUPPORTED_VERSION


def test_an_older_epoch_may_commit_what_it_had_then_and_has_still():
    stage = pair()
    assert stage.commit(member="a", generation=2, partition=0) == ErrorCode.NONE
    assert stage.commit(member="a", generation=1, partition=0) == ErrorCode.STALE_MEMBER_EPOCH
    assert stage.commit(member="a", generation=2, partition=2) == ErrorCode.STALE_MEMBER_EPOCH
    assert stage.commit(member="b", generation=2, partition=2) == ErrorCode.STALE_MEMBER_EPOCH


def test_who_may_ask_a_consumer_group_for_offsets():
    stage = pair()
    stage.commit(7, member="a", generation=3)
    assert stage.fetch(0) == [(0, 7, ErrorCode.NONE)]
    assert stage.fetch(0, member="a", epoch=3) == [(0, 7, ErrorCode.NONE)]
    assert stage.fetch(0, member="a", epoch=2) == ErrorCode.STALE_MEMBER_EPOCH
    assert stage.fetch(0, member="x", epoch=3) == ErrorCode.UNKNOWN_MEMBER_ID


def test_in_a_transaction_the_epoch_is_a_generation():
    stage = pair()
    assert stage.commit_in_transaction(1, member="a", generation=3) == ErrorCode.NONE
    assert stage.commit_in_transaction(1, member="a", generation=2) == ErrorCode.NONE, "it has it since then"
    assert stage.commit_in_transaction(1, member="a", generation=2, partition=2) == ErrorCode.ILLEGAL_GENERATION
    assert stage.commit_in_transaction(1, member="a", generation=1) == ErrorCode.ILLEGAL_GENERATION
    assert stage.commit_in_transaction(1, member="a", generation=4) == ErrorCode.ILLEGAL_GENERATION
    assert stage.commit_in_transaction(1) == ErrorCode.NONE, "producers of old say nothing about themselves"
    assert stage.commit_in_transaction(1, member="x", generation=3) == ErrorCode.UNKNOWN_MEMBER_ID


# -- after a restart, and from one kind to the other -----------------------------------------------------


def test_everything_is_the_same_after_a_restart():
    stage = pair()
    stage.beat("c", regex="t.*")
    stage.at(2).beat("a", 3)
    before = vars(stage.group()).copy()
    stage.open()
    after = vars(stage.group())

    for name in ("epoch", "assignment_epoch", "metadata_hash", "members", "target", "patterns", "_statics", "_owners"):
        assert after[name] == before[name], name
    assert stage.beat("b", 3).code == ErrorCode.NONE
    stage.at(31.9)
    assert set(stage.group().members) == {"a", "b", "c"}
    stage.at(32)  # b was to give something back
    assert set(stage.group().members) == {"a", "c"}
    stage.at(46.9)
    assert set(stage.group().members) == {"a", "c"}
    stage.at(47)
    assert set(stage.group().members) == set()


def test_an_empty_group_of_one_kind_becomes_one_of_the_other():
    stage = Stage()
    generation = stage.stable("a")
    stage.commit(5, member="a-1", generation=generation)
    stage.leave("a-1")

    assert stage.beat("m") == (2, t(0, 1, 2, 3))
    stage.open()
    assert (stage.group().kind, stage.offset()) == ("consumer", 5)
    stage.beat("m", -1)
    assert stage.join(version=3).response.generation_id == 1
    stage.open()
    assert (stage.group().kind, stage.offset()) == ("classic", 5)
