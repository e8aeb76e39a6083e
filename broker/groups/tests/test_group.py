"""What holds for groups of every kind, and for kinds to come."""

import pytest

from trilogue.broker.groups.classic.state import ClassicState, State
from trilogue.broker.groups.coordinator import KIND_OF, KINDS
from trilogue.broker.groups.group import Group
from trilogue.broker.groups.tests.stage import Stage
from trilogue.broker.machines.records import kinds
from trilogue.broker.names import OFFSETS_TOPIC
from trilogue.wire.errors import ErrorCode
from trilogue.wire.internal import consumer_groups, offsets


class Choir(ClassicState, Group):
    """Whose members never say a word: all that it is asked is answered by `Group`."""

    kind = "choir"

    def __init__(self, group_id, world):
        super().__init__(group_id, world)
        self.state = State.STABLE

    def tick(self, now):
        return []

    loaded = tick

    def touch(self, now, member_id):
        pass


@pytest.fixture
def stage():
    stage = Stage()
    stage.machine.groups["g"] = Choir("g", stage.world)
    return stage


def test_a_group_that_knows_no_classic_members_has_none(stage):
    assert stage.join("m").response.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert stage.join("m").response.member_id == ""
    assert stage.sync("m", 1).response.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert stage.heartbeat("m", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert stage.leave("m", "n") == [ErrorCode.UNKNOWN_MEMBER_ID] * 2


@pytest.mark.parametrize("epoch", [0, 1, -1])
def test_a_group_that_is_neither_classic_nor_empty_does_not_become_a_consumer_group(stage, epoch):
    answer = stage.beat("m", epoch).response
    assert (answer.error_code, answer.error_message) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        "Group g is not a consumer group.",
    )
    assert stage.group().kind == "choir"


def test_every_record_is_of_one_kind():
    keys = {key for key, _ in kinds(OFFSETS_TOPIC).values()}
    ours = {key for key in keys if key.__module__ in (consumer_groups.__name__, offsets.__name__)}

    assert set(KIND_OF) == ours - {offsets.OffsetCommitKey, offsets.LegacyOffsetCommitKey}
    assert len(KIND_OF) == sum(len(kind.keys) for kind in KINDS)
