"""How partitions move to other brokers: what a move is made of, how it ends, and how it is refused."""

from dataclasses import replace

import pytest

from trilogue.broker.cluster.image import NO_LEADER, BrokerInfo, Image, PartitionState, Topic, state_path, topic_path
from trilogue.broker.cluster.reassignment import cancelled, completed, completions, move_ops, moving, plan_moves
from trilogue.broker.cluster.store import Update
from trilogue.wire.errors import BrokerError, ErrorCode


def state(replicas, isr, leader=1, adding=(), removing=(), epoch=4, elr=()):
    """Whose members joined in the lives that `cluster` has them in."""
    epochs = tuple(10 * each for each in isr)
    return PartitionState(
        replicas, leader, epoch, isr, 10 * leader, 7, adding=adding, removing=removing, isr_epochs=epochs, elr=elr
    )


STATE = state((1, 2), (1, 2))


def cluster(*brokers, states=(STATE, STATE)):
    topic = Topic("t", bytes(16), states, 3)
    return Image(brokers={each: BrokerInfo(each, (), None, 10 * each) for each in brokers}, topics={"t": topic})


# -- beginning -------------------------------------------------------------------------------------


def test_a_move_begins_with_its_target_beside_the_replicas_that_there_are():
    assert moving(cluster(1, 2, 3, 4), STATE, (4, 3)) == state((4, 3, 1, 2), (1, 2), adding=(3, 4), removing=(1, 2))


def test_who_stays_is_neither_added_nor_removed():
    assert moving(cluster(1, 2, 3), STATE, (3, 1)) == state((3, 1, 2), (1, 2), adding=(3,), removing=(2,))


def test_another_order_is_there_at_once_and_nothing_else_changes():
    assert moving(cluster(1, 2), STATE, (2, 1)) == state((2, 1), (1, 2))


def test_where_it_is_already_is_no_move():
    assert moving(cluster(1, 2), STATE, (1, 2)) == STATE


def test_more_replicas_are_waited_for_and_fewer_are_not():
    assert moving(cluster(1, 2, 3), STATE, (1, 2, 3)) == state((1, 2, 3), (1, 2), adding=(3,))
    assert moving(cluster(1, 2, 3), STATE, (1,)) == state((1,), (1,), epoch=5)
    assert moving(cluster(1, 2, 3), STATE, (2,)) == state((2,), (2,), leader=2, epoch=5)


def test_fewer_replicas_are_waited_for_if_those_who_stay_are_not_in_sync():
    behind = state((1, 2), (1,))

    assert moving(cluster(1, 2), behind, (2,)) == state((2, 1), (1,), removing=(1,))


def test_a_replica_that_is_gone_may_stay_one_and_is_waited_for():
    lost = state((1, 2), (1,))

    after = moving(cluster(1, 3), lost, (2, 3))

    assert after == state((2, 3, 1), (1,), adding=(3,), removing=(1,))
    assert completed(cluster(1, 3), after._replace(isr=(1, 3), isr_epochs=(10, 30))) is None


def test_a_move_takes_the_place_of_another_and_both_can_be_taken_back():
    first = moving(cluster(1, 2, 3, 4), STATE, (3, 2))
    assert first == state((3, 2, 1), (1, 2), adding=(3,), removing=(1,))

    second = moving(cluster(1, 2, 3, 4), first, (4, 2))

    assert second == state((4, 2, 1, 3), (1, 2), adding=(3, 4), removing=(1, 3))
    assert cancelled(cluster(1, 2, 3, 4), second) == state((2, 1), (1, 2), epoch=5)


def test_back_to_where_it_was_is_there_at_once():
    under_way = moving(cluster(1, 2, 3), STATE, (3, 2))

    assert moving(cluster(1, 2, 3), under_way, (1, 2)) == state((1, 2), (1, 2), epoch=5)


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "index", "target", "may_resize", "code"),
    [
        ("u", 0, (1, 2), True, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", 2, (1, 2), True, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", -1, None, True, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", 0, None, True, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        ("t", 0, (), True, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, (1, 1), True, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, (1, 9), True, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, (1,), False, ErrorCode.INVALID_REPLICATION_FACTOR),
        ("t", 0, (1, 2, 3), False, ErrorCode.INVALID_REPLICATION_FACTOR),
    ],
)
def test_how_partitions_do_not_move(name, index, target, may_resize, code):
    image = cluster(1, 2, 3)

    after, (refusal,) = plan_moves(image, name, [(index, target)], may_resize=may_resize)

    assert refusal is not None
    assert refusal.code == code
    assert after in (None, image.topics["t"])


def test_of_one_request_each_partition_is_judged_by_itself():
    image = cluster(1, 2, 3)

    after, refusals = plan_moves(image, "t", [(0, (3, 2)), (5, (1,)), (1, None)], may_resize=False)

    assert after == image.topics["t"]._replace(partitions=(state((3, 2, 1), (1, 2), adding=(3,), removing=(1,)), STATE))
    assert [each and each.code for each in refusals] == [
        None,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
    ]


def test_how_many_replicas_there_are_is_told_by_where_a_move_goes():
    under_way = moving(cluster(1, 2, 3), STATE, (1, 2, 3))

    with pytest.raises(BrokerError) as refused:
        moving(cluster(1, 2, 3), under_way, (2, 3), may_resize=False)
    assert refused.value.code == ErrorCode.INVALID_REPLICATION_FACTOR


# -- the end ---------------------------------------------------------------------------------------

MOVING = state((3, 4, 1, 2), (1, 2, 3, 4), adding=(3, 4), removing=(1, 2))


def test_a_move_ends_when_the_whole_target_is_in_sync():
    late = MOVING._replace(isr=(1, 2, 3), isr_epochs=(10, 20, 30))
    assert completed(cluster(1, 2, 3, 4), late) is None

    assert completed(cluster(1, 2, 3, 4), MOVING) == state((3, 4), (3, 4), leader=3, epoch=5)


def test_who_has_joined_in_an_earlier_life_is_waited_for():
    image = cluster(1, 2, 3, 4)
    again = replace(image, brokers={**image.brokers, 4: BrokerInfo(4, (), None, 99)})

    assert completed(again, MOVING) is None


def test_a_leader_who_stays_a_replica_goes_on_under_another_epoch():
    staying = state((3, 1, 2), (1, 2, 3), adding=(3,), removing=(2,))

    assert completed(cluster(1, 2, 3), staying) == state((3, 1), (1, 3), epoch=5)


def test_if_nobody_leaves_no_other_epoch_begins():
    assert completed(cluster(1, 2, 3), state((1, 2, 3), (1, 2, 3), adding=(3,))) == state((1, 2, 3), (1, 2, 3))


def test_a_move_from_a_broker_that_is_gone_ends():
    alone = state((3, 1, 2), (3,), leader=3, adding=(3,), removing=(1, 2), elr=(1,))

    assert completed(cluster(3), alone, min_isr=2) == state((3,), (3,), leader=3, epoch=5)


def test_what_does_not_move_is_not_completed():
    assert completed(cluster(1, 2), STATE) is None


def test_topics_are_completed_once_and_only_where_something_is_new():
    image = cluster(1, 2, 3, 4, states=(MOVING, STATE, MOVING._replace(isr=(1, 2), isr_epochs=(10, 20))))
    before = image.topics["t"]

    (after,) = completions(image)

    assert after == before._replace(partitions=(state((3, 4), (3, 4), leader=3, epoch=5), *before.partitions[1:]))
    assert list(completions(image, seen=image)) == []
    assert list(completions(image, without={"t"})) == []
    assert move_ops(before, before, 5) == []
    assert move_ops(before, after, 5) == [
        Update(topic_path("t"), after.to_json(), 3),
        Update(state_path("t", 0), after.partitions[0]._replace(topic_version=4).to_json(5), 7),
    ]


def test_who_cannot_write_to_a_partition_is_waited_for():
    image = cluster(1, 2, 3, states=(state((1, 3, 2), (1, 2, 3), adding=(3,), removing=(2,)),))
    unable = image.brokers[3]._replace(offline=frozenset({("t", 0)}))

    assert [each.name for each in completions(image)] == ["t"]
    assert list(completions(replace(image, brokers={**image.brokers, 3: unable}))) == []


# -- taking it back --------------------------------------------------------------------------------


def test_a_move_is_taken_back_and_the_leader_goes_with_those_who_had_come():
    assert cancelled(cluster(1, 2, 3, 4), MOVING) == state((1, 2), (1, 2), epoch=5)
    assert cancelled(cluster(1, 2, 3, 4), MOVING._replace(leader=3, leader_broker_epoch=30)) == state(
        (1, 2), (1, 2), epoch=5
    )


def test_if_only_those_are_in_sync_who_had_come_there_is_no_way_back_but_by_losing_data():
    new_only = state((3, 1, 2), (3,), leader=3, adding=(3,), removing=(2,))

    with pytest.raises(BrokerError) as refused:
        cancelled(cluster(1, 2, 3), new_only)
    assert refused.value.code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert cancelled(cluster(1, 2, 3), new_only, unclean=True) == state((1, 2), (1,), epoch=5)


def test_a_partition_that_nobody_leads_is_taken_back_all_the_same():
    orphan = state((3, 1), (1,), leader=NO_LEADER, adding=(3,))._replace(leader_broker_epoch=-1)

    after = cancelled(cluster(3), orphan)

    assert after == orphan._replace(replicas=(1,), adding=())
