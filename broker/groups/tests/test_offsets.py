"""Committed offsets: who may commit, what is kept, for how long, and what transactions do to it."""

import pytest

from trilogue.broker.cluster.image import vanished
from trilogue.broker.groups.requests import offsets
from trilogue.broker.groups.tests.stage import START_MS, Stage, image, subscription, topic_id
from trilogue.broker.machines.effects import Put
from trilogue.wire.apis.offset_delete import OffsetDeleteRequest
from trilogue.wire.apis.offset_fetch import OffsetFetchRequest
from trilogue.wire.errors import ErrorCode
from trilogue.wire.internal.offsets import GroupMetadataKey, OffsetCommitKey, OffsetCommitValue

WEEK = 7 * 24 * 3600
CHECK = 600
"""Seconds between two looks at what has expired."""


def key(partition=0, topic="t", group="g"):
    return OffsetCommitKey(group=group, topic=topic, partition=partition)


# -- committing ------------------------------------------------------------------------------------


def test_a_simple_consumer_commits_without_being_a_member():
    stage = Stage()

    assert stage.commit(5, epoch=3) == ErrorCode.NONE
    value = OffsetCommitValue(offset=5, leader_epoch=3, metadata="m", commit_timestamp=START_MS, topic_id=topic_id("t"))
    assert stage.log == [(Put(key(), value, 4), -1)]
    assert stage.fetch(0, 1) == [(0, 5, ErrorCode.NONE), (1, -1, ErrorCode.NONE)]


def test_who_may_commit_to_a_stable_group():
    stage = Stage()
    generation = stage.stable("a")

    def commit(member="a-1", generation=generation, **more):
        return stage.commit(member=member, generation=generation, **more)

    assert commit() == ErrorCode.NONE
    assert commit(generation=generation + 1) == ErrorCode.ILLEGAL_GENERATION
    assert commit(generation=-1) == ErrorCode.ILLEGAL_GENERATION
    assert commit(member="x") == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(member="", generation=-1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(instance="i") == ErrorCode.UNKNOWN_MEMBER_ID


def test_members_may_commit_while_the_group_prepares_but_not_while_it_waits_for_the_leader():
    stage = Stage()
    generation = stage.stable("a", "b")
    stage.join("a-1")
    assert stage.commit(member="b-1", generation=generation) == ErrorCode.NONE

    stage.join("b-1")
    assert stage.commit(member="b-1", generation=generation + 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert stage.commit(member="b-1", generation=generation) == ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize(("version", "code"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_a_member_of_a_group_that_is_not_there_may_not(version, code):
    assert Stage().commit(member="x", generation=1, version=version) == code


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"topic": "nope"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"partition": 4}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"partition": -1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"partition": 3}, ErrorCode.NONE),
        ({"metadata": "x" * 4097}, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ({"metadata": "\U0001f600" * 2049}, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ({"metadata": "é" * 4096}, ErrorCode.NONE),
        ({"metadata": "\U0001f600" * 2048}, ErrorCode.NONE),
        ({"metadata": None}, ErrorCode.NONE),
        ({"by_id": topic_id("t"), "version": 10}, ErrorCode.NONE),
        ({"by_id": topic_id("u"), "version": 10}, ErrorCode.UNKNOWN_TOPIC_ID),
        ({"by_id": topic_id("t"), "version": 10, "partition": 4}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_what_may_be_committed(asked, code):
    assert Stage().commit(**asked) == code


def test_a_partition_that_is_not_there_is_the_first_thing_to_be_said():
    assert Stage().commit(topic="nope", member="x", generation=1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_offsets_are_there_after_a_restart():
    stage = Stage()
    stage.commit(5, partition=1)
    stage.commit(6, partition=1)
    stage.open()

    assert stage.offset(1) == 6


def test_offsets_may_be_kept_for_ever():
    stage = Stage()
    stage.commit(5, retention_ms=2**63 - 1, version=4)
    stage.open()

    assert stage.offset(0) == 5


# -- fetching --------------------------------------------------------------------------------------


def test_everything_a_group_has_committed():
    stage = Stage(topics={"t": 2, "u": 1})
    stage.commit(1, topic="u")
    stage.commit(2, partition=1)
    stage.commit(3, group="other")

    answer = stage.fetch(topics=None)
    assert answer == [(1, 2, ErrorCode.NONE), (0, 1, ErrorCode.NONE)]
    assert stage.fetch(topics=None, group="nobody") == []


def test_by_id_only_topics_that_are_there_can_be_named():
    stage = Stage(topics={"t": 2, "u": 1})
    stage.commit(1)
    Topic = OffsetFetchRequest.Group.Topic

    asked = [Topic(topic_id=topic_id(name), partition_indexes=[0]) for name in "tx"]
    assert stage.fetch(topics=asked, version=10) == [(0, 1, ErrorCode.NONE), (0, -1, ErrorCode.UNKNOWN_TOPIC_ID)]


def test_offsets_of_a_topic_do_not_outlive_it():
    stage = Stage(topics={"t": 2, "u": 1})
    stage.commit(1)
    stage.commit(2, topic="u")
    before, stage.world.image = stage.world.image, image(u=1)

    assert vanished(before, stage.world.image) == {"t"}
    stage.carry_out(stage.machine.forget_topics(stage.now, {"t"}))
    assert (stage.offset(0), stage.offset(topic="u")) == (-1, 2)
    assert stage.log[-1] == (Put(key(), None), -1)


# -- transactions ----------------------------------------------------------------------------------


def test_offsets_of_a_transaction_count_when_it_is_committed():
    stage = Stage()
    stage.commit(1)
    assert stage.commit_in_transaction(5, producer_id=7) == ErrorCode.NONE
    assert stage.fetch(0, 1) == [(0, 1, ErrorCode.NONE), (1, -1, ErrorCode.NONE)]
    assert stage.fetch(0, 1, stable=True) == [(0, -1, ErrorCode.UNSTABLE_OFFSET_COMMIT), (1, -1, ErrorCode.NONE)]

    stage.end_transaction(8, True)
    assert stage.offset() == 1
    stage.end_transaction(7, True)
    assert stage.fetch(0, stable=True) == [(0, 5, ErrorCode.NONE)]


def test_offsets_of_a_transaction_that_is_aborted_never_were():
    stage = Stage()
    stage.commit_in_transaction(5)
    stage.end_transaction(7, False)

    assert stage.fetch(0, stable=True) == [(0, -1, ErrorCode.NONE)]


def test_a_commit_after_that_of_a_transaction_counts_more():
    stage = Stage()
    stage.commit_in_transaction(5)
    stage.commit(6)
    stage.end_transaction(7, True)

    assert stage.offset() == 6


@pytest.mark.parametrize("committed", [True, False])
def test_transactions_are_the_same_after_a_restart(committed):
    stage = Stage()
    stage.commit(1)
    stage.commit_in_transaction(5, producer_id=7)
    stage.commit_in_transaction(6, producer_id=8, partition=1)
    stage.end_transaction(8, committed)
    before = stage.fetch(0, 1), stage.fetch(0, 1, stable=True)
    stage.open()

    assert (stage.fetch(0, 1), stage.fetch(0, 1, stable=True)) == before
    stage.end_transaction(7, committed)
    assert stage.offset() == (5 if committed else 1)


def test_who_may_commit_in_a_transaction():
    stage = Stage()
    generation = stage.stable("a")

    def commit(member="a-1", generation=generation, **more):
        return stage.commit_in_transaction(1, member=member, generation=generation, **more)

    assert commit() == ErrorCode.NONE
    assert commit(member="", generation=-1) == ErrorCode.NONE  # producers before v3 say nothing about themselves
    assert commit(generation=generation + 1) == ErrorCode.ILLEGAL_GENERATION
    assert commit(generation=-1) == ErrorCode.ILLEGAL_GENERATION
    assert commit(member="x") == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(group="other") == ErrorCode.ILLEGAL_GENERATION
    assert commit(topic="nope") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_in_a_transaction_one_may_commit_while_the_group_waits_for_the_leader():
    stage = Stage()
    stage.join(version=3)
    assert stage.commit_in_transaction(1, member="c-1", generation=1) == ErrorCode.NONE


# -- deleting --------------------------------------------------------------------------------------


def delete(stage, *partitions, topic="t", group="g"):
    Topic = OffsetDeleteRequest.Topic
    asked = Topic(name=topic, partitions=[Topic.Partition(partition_index=each) for each in partitions])
    answer = stage.ask(offsets.delete, OffsetDeleteRequest(group_id=group, topics=[asked])).response
    return answer.error_code or [each.error_code for topic in answer.topics for each in topic.partitions]


def test_offsets_are_deleted_on_request():
    stage = Stage()
    stage.commit(1)
    stage.commit_in_transaction(2, partition=1)

    assert delete(stage, 0, 1, 2, 9) == [*[ErrorCode.NONE] * 3, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    stage.end_transaction(7, True)
    assert stage.fetch(0, 1) == [(0, -1, ErrorCode.NONE), (1, -1, ErrorCode.NONE)]


def test_what_members_are_subscribed_to_stays():
    stage = Stage(topics={"t": 1, "u": 1})
    stage.stable("a")
    assert delete(stage, 0) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]
    assert delete(stage, 0, topic="u") == [ErrorCode.NONE]


def test_of_other_groups_nothing_is_deleted_while_they_have_members():
    stage = Stage()
    stage.join(version=3, kind="connect", protocols={"x": b""})
    assert delete(stage, 0) == ErrorCode.NON_EMPTY_GROUP
    stage.leave("c-1")
    assert delete(stage, 0) == [ErrorCode.NONE]
    assert delete(stage, 0, group="other") == ErrorCode.GROUP_ID_NOT_FOUND


# -- expiry (KIP-211) --------------------------------------------------------------------------------


def test_a_simple_consumers_offset_is_kept_for_a_week_after_its_last_commit():
    stage = Stage()
    stage.at(CHECK).commit(1)

    assert stage.at(WEEK).offset() == 1
    stage.at(WEEK + CHECK)
    assert stage.group() is None
    assert [put for put, _ in stage.log[1:]] == [Put(key(), None), *stage_tombstones()]


def stage_tombstones():
    return [Put(GroupMetadataKey(group="g"), None)]


def test_what_a_group_has_committed_is_kept_for_a_week_after_its_last_member():
    stage = Stage()
    generation = stage.stable("a")
    stage.commit(1, member="a-1", generation=generation)
    for now in range(0, 2 * WEEK, CHECK // 2):
        stage.now = float(now)  # it lives on its heartbeats, and commits nothing
        stage.world.now_ms = START_MS + now * 1000
        stage.group().touch(now, "a-1")
    stage.at(2 * WEEK)
    assert stage.offset() == 1
    stage.leave("a-1")

    assert stage.at(3 * WEEK - 1).offset() == 1
    stage.at(3 * WEEK + CHECK)
    assert stage.group() is None


def test_what_members_are_not_subscribed_to_any_more_expires_under_them():
    stage = Stage(topics={"t": 1, "u": 1})
    generation = stage.stable("a", session=1800, protocols={"range": subscription("t")})
    for topic in "tu":
        stage.commit(1, member="a-1", generation=generation, topic=topic)
    for now in range(0, WEEK, CHECK):
        stage.at(now).heartbeat("a-1", generation)
    assert (stage.offset(topic="t"), stage.offset(topic="u")) == (1, 1)

    stage.at(WEEK + 1).heartbeat("a-1", generation)
    stage.at(WEEK + CHECK).heartbeat("a-1", generation)
    assert (stage.offset(topic="t"), stage.offset(topic="u")) == (1, -1)


def test_clients_of_old_could_say_for_how_long():
    stage = Stage()
    stage.commit(1, version=2, retention_ms=CHECK * 1500)
    assert stage.log[0][0].version == 1

    assert stage.at(CHECK).offset() == 1
    stage.at(2 * CHECK)
    assert stage.group() is None


def test_what_a_transaction_may_still_change_is_kept():
    stage = Stage()
    stage.commit(1)
    stage.commit_in_transaction(2)
    assert stage.at(2 * WEEK).offset() == 1

    stage.end_transaction(7, False)
    stage.at(2 * WEEK + CHECK)
    assert stage.group() is None


def test_an_empty_group_without_offsets_is_forgotten():
    stage = Stage()
    stage.stable("a")
    stage.at(CHECK - 1)
    assert stage.group() is not None
    stage.at(CHECK)
    assert stage.group() is None
    stage.open()
    assert stage.group() is None
