"""New partitions are spread over racks and brokers."""

from collections import Counter

import pytest

from trilogue.broker.cluster.decisions import NewTopic, plan_partitions, plan_topic
from trilogue.broker.cluster.image import BrokerInfo, Image
from trilogue.broker.cluster.placement import place, racks_of
from trilogue.wire.errors import BrokerError, ErrorCode

ONE = [[1, 2, 3]]
THREE = [[1, 2], [3, 4], [5, 6]]
UNEVEN = [[1, 2, 3], [4]]


def racks_in(racks, replicas):
    return Counter(next(i for i, rack in enumerate(racks) if each in rack) for each in replicas)


def test_in_one_rack_leaders_are_spread_and_pairs_differ():
    assert place(ONE, 6, 2, start=0) == [(1, 2), (2, 3), (3, 1), (1, 3), (2, 1), (3, 2)]
    assert place([[1]], 2, 1, start=5) == [(1,), (1,)]


def test_racks_take_turns_and_so_do_the_brokers_of_each():
    assert place(THREE, 6, 3, start=0) == [
        (1, 4, 6),
        (3, 5, 2),
        (5, 1, 3),
        (2, 6, 4),
        (4, 2, 5),
        (6, 3, 1),
    ]


@pytest.mark.parametrize("start", range(13))
@pytest.mark.parametrize("factor", [1, 2, 3, 4, 5, 6])
def test_no_rack_has_two_replicas_while_another_has_none(factor, start):
    for replicas in place(THREE, 60, factor, start):
        assert len(set(replicas)) == factor
        found = racks_in(THREE, replicas)
        assert max(found.values()) - min(found[each] for each in range(3)) <= 1


@pytest.mark.parametrize("racks", [ONE, THREE, [[1, 2, 3], [4, 5, 6]], [[1], [2], [3], [4]]])
@pytest.mark.parametrize("start", [0, 7, 65_535])
def test_racks_that_are_alike_are_filled_alike(racks, start):
    brokers = sum(map(len, racks))
    placed = place(racks, 10 * brokers, 3, start)

    assert set(Counter(leader for leader, *_ in placed).values()) == {10}
    filled = Counter(each for replicas in placed for each in replicas)
    assert max(filled.values()) - min(filled.values()) <= 3


def test_if_a_leader_is_gone_its_followers_share_what_it_led():
    second = Counter(replicas[:2] for replicas in place(THREE, 120, 3, start=0))

    assert max(second.values()) == 10, "each leads 20, and no other is next to lead more than half of them"


def test_a_rack_that_is_too_small_is_used_up_and_the_others_have_the_rest():
    for replicas in place(UNEVEN, 20, 3, start=1):
        assert len(set(replicas)) == 3
        assert 4 in replicas


def test_who_is_gone_never_leads_and_follows_only_if_there_is_nobody_else():
    assert place(ONE, 4, 2, start=0, gone={2}) == [(1, 3), (3, 1), (1, 3), (3, 1)]
    assert all(replicas[0] != 2 and set(replicas) == {1, 2, 3} for replicas in place(ONE, 9, 3, start=1, gone={2}))


def test_a_rack_has_its_replica_even_if_all_of_it_is_gone():
    for replicas in place(THREE, 30, 3, start=2, gone={3, 4, 5}):
        assert racks_in(THREE, replicas) == {0: 1, 1: 1, 2: 1}
        assert replicas[0] in (1, 2, 6)
        assert 5 not in replicas


def test_who_has_no_rack_is_in_one_with_others_who_have_none():
    brokers = [BrokerInfo(each, (), rack, 1) for each, rack in ((3, "b"), (1, None), (4, "a"), (2, None), (5, "b"))]

    assert racks_of(brokers) == [[1, 2], [4], [3, 5]]
    assert racks_of(each._replace(rack=None) for each in brokers) == [[1, 2, 3, 4, 5]]


def test_topics_and_further_partitions_are_placed_with_regard_to_racks():
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    image = Image(brokers={each: BrokerInfo(each, (), rack, 10) for each, rack in racks.items()})
    topic = plan_topic(image, NewTopic("t", 4, 2, {}, {}), bytes(16), (1, 1), start=3)
    image = Image(brokers=image.brokers, topics={"t": topic})

    grown = plan_partitions(image, "t", 12, None, start=5)

    assert [{racks[each] for each in state.replicas} for state in grown.partitions] == [{"a", "b"}] * 12


def test_brokers_that_are_gone_or_about_to_go_have_replicas_where_others_do_not_suffice():
    infos = {each: BrokerInfo(each, (), None, 10 * each) for each in (1, 2, 3)}
    image = Image(brokers={1: infos[1], 2: infos[2]._replace(stopping=True)}, registered=infos)

    def make(factor: int):
        return plan_topic(image, NewTopic("t", 2, factor, {}, {}), bytes(16), (1, 1), start=0).partitions

    assert [state.replicas for state in make(1)] == [(1,), (1,)]
    for state in make(3):
        assert (sorted(state.replicas), state.leader, sorted(state.isr)) == ([1, 2, 3], 1, [1, 2])
    with pytest.raises(BrokerError) as refused:
        make(4)
    assert refused.value.code == ErrorCode.INVALID_REPLICATION_FACTOR


def test_of_the_replicas_that_somebody_names_one_has_to_be_there():
    infos = {each: BrokerInfo(each, (), None, 10 * each) for each in (1, 2)}
    image = Image(brokers={1: infos[1]}, registered=infos)

    def make(*replicas: int):
        return plan_topic(image, NewTopic("t", -1, -1, {0: replicas}, {}), bytes(16), (1, 1), start=0).partitions[0]

    assert (make(2, 1).leader, make(2, 1).isr) == (1, (1,))
    with pytest.raises(BrokerError) as refused:
        make(2)
    assert refused.value.code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
