"""A broker whose store is in ZooKeeper: what it does when its session is over, or its loop is stuck."""

import logging
import time

import pytest
import trio
from kazoo.client import KazooClient

from trilogue.broker.requests.registry import APIS
from trilogue.broker.tests.running import Raw, running
from trilogue.wire.apis.create_topics import CreateTopicsRequest, CreateTopicsResponse
from trilogue.wire.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from trilogue.wire.apis.list_groups import ListGroupsRequest, ListGroupsResponse
from trilogue.wire.apis.metadata import MetadataRequest, MetadataResponse

pytestmark = pytest.mark.java

SESSION_SECONDS = 2
PATIENCE = 15


@pytest.fixture
def server(zookeeper, tmp_path):
    connect = f"{zookeeper.address}/sessions/{tmp_path.name}"
    with running(zookeeper_connect=connect, zookeeper_session_timeout_ms=str(SESSION_SECONDS * 1000)) as server:
        yield server


def soon(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it does not come true"
        time.sleep(0.02)


def create(raw, name, partitions=1):
    topic = CreateTopicsRequest.Topic(name=name, num_partitions=partitions, replication_factor=1)
    (answer,) = raw.ask(CreateTopicsRequest(topics=[topic], timeout_ms=9000), 7, CreateTopicsResponse).topics
    return answer.error_code, answer.error_message


def expire(server, zookeeper):
    double = KazooClient(zookeeper.address, client_id=server.broker.view.session._link._client.client_id)
    double.start()
    double.stop()
    double.close()


def test_a_broker_whose_session_is_over_registers_anew_and_leads_again(server, zookeeper):
    broker = server.broker
    with Raw(server) as raw:
        assert create(raw, "orders", 3)[0] == 0
        first = broker.image
        expire(server, zookeeper)
        soon(lambda: (me := broker.image.brokers.get(broker.node_id)) and me.epoch > first.brokers[1].epoch)
        soon(lambda: broker.image.controller == 1 and broker.image.controller_epoch == 2)

        def leads_anew():
            epoch = broker.image.brokers[1].epoch
            return all(state.leader_broker_epoch == epoch for state in broker.image.topics["orders"].partitions)

        soon(leads_anew)
        assert all(state.leader_epoch >= 1 for state in broker.image.topics["orders"].partitions)
        assert create(raw, "later")[0] == 0
        assert len(raw.ask(MetadataRequest(topics=None), 12, MetadataResponse).brokers) == 1


def test_a_stuck_loop_gives_its_session_up_so_that_others_can_take_over(server, zookeeper, monkeypatch, caplog):
    shell = KazooClient(zookeeper.address)
    shell.start()
    shell.chroot = server.broker.view.session._ensemble.chroot
    key = ListGroupsRequest.api_key

    def stuck(broker, request, peer):
        deadline = time.monotonic() + 2 * SESSION_SECONDS
        while shell.exists("/brokers/ids/1") and time.monotonic() < deadline:
            time.sleep(0.05)
        return ListGroupsResponse(groups=[], throttle_time_ms=0 if time.monotonic() < deadline else 1)

    before = shell.exists("/brokers/ids/1").czxid
    with Raw(server) as raw, caplog.at_level(logging.ERROR):
        monkeypatch.setitem(APIS, key, APIS[key]._replace(handler=stuck))
        assert raw.ask(ListGroupsRequest(), 4, ListGroupsResponse).throttle_time_ms == 0, "it was given up in time"
    assert "our session is given up" in caplog.text
    soon(lambda: (stat := shell.exists("/brokers/ids/1")) and stat.czxid > before)
    shell.stop()
    shell.close()


def test_a_topic_too_large_for_one_commit_is_refused_in_words(server):
    with Raw(server) as raw:
        code, message = create(raw, "wide", 9_000)
        assert (code, message.startswith("a change of ")) == (44, True)
        assert create(raw, "narrow", 2_000)[0] == 0


def test_garbage_in_zookeeper_is_said_and_left_alone(server, zookeeper, caplog, monkeypatch):
    shell = KazooClient(zookeeper.address)
    shell.start()
    shell.chroot = server.broker.view.session._ensemble.chroot
    with Raw(server) as raw:
        create(raw, "orders", 2)
        before = server.broker.image.topics["orders"]
        shell.set("/brokers/topics/orders/partitions/0/state", b'{"leader": ')
        shell.create("/brokers/topics/bad", b"\xff\x00")
        shell.create("/brokers/ids/nine", b"[]")
        shell.create("/config/topics/bad", b'{"version":9}', makepath=True)
        session = server.broker.view.session
        trio.from_thread.run(session._look_at_everything, session._link, trio_token=session._link._token)
        soon(lambda: server.broker.image.topics["orders"].partitions[0].version == 1)
        assert server.broker.image.topics["orders"].partitions[1] == before.partitions[1]
        assert "bad" not in server.broker.image.topics
        assert create(raw, "more")[0] == 0
        # An election writes over what cannot be understood.
        expire(server, zookeeper)
        soon(lambda: b"leader_epoch" in shell.get("/brokers/topics/orders/partitions/0/state")[0])
        said = [record.message for record in caplog.records if "cannot be understood" in record.message]
        assert {each.partition(":")[0] for each in said} >= {
            "/brokers/topics/orders/partitions/0/state",
            "/brokers/topics/bad",
            "/brokers/ids/nine",
            "/config/topics/bad",
        }
    shell.stop()
    shell.close()


def test_producer_ids_are_taken_in_blocks(server):
    with Raw(server) as raw:
        ids = [
            raw.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0), 4, InitProducerIdResponse)
            for _ in range(3)
        ]
    assert [(each.error_code, each.producer_id) for each in ids] == [(0, 0), (0, 1), (0, 2)]
