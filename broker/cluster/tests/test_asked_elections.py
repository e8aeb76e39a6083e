"""What the controller makes of elections that somebody asks for."""

import pytest

from trilogue.broker.cluster.decisions import NewTopic, plan_topic, rescue
from trilogue.broker.cluster.image import NO_LEADER, BrokerInfo, Image, PartitionState, Topic
from trilogue.broker.names import METADATA_TOPIC
from trilogue.wire.errors import BrokerError, ErrorCode

STATE = PartitionState((1, 2), 1, 4, (1, 2), 10)


def cluster(*brokers, state=STATE):
    topic = Topic("t", bytes(16), (state, STATE))
    return Image(brokers={each: BrokerInfo(each, (), None, 10 * each) for each in brokers}, topics={"t": topic})


def test_whoever_lives_may_rescue_a_partition_that_nobody_leads():
    orphan = STATE._replace(leader=NO_LEADER, isr=(1,))

    assert rescue(cluster(2), orphan) == orphan._replace(
        leader=2, leader_epoch=5, isr=(2,), leader_broker_epoch=20, isr_epochs=(20,)
    )


@pytest.mark.parametrize(
    ("brokers", "state", "code"),
    [
        ((1, 2), STATE, ErrorCode.ELECTION_NOT_NEEDED),
        ((3,), STATE._replace(leader=NO_LEADER), ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE),
    ],
)
def test_when_there_is_nothing_to_rescue(brokers, state, code):
    with pytest.raises(BrokerError) as refused:
        rescue(cluster(*brokers), state)
    assert refused.value.code == code


def test_nobody_makes_the_topic_that_tools_take_for_the_metadata():
    with pytest.raises(BrokerError) as refused:
        plan_topic(cluster(1), NewTopic(METADATA_TOPIC, 1, 1, {}, {}), bytes(16), (1, 1), 0)
    assert refused.value.code == ErrorCode.INVALID_REQUEST
