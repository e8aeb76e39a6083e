"""Images, and what the controller decides on them: plain values in, plain values out."""

from dataclasses import replace

import pytest

from trilogue.broker.cluster.decisions import (
    Change,
    NewTopic,
    create_ops,
    delete_ops,
    elections,
    grow_ops,
    lossy,
    plan_partitions,
    plan_topic,
    prefer,
    preferences,
    seen_from,
    with_isr,
)
from trilogue.broker.cluster.image import (
    NO_LEADER,
    BrokerInfo,
    Endpoint,
    Image,
    PartitionState,
    Topic,
    broker_json,
    broker_path,
    config_path,
    state_path,
    to_json,
    topic_path,
)
from trilogue.broker.cluster.store import Create, Delete, Node, Update
from trilogue.wire.errors import BrokerError, ErrorCode

ID = bytes(range(16))
ONE, TWO = (1, 1), (3, 2)


def cluster(*brokers: int, topics: list[Topic] | None = None) -> Image:
    """Brokers whose lives began with commit 10 times their id."""
    return Image(
        controller_epoch=5,
        brokers={each: BrokerInfo(each, (Endpoint("PLAINTEXT", "h", 1),), None, 10 * each) for each in brokers},
        topics={each.name: each for each in topics or []},
        topic_names={each.id: each.name for each in topics or []},
    )


def topic(*states: PartitionState) -> Topic:
    return Topic("t", ID, states, version=3)


def state(replicas, leader, epoch, isr, life=None, elr=()) -> PartitionState:
    """Whose members joined in the lives that `cluster` has them in."""
    epochs = tuple(10 * each for each in isr)
    return PartitionState(
        replicas, leader, epoch, isr, 10 * leader if life is None else life, isr_epochs=epochs, elr=elr
    )


def altered(image: Image, broker: int, **fields) -> Image:
    return replace(image, brokers={**image.brokers, broker: image.brokers[broker]._replace(**fields)})


def new_topic(name="t", partitions=-1, factor=-1, assignments=None, configs=None) -> NewTopic:
    return NewTopic(name, partitions, factor, assignments or {}, configs or {})


# -- topics ----------------------------------------------------------------------------------------


def test_a_topic_gets_the_defaults_and_its_first_leaders():
    made = plan_topic(cluster(1, 2), new_topic(), ID, TWO, start=0)

    assert made == Topic(
        "t",
        ID,
        (state((1, 2), 1, 0, (1, 2)), state((2, 1), 2, 0, (2, 1)), state((1, 2), 1, 0, (1, 2))),
    )


def test_what_is_stored_is_what_is_read_again():
    made = plan_topic(cluster(1, 2), new_topic(), ID, TWO, start=0)
    ops = create_ops(made, {"cleanup.policy": "compact"}, controller_epoch=5)

    image = Image().apply({op.path: Node(op.data, 0, 7) for op in ops})

    assert image.topics == {"t": made}
    assert image.topic_names == {ID: "t"}
    assert image.configs == {("topics", "t"): {"cleanup.policy": "compact"}}


@pytest.mark.parametrize(
    ("new", "code", "said"),
    [
        (new_topic(""), ErrorCode.INVALID_TOPIC_EXCEPTION, "the empty string is not allowed"),
        (new_topic(".."), ErrorCode.INVALID_TOPIC_EXCEPTION, "'..' is not allowed"),
        (new_topic("../../etc"), ErrorCode.INVALID_TOPIC_EXCEPTION, "characters other than ASCII alphanumerics"),
        (new_topic("a\x00b"), ErrorCode.INVALID_TOPIC_EXCEPTION, "characters other than ASCII alphanumerics"),
        (new_topic("é"), ErrorCode.INVALID_TOPIC_EXCEPTION, "characters other than ASCII alphanumerics"),
        (new_topic("a" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION, "longer than the max allowed length 249"),
        (new_topic("there"), ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'there' already exists."),
        (new_topic("the.re"), ErrorCode.INVALID_TOPIC_EXCEPTION, "collides with existing topic: the_re"),
        (new_topic(partitions=0), ErrorCode.INVALID_PARTITIONS, "non-positive"),
        (new_topic(partitions=10_001), ErrorCode.POLICY_VIOLATION, "Excessively large"),
        (new_topic(factor=0), ErrorCode.INVALID_REPLICATION_FACTOR, "larger than 0"),
        (new_topic(factor=2), ErrorCode.INVALID_REPLICATION_FACTOR, "only 1 broker(s) are registered"),
        (new_topic(partitions=1, assignments={0: [1]}), ErrorCode.INVALID_REQUEST, "numPartitions was not set to -1"),
        (new_topic(factor=1, assignments={0: [1]}), ErrorCode.INVALID_REQUEST, "replication factor was not set to -1"),
        (new_topic(assignments={1: [1]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "consecutive 0-based"),
        (new_topic(assignments={0: []}), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "empty replica list"),
        (new_topic(assignments={0: [1, 1]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "more than once"),
        (new_topic(assignments={0: [9]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "no such broker"),
    ],
)
def test_what_cannot_be_a_topic(new, code, said):
    there = [Topic("there", b"1" * 16, ()), Topic("the_re", b"2" * 16, ())]

    with pytest.raises(BrokerError) as caught:
        plan_topic(cluster(1, topics=there), new, ID, ONE, start=0)

    assert caught.value.code == code
    assert said in str(caught.value)


def test_the_longest_name_is_legal():
    assert plan_topic(cluster(1), new_topic("a" * 249), ID, ONE, start=0).name == "a" * 249


def test_a_topic_grows():
    before = topic(state((1,), 1, 4, (1,)))
    image = cluster(1, 2, topics=[before])

    after = plan_partitions(image, "t", 2, [[2]], start=0)

    assert after.partitions == (*before.partitions, state((2,), 2, 0, (2,)))
    assert grow_ops(before, after, 5) == [
        Update(topic_path("t"), after.to_json(), 3),
        Create(state_path("t", 1), after.partitions[1].to_json(5)),
    ]


@pytest.mark.parametrize(
    ("count", "assignments", "code"),
    [
        (1, None, ErrorCode.INVALID_PARTITIONS),
        (0, None, ErrorCode.INVALID_PARTITIONS),
        (3, [[1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (2, [[1, 2]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (10_002, None, ErrorCode.POLICY_VIOLATION),
    ],
)
def test_how_a_topic_does_not_grow(count, assignments, code):
    image = cluster(1, 2, topics=[topic(state((1,), 1, 4, (1,)))])

    with pytest.raises(BrokerError) as caught:
        plan_partitions(image, "t", count, assignments, start=0)

    assert caught.value.code == code


def test_deleting_takes_the_settings_along():
    image = cluster(1, topics=[topic()]).apply({config_path("topics", "t"): Node(to_json(config={}), 0, 1)})

    assert delete_ops(image, "t") == [Delete(topic_path("t"), 3), Delete(config_path("topics", "t"))]


# -- leaders ---------------------------------------------------------------------------------------


def test_a_leader_that_lives_is_left_alone():
    assert elections(cluster(1, 2, topics=[topic(state((1, 2), 1, 4, (1, 2)))])) == []


def test_when_a_leader_dies_the_first_living_replica_in_sync_leads():
    image = cluster(2, 3, topics=[topic(state((1, 3, 2), 1, 4, (1, 2)))])

    assert elections(image) == [Change("t", 0, state((1, 3, 2), 2, 5, (2,)))]


def test_whoever_is_gone_is_not_in_sync_any_more_and_the_leader_need_not_wait_for_it():
    image = cluster(1, 3, topics=[topic(state((1, 2, 3), 1, 4, (1, 2, 3)))])

    assert elections(image) == [Change("t", 0, state((1, 2, 3), 1, 4, (1, 3)))]


def test_whoever_has_registered_anew_has_to_show_first_what_it_has():
    image = altered(cluster(1, 2, topics=[topic(state((1, 2), 1, 4, (1, 2)))]), 2, epoch=99)

    assert elections(image) == [Change("t", 0, state((1, 2), 1, 4, (1,)))]


def test_a_leader_that_is_about_to_end_hands_over_and_one_that_follows_leaves():
    stopping = altered(cluster(1, 2, topics=[topic(state((1, 2), 1, 4, (1, 2)))]), 1, stopping=True)
    assert elections(stopping) == [Change("t", 0, state((1, 2), 2, 5, (2,)))]

    following = altered(cluster(1, 2, topics=[topic(state((1, 2), 1, 4, (1, 2)))]), 2, stopping=True)
    assert elections(following) == [Change("t", 0, state((1, 2), 1, 4, (1,)))]

    alone = altered(cluster(1, 2, topics=[topic(state((1, 2), 1, 4, (1,)))]), 1, stopping=True)
    assert elections(alone) == [], "nobody else could"


def test_who_cannot_write_to_a_partition_leads_it_only_if_nobody_else_can_and_is_not_waited_for():
    """As one that is about to end; but it is well in all other partitions."""
    both = topic(state((1, 2, 3), 1, 4, (1, 2, 3)), state((1, 2, 3), 1, 4, (1, 2, 3)))
    image = cluster(1, 2, 3, topics=[both])

    leading = altered(image, 1, offline=frozenset({("t", 1)}))
    assert elections(leading) == [Change("t", 1, state((1, 2, 3), 2, 5, (2, 3)))]
    following = altered(image, 2, offline=frozenset({("t", 0), ("u", 1)}))
    assert elections(following) == [Change("t", 0, state((1, 2, 3), 1, 4, (1, 3)))]

    everybody = frozenset({("t", 0), ("t", 1)})
    for each in (1, 2, 3):
        image = altered(image, each, offline=everybody)
    alone = state((1, 2, 3), 1, 4, (1,))
    assert elections(image) == [Change("t", 0, alone), Change("t", 1, alone)]
    assert elections(replace(image, topics={"t": topic(alone)})) == [], "nobody else could"

    back = altered(replace(image, topics={"t": topic(state((1, 2, 3), 1, 4, (1, 3)))}), 3, offline=frozenset())
    assert elections(back) == [Change("t", 0, state((1, 2, 3), 3, 5, (3,)))]


def test_who_cannot_write_to_a_partition_does_not_come_back_as_its_preferred_leader():
    image = altered(cluster(1, 2), 1, offline=frozenset({("t", 0)}))

    with pytest.raises(BrokerError) as caught:
        prefer(seen_from(image, "t", 0), state((1, 2), 2, 4, (1, 2)))
    assert caught.value.code == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    assert prefer(seen_from(image, "t", 1), state((1, 2), 2, 4, (1, 2))) == state((1, 2), 1, 5, (1, 2))


def test_who_leaves_when_there_are_too_few_stays_eligible_until_there_are_enough():
    both = state((1, 2, 3), 1, 4, (1, 2))
    image = cluster(1, topics=[topic(both)])

    (change,) = elections(image, min_isr=lambda name: 2)
    assert change.state == state((1, 2, 3), 1, 4, (1,), elr=(2,))
    again = with_isr(cluster(1, 2, 3), change.state, (1, 3), 2)
    assert again == state((1, 2, 3), 1, 4, (1, 3))


def test_an_eligible_replica_leads_when_nobody_in_sync_is_left():
    image = cluster(2, topics=[topic(state((1, 2), 1, 4, (1,), elr=(2,)))])

    assert elections(image, min_isr=lambda name: 2) == [Change("t", 0, state((1, 2), 2, 5, (2,), elr=(1,)))]


def test_of_those_that_come_back_the_one_that_ended_cleanly_leads():
    """All three were in sync when they ended, and are back: 2 has nothing to have lost."""
    image = cluster(1, 2, 3, topics=[topic(state((1, 2, 3), 1, 4, (1, 2, 3)))])
    for each in (1, 2, 3):
        image = altered(image, each, epoch=100 + each)
    killed = elections(image)
    clean = elections(altered(image, 2, clean_epoch=20))

    back = PartitionState((1, 2, 3), 1, 5, (1,), 101, isr_epochs=(101,))
    assert killed == [Change("t", 0, back)]
    assert clean == [Change("t", 0, back._replace(leader=2, isr=(2,), leader_broker_epoch=102, isr_epochs=(102,)))]


def test_a_leader_that_has_started_anew_begins_a_new_leader_epoch():
    image = cluster(1, topics=[topic(state((1,), 1, 4, (1,), life=9))])

    assert elections(image) == [Change("t", 0, state((1,), 1, 5, (1,)))]


def test_without_a_replica_in_sync_there_is_no_leader_and_the_isr_stays():
    alone = state((1, 2), 1, 4, (1,))
    image = cluster(2, topics=[topic(alone)])

    nobody = alone._replace(leader=NO_LEADER, leader_epoch=5, leader_broker_epoch=-1)
    assert elections(image) == [Change("t", 0, nobody)]
    assert elections(cluster(2, topics=[topic(nobody)])) == [], "which is known already"


def test_an_unclean_election_happens_only_where_it_is_allowed():
    image = cluster(2, topics=[topic(state((1, 2), 1, 4, (1,)))])

    assert elections(image, unclean=lambda name: name == "t") == [Change("t", 0, state((1, 2), 2, 5, (2,)))]


def test_what_was_settled_is_not_looked_at_again_until_brokers_or_settings_change():
    waiting = cluster(2, topics=[topic(state((1, 2), 1, 4, (1,)))])

    def looked_at(**configs):
        after = replace(waiting, configs={(kind, name): {"a": "b"} for kind, name in configs.items()})
        return len(elections(after, seen=waiting)) == 1

    assert elections(waiting, seen=waiting) == []
    assert looked_at(topics="t"), "somebody may have allowed an unclean election"
    assert looked_at(brokers="<default>"), "of all topics"
    assert not looked_at(topics="another")
    assert len(elections(replace(waiting, brokers=cluster(2, 3).brokers), seen=waiting)) == 1


def test_the_preferred_leader_takes_over_only_if_it_lives_and_is_in_sync():
    image = cluster(1, 2)

    assert prefer(image, state((1, 2), 2, 4, (1, 2))) == state((1, 2), 1, 5, (1, 2))
    for other, code in (
        (state((1, 2), 1, 4, (1, 2)), ErrorCode.ELECTION_NOT_NEEDED),
        (state((1, 2), 2, 4, (2,)), ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        (state((9, 2), 2, 4, (9, 2)), ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
    ):
        with pytest.raises(BrokerError) as caught:
            prefer(image, other)
        assert caught.value.code == code


def test_by_itself_leadership_goes_back_wherever_it_can():
    away = state((1, 2), 2, 4, (1, 2))
    states = [away, away._replace(leader=1), away._replace(isr=(2,), isr_epochs=(20,)), away._replace(replicas=(3, 2))]
    image = cluster(1, 2, topics=[topic(*states)])

    assert preferences(image) == [Change("t", 0, state((1, 2), 1, 5, (1, 2)))]
    assert preferences(altered(image, 1, stopping=True)) == []
    assert preferences(altered(image, 1, offline=frozenset({("t", 0)}))) == [], "it cannot write to it"


# -- images ----------------------------------------------------------------------------------------


def test_a_topic_deleted_and_made_again_is_another():
    made = topic(state((1,), 1, 4, (1,)))
    image = cluster(1, topics=[made])
    again = Topic("t", b"another id......", (state((1,), 1, 0, (1,)),))
    nodes = {op.path: Node(op.data, 0, 9) for op in create_ops(again, {}, 5)}

    after = image.apply(nodes)

    assert after.topics == {"t": again}
    assert after.topic_names == {again.id: "t"}


def test_the_state_of_a_topic_that_is_gone_is_ignored():
    late = Node(state((1,), 1, 4, (1,)).to_json(5), 0, 1)

    assert Image().apply({state_path("t", 0): late}).topics == {}


def test_brokers_come_and_go_and_a_new_life_has_a_new_epoch():
    said = broker_json([Endpoint("PLAINTEXT", "host", 9092)], "rack")

    first = Image().apply({broker_path(1): Node(said, 0, 33, True)})
    again = first.apply({broker_path(1): Node(said, 0, 44, True)})

    assert first.brokers == {1: BrokerInfo(1, (Endpoint("PLAINTEXT", "host", 9092),), "rack", 33)}
    assert again.brokers[1].epoch == 44
    assert again.apply({broker_path(1): None}).brokers == {}


def test_an_election_is_unclean_if_the_leader_was_neither_in_sync_nor_eligible():
    before = state((1, 2, 3, 4), 1, 4, (1, 2), elr=(3,))
    image = cluster(1, 2, 3, 4, topics=[topic(before)])

    for leader, unclean in ((1, False), (2, False), (3, False), (4, True), (NO_LEADER, False)):
        change = Change("t", 0, before._replace(leader=leader))
        assert lossy(image, [change]) == ([change] if unclean else [])
