"""The image, when somebody else has written into the store: what cannot be understood counts as unchanged."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trilogue.broker.cluster.image import (
    BROKERS,
    CLUSTER_ID,
    CONTROLLER,
    CONTROLLER_EPOCH,
    Endpoint,
    Image,
    PartitionState,
    Topic,
    broker_json,
    config_path,
    registered_directories,
    state_path,
    to_json,
    topic_path,
)
from trilogue.broker.cluster.store import Node

STATE = PartitionState((1,), 1, 4, (1,), 7)
ORDERS = Topic("orders", b"i" * 16, (STATE, STATE))
GOOD = {
    CLUSTER_ID: to_json(version=1, id="c"),
    CONTROLLER: to_json(version=2, brokerid=1),
    CONTROLLER_EPOCH: b"3",
    f"{BROKERS}1": broker_json([Endpoint("PLAINTEXT", "h", 9092)], "r", ["d"]),
    topic_path("orders"): ORDERS.to_json(),
    state_path("orders", 0): STATE.to_json(3),
    state_path("orders", 1): STATE.to_json(3),
    config_path("topics", "orders"): to_json(version=1, config={"retention.ms": "1"}),
}
IMAGE = Image().apply({path: Node(data, 0, 7) for path, data in GOOD.items()})

BAD = {
    "truncated": lambda data: data[:-2] if len(data) > 2 else b"x",
    "nothing": lambda data: b"",
    "not text": lambda data: b"\xff\xfe",
    "a list": lambda data: b"[1, 2]",
    "null": lambda data: b"null",
    "no fields": lambda data: b"{}",
    "a later version": lambda data: (
        json.dumps({**json.loads(data), "version": 99}).encode() if data.startswith(b"{") else b"?"
    ),
    "deep": lambda data: b"[" * 100_000,
    "other types": lambda data: (
        json.dumps({key: {"x": [None]} for key in json.loads(data)}).encode() if data.startswith(b"{") else b"1.5"
    ),
}


def plain(image):
    """Without versions: those are true whatever the data is."""
    topics = {
        name: topic._replace(version=0, partitions=tuple(state._replace(version=0) for state in topic.partitions))
        for name, topic in image.topics.items()
    }
    return image.cluster_id, image.controller, image.controller_epoch, image.brokers, topics, image.configs


@pytest.mark.parametrize("path", GOOD)
@pytest.mark.parametrize("how", BAD)
def test_what_cannot_be_understood_counts_as_unchanged_and_is_said(path, how, caplog):
    after = IMAGE.apply({path: Node(BAD[how](GOOD[path]), 1, 7)})

    assert plain(after) == plain(IMAGE)
    assert f"{path}: what is there cannot be understood" in caplog.text


def test_the_version_of_a_state_that_cannot_be_understood_is_known():
    """So that an election can write over it, and is not in the way of all the others in one commit."""
    after = IMAGE.apply({state_path("orders", 0): Node(b"?", 5, 7), CONTROLLER_EPOCH: Node(b"?", 6, 7)})
    assert after.partition("orders", 0) == STATE._replace(version=5)
    assert (after.controller_epoch, after.controller_epoch_version) == (3, 6)


def test_a_state_that_is_newer_than_the_replicas_we_know_is_not_believed():
    """Somebody has left, in one commit with it.  Both nodes are announced, but the state may be read before."""
    without = Topic("orders", IMAGE.topics["orders"].id, (STATE._replace(replicas=(1,)),))
    version = IMAGE.topics["orders"].version + 1
    left = STATE._replace(replicas=(1,), isr=(1,), leader_epoch=STATE.leader_epoch + 1, topic_version=version)
    state, topic = Node(left.to_json(1), 6, 7), Node(without.to_json(), version, 7)

    early = IMAGE.apply({state_path("orders", 0): state})
    assert early.partition("orders", 0) == STATE
    assert early.apply({state_path("orders", 0): state, topic_path("orders"): topic}).partition(
        "orders", 0
    ) == left._replace(version=6)


def test_a_new_topic_that_cannot_be_understood_is_not_there():
    after = IMAGE.apply({topic_path("bad"): Node(b"?", 0, 9), state_path("bad", 0): Node(STATE.to_json(1), 0, 9)})
    assert set(after.topics) == {"orders"}


def test_a_topic_that_is_understood_later_has_the_states_that_came_before():
    """A store announces what has changed, and those have not."""
    nodes = {path: Node(data, 0, 7) for path, data in GOOD.items()}
    bad = {**nodes, topic_path("orders"): Node(b"?", 0, 7)}

    first = Image().apply(bad)
    later = first.apply({state_path("orders", 1): Node(STATE._replace(leader_epoch=9).to_json(3), 1, 7)})
    repaired = later.apply({topic_path("orders"): nodes[topic_path("orders")]})

    assert (set(first.topics), set(first.unread)) == (set(), {"orders"})
    assert repaired.topics["orders"].partitions == (STATE, STATE._replace(leader_epoch=9, version=1))
    assert repaired.unread == {}
    assert first.apply(dict.fromkeys(path for path in GOOD if path.startswith(topic_path("orders")))).unread == {}


def test_the_states_of_a_topic_are_understood_though_its_own_node_is_not_any_more():
    newer = Node(STATE._replace(leader_epoch=9).to_json(3), 1, 7)

    after = IMAGE.apply({topic_path("orders"): Node(b"?", 1, 7), state_path("orders", 0): newer})

    assert after.topics["orders"].partitions == (STATE._replace(leader_epoch=9, version=1), STATE)


@pytest.mark.parametrize(
    "path",
    ["/brokers/ids/x", "/brokers/ids/", "/config/topics", "/config/", "/brokers/topics/", "/other"]
    + [f"/brokers/topics/orders/partitions/{index}/state" for index in ("-1", "2", "x", "", "1/2")],
)
def test_paths_that_mean_nothing_change_nothing(path):
    after = IMAGE.apply({path: Node(STATE.to_json(1).replace(b'"leader":1', b'"leader":9'), 3, 9)})
    assert plain(after) == plain(IMAGE)
    assert plain(after.apply({path: None})) == plain(IMAGE)


@given(st.dictionaries(st.sampled_from(sorted(GOOD)), st.binary(max_size=40) | st.none(), max_size=4))
def test_nothing_that_is_written_anywhere_breaks_it(changes):
    IMAGE.apply({path: None if data is None else Node(data, 1, 9) for path, data in changes.items()})


def test_a_broker_knows_itself_by_its_directories():
    assert registered_directories(GOOD[f"{BROKERS}1"]) == ["d"]
    assert registered_directories(b'{"version": 5}') == []
    assert registered_directories(b"?") == []


def test_a_broker_says_what_it_cannot_write_to():
    offline = {("orders", 1), ("orders", 0), ("a.b", 7)}
    said = broker_json([Endpoint("PLAINTEXT", "h", 1)], None, offline=offline)

    image = IMAGE.apply({f"{BROKERS}1": Node(said, 0, 9)})

    assert image.brokers[1].offline == offline
    assert (image.offline_replicas("orders", 0), IMAGE.offline_replicas("orders", 0)) == ([1], [])
    for bad in (b'"offline":[1]', b'"offline":{"orders":["0"]}', b'"offline":{"orders":0}'):
        said = broker_json([Endpoint("PLAINTEXT", "h", 1)], None).replace(b'"offline":{}', bad)
        assert IMAGE.apply({f"{BROKERS}1": Node(said, 0, 9)}).brokers == IMAGE.brokers
