"""Faults in a running broker: what a client meets, and what has become of what it asked for.

A fault that claims failure has no effect; one that only hides the answer has the effect.
"""

import gc
import re
import time
from contextlib import contextmanager

import pytest
import trio

from trilogue.broker.network.connection import Connection
from trilogue.broker.tests.running import Raw
from trilogue.testing import Broker, ErrorCode
from trilogue.testing.tests.asking import FETCH, PRODUCE, a_produce, create, fetch, produce
from trilogue.wire.apis.fetch import FetchRequest, FetchResponse
from trilogue.wire.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from trilogue.wire.apis.metadata import MetadataRequest, MetadataResponse
from trilogue.wire.apis.produce import ProduceRequest, ProduceResponse
from trilogue.wire.apis.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from trilogue.wire.apis.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from trilogue.wire.frame import read_response, write_request
from trilogue.wire.records import batches

ORDERS, OTHERS, USERS = ("orders", 0), ("orders", 1), ("users", 0)
FINE = {ORDERS: 0}


@contextmanager
def asking(**settings):
    """A broker with two topics of two partitions, and a connection to it."""
    with Broker(**settings) as broker, Raw(broker.server) as raw:
        create(raw, "orders", "users", partitions=2)
        yield broker, raw


def end(broker, place):
    return broker.server.broker.replicas.find(*place).log.end_offset


def test_a_refused_request_has_no_effect():
    with asking() as (broker, raw):
        fault = broker.faults.on("Produce", topic="orders").answer("NOT_ENOUGH_REPLICAS")

        assert produce(raw, ORDERS) == {ORDERS: ErrorCode.NOT_ENOUGH_REPLICAS}
        assert (end(broker, ORDERS), fault.fired) == (0, 1)


def test_the_smallest_unit_is_refused_and_the_others_proceed():
    with asking() as (broker, raw):
        broker.faults.on("Produce", topic="orders", partition=1).answer(ErrorCode.NOT_LEADER_OR_FOLLOWER)

        assert produce(raw, ORDERS, OTHERS, USERS) == {ORDERS: 0, OTHERS: 6, USERS: 0}
        assert [end(broker, each) for each in (ORDERS, OTHERS, USERS)] == [1, 0, 1]


def test_two_faults_may_meet_one_request():
    with asking() as (broker, raw):
        broker.faults.on("Produce", topic="orders").answer(6)
        broker.faults.on("Produce", topic="users").answer(19)

        assert produce(raw, ORDERS, USERS) == {ORDERS: 6, USERS: 19}


def test_the_nth_and_no_other():
    with asking() as (broker, raw):
        fault = broker.faults.on("Produce", nth=3).answer("NOT_ENOUGH_REPLICAS")

        assert [produce(raw, ORDERS)[ORDERS] for _ in range(5)] == [0, 0, 19, 0, 0]
        assert (fault.seen, fault.fired, end(broker, ORDERS)) == (5, 1, 4)


def test_so_many_from_the_nth_on():
    with asking() as (broker, raw):
        broker.faults.on("Produce", nth=2, times=2).answer(19)

        assert [produce(raw, ORDERS)[ORDERS] for _ in range(5)] == [0, 19, 19, 0, 0]


def test_chance_is_the_same_with_the_same_seed():
    def run(seed):
        with asking() as (broker, raw), broker.faults.on("Produce", probability=0.5, seed=seed).answer(19):
            return [produce(raw, ORDERS)[ORDERS] for _ in range(20)]

    assert run(1) == run(1) != run(2)
    assert {*run(1)} == {0, 19}


def test_whose_requests_are_meant_is_said_by_client_id():
    with asking() as (broker, raw):
        broker.faults.on("Produce", client_id="somebody else").answer(19)
        assert produce(raw, ORDERS) == FINE
        broker.faults.on("Produce", client_id="raw").answer(19)
        assert produce(raw, ORDERS) == {ORDERS: 19}


def test_a_template_does_not_pass_a_fault_by():
    with asking() as (broker, raw):
        assert [produce(raw, ORDERS) for _ in range(3)] == [FINE] * 3  # by now it is a template of this connection
        with broker.faults.on("Produce").answer(19):
            assert produce(raw, ORDERS) == {ORDERS: 19}
        assert produce(raw, ORDERS) == FINE


def test_a_delayed_answer_is_late_and_its_effect_is_not():
    with asking() as (broker, raw):
        broker.faults.on("Produce", times=1).delay(0.2)
        began = time.monotonic()
        raw.send(b"".join(write_request(a_produce(ORDERS), PRODUCE, 1, "raw")))
        while end(broker, ORDERS) == 0:
            assert time.monotonic() - began < 10
        written = time.monotonic() - began

        assert raw.receive()
        assert written < 0.2 <= time.monotonic() - began


def test_a_dropped_answer_never_comes_and_its_effect_is_there():
    with asking() as (broker, raw), Raw(broker.server) as other:
        broker.faults.on("Produce", times=1).drop()
        raw.send(b"".join(write_request(a_produce(ORDERS), PRODUCE, 1, "raw")))
        raw.send(b"".join(write_request(a_produce(ORDERS), PRODUCE, 2, "raw")))

        assert produce(other, ORDERS) == FINE
        assert end(broker, ORDERS) == 2  # the first, and the other's: nothing more is heard on that connection
        raw.sock.settimeout(0.1)
        with pytest.raises(TimeoutError):
            raw.receive()
        raw.close()
        until(lambda: len(connections(broker)) == 1)


def connections(broker):
    return broker.server.transport._guests.by_fd


def until(look):
    deadline = time.monotonic() + 10
    while not look():
        assert time.monotonic() < deadline


@pytest.mark.parametrize(("when", "written"), [("before", 0), ("after", 1)])
def test_a_connection_is_closed_before_or_after_it_is_done(when, written):
    with asking() as (broker, raw):
        broker.faults.on("Produce").close(when)
        raw.send(b"".join(write_request(a_produce(ORDERS), PRODUCE, 1, "raw")))

        assert raw.receive() == b""
        assert end(broker, ORDERS) == written


def test_answers_to_what_came_before_are_sent_before_it_is_closed():
    with asking() as (broker, raw):
        broker.faults.on("Produce", nth=2).close("before")
        two = [b"".join(write_request(a_produce(ORDERS), PRODUCE, number, "raw")) for number in (1, 2)]
        raw.send(b"".join(two))

        assert raw.receive()
        assert raw.receive() == b""


def test_corrupted_records_fail_their_checksum_once_and_are_well_in_the_log():
    with asking() as (broker, raw):
        produce(raw, ORDERS, USERS)
        fault = broker.faults.on("Fetch", topic="orders", times=1).corrupt()

        assert fetch(raw, OTHERS)[OTHERS].records in (b"", None)
        assert fault.fired == 0  # there was nothing to damage
        found = fetch(raw, ORDERS, USERS)
        assert [crc_ok(found[each]) for each in (ORDERS, USERS)] == [False, True]
        assert crc_ok(fetch(raw, ORDERS)[ORDERS])
        assert fault.fired == 1


def crc_ok(answer):
    (batch,) = batches(answer.records)
    return batch.crc_ok()


def test_a_fetch_that_is_refused_does_not_wait():
    with asking() as (broker, raw):
        broker.faults.on("Fetch", topic="orders").answer("NOT_LEADER_OR_FOLLOWER")
        began = time.monotonic()

        found = fetch(raw, ORDERS, USERS, wait_ms=10_000)

        assert {place: each.error_code for place, each in found.items()} == {ORDERS: 6, USERS: 0}
        assert time.monotonic() - began < 5


def test_a_reader_in_a_session_meets_faults_by_topic():
    with asking() as (broker, raw):
        topic = FetchRequest.Topic(
            topic="orders", partitions=[FetchRequest.Topic.Partition(partition=0, partition_max_bytes=1 << 20)]
        )
        whole = FetchRequest(session_epoch=0, topics=[topic])
        session = raw.ask(whole, FETCH, FetchResponse).session_id
        next_one = FetchRequest(session_id=session, session_epoch=1, topics=[])
        assert session != 0

        with broker.faults.on("Fetch", topic="orders").answer(6):
            assert raw.ask(next_one, FETCH, FetchResponse).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            answer = raw.ask(whole, FETCH, FetchResponse)
            assert answer.session_id == 0
            assert answer.responses[0].partitions[0].error_code == 6
        assert raw.ask(whole, FETCH, FetchResponse).session_id != 0


def test_who_asks_for_all_topics_asks_for_each():
    with asking() as (broker, raw):
        broker.faults.on("Metadata", topic="orders").answer("LEADER_NOT_AVAILABLE")

        for version, everything in ((0, []), (1, None), (9, None)):
            answer = raw.ask(MetadataRequest(topics=everything), version, MetadataResponse)
            assert {each.name: each.error_code for each in answer.topics} == {"orders": 5, "users": 0}
            assert len(answer.brokers) == 1


def test_where_brokers_are_is_told_even_if_every_topic_is_refused():
    with asking() as (broker, raw):
        broker.faults.on("Metadata").answer("LEADER_NOT_AVAILABLE")

        for version in (0, 1, 9):
            answer = raw.ask(MetadataRequest(topics=[MetadataRequest.Topic(name="orders")]), version, MetadataResponse)
            assert [(each.name, each.error_code) for each in answer.topics] == [("orders", 5)]
            assert len(answer.brokers) == 1


def test_what_is_not_acknowledged_closes_the_connection_as_any_error_would():
    with asking() as (broker, raw):
        broker.faults.on("Produce").answer(19)
        raw.send(b"".join(write_request(a_produce(ORDERS, acks=0), PRODUCE, 1, "raw")))

        assert raw.receive() == b""
        assert end(broker, ORDERS) == 0


def test_by_group():
    with asking() as (broker, raw):
        broker.faults.on("Heartbeat", group="mine").answer("REBALANCE_IN_PROGRESS")

        def beat(group):
            request = HeartbeatRequest(group_id=group, member_id="m")
            return raw.ask(request, 4, HeartbeatResponse).error_code

        assert (beat("mine"), beat("yours")) == (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)


def test_requests_under_way_keep_their_order_beside_a_fault():
    with asking() as (broker, raw):
        broker.faults.on("Produce", nth=2).delay(0.05)
        for number in range(5):
            raw.send(b"".join(write_request(a_produce(ORDERS), PRODUCE, number, "raw")))

        assert [int.from_bytes(raw.receive()[:4], "big") for _ in range(5)] == list(range(5))


# -- the list of them ------------------------------------------------------------------------------


def test_faults_are_listed_found_and_removed():
    with Broker() as broker:
        one = broker.faults.on("Produce", topic="orders", nth=3).answer(19)
        two = broker.faults.on("Fetch", probability=0.5, seed=7).delay(2)

        assert list(broker.faults) == [one, two]
        assert broker.faults[two.number] is two
        assert [str(each) for each in broker.faults] == [
            "1: Produce topic=orders nth=3: answer NOT_ENOUGH_REPLICAS, fired 0",
            "2: Fetch probability=0.5 seed=7: delay 2 s, fired 0",
        ]
        one.remove()
        one.remove()
        assert list(broker.faults) == [two]
        broker.faults.clear()
        assert len(broker.faults) == 0
        with pytest.raises(KeyError, match="there is no fault 2"):
            broker.faults[2]


def test_reset_clears_faults():
    with asking() as (broker, raw):
        broker.faults.on("Produce").answer(19)
        broker.reset()
        assert len(broker.faults) == 0
        create(raw, "orders")
        assert produce(raw, ORDERS) == FINE


def test_faults_may_be_set_before_the_start_and_outlive_the_end():
    broker = Broker()
    broker.faults.on("Produce").answer(19)
    for _ in range(2):
        with broker, Raw(broker.server) as raw:
            create(raw, "orders")
            assert produce(raw, ORDERS) == {ORDERS: 19}
    broker.faults.clear()


def test_other_brokers_of_the_process_are_not_touched():
    with asking() as (one, raw), asking() as (two, other):
        one.faults.on("Produce").answer(19)

        assert (produce(raw, ORDERS), produce(other, ORDERS)) == ({ORDERS: 19}, FINE)
        assert kinds(two) == {Connection}


def kinds(broker):
    return {type(guest.connection) for guest in connections(broker).values()} | {
        broker.server.transport._guests.watched(Connection)
    }


def test_connections_are_the_brokers_own_unless_there_are_faults():
    with asking() as (broker, _):
        assert kinds(broker) == {Connection}
        with broker.faults.on("Produce").answer(19):
            (kind,) = kinds(broker)
            assert kind is not Connection
        assert kinds(broker) == {Connection}


SASL = {
    "listeners": "IN://127.0.0.1:0",
    "listener.security.protocol.map": "IN:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.in.plain.sasl.jaas.config": 'x.PlainLoginModule required user_alice="secret";',
    "connections.max.reauth.ms": "60000",
}


def test_faults_are_for_those_who_are_known_where_everybody_is_asked_who_he_is():
    with Broker(SASL) as broker:
        broker.faults.on("Metadata").answer("UNKNOWN_SERVER_ERROR")
        request = b"".join(write_request(MetadataRequest(topics=[MetadataRequest.Topic(name="t")]), 9, 1, "raw"))
        with Raw(broker.server) as stranger:
            stranger.send(request)
            assert stranger.receive() == b""
        with Raw(broker.server) as known:
            known.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1, SaslHandshakeResponse)
            known.ask(SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), 2, SaslAuthenticateResponse)
            known.send(request)
            _, answer = read_response(memoryview(known.receive()), MetadataResponse, 9)
            assert answer.topics[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
            broker.advance(61)
            known.send(request)
            assert known.receive() == b"", "its login has ended"


def test_nothing_is_left_behind_by_a_client_that_goes_while_it_waits():
    with asking() as (broker, raw), Raw(broker.server) as other:
        broker.faults.on("Produce", times=1).delay(0.05)
        raw.send(b"".join(write_request(a_produce(ORDERS), PRODUCE, 1, "raw")))
        raw.close()

        assert produce(other, ORDERS) == FINE
        until(lambda: len(connections(broker)) == 1)
    gc.collect()  # a coroutine that was never awaited would be said here


def test_among_tasks_of_trio():
    async def main():
        async with Broker() as broker:
            with Raw(broker.server) as raw:
                broker.faults.on("Metadata").answer(5)
                request = MetadataRequest(topics=[MetadataRequest.Topic(name="t")])
                answer = await trio.to_thread.run_sync(raw.ask, request, 9, MetadataResponse)
                assert answer.topics[0].error_code == 5

    trio.run(main)


# -- what is refused at once -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        (lambda faults: faults.on("Produse"), "Produse: there is no such API; did you mean Produce?"),
        (lambda faults: faults.on("produce"), "produce: there is no such API; did you mean Produce?"),
        (
            lambda faults: faults.on("Heartbeat", topic="orders"),
            "Heartbeat requests do not say a topic: choose among client_id, group",
        ),
        (
            lambda faults: faults.on("Fetch", transactional_id="t"),
            "Fetch requests do not say a transactional id: choose among client_id, partition, topic",
        ),
        (lambda faults: faults.on("Fetch", nth=0), "nth counts from 1, and is not 0"),
        (lambda faults: faults.on("Fetch", times=0), "times counts from 1, and is not 0"),
        (
            lambda faults: faults.on("Fetch", probability=1.5),
            "a probability is more than 0 and at most 1, not 1.5",
        ),
        (lambda faults: faults.on("Fetch", probability=0.5, nth=2), "say nth or probability, not both"),
        (
            lambda faults: faults.on("Fetch").answer("NOT_LEADER"),
            "NOT_LEADER: there is no such error; did you mean NOT_LEADER_OR_FOLLOWER?",
        ),
        (lambda faults: faults.on("Fetch").answer(4711), "4711: there is no error of that number"),
        (lambda faults: faults.on("Fetch").answer(0), "NONE says that all went well, which is no error"),
        (
            lambda faults: faults.on("AlterReplicaLogDirs").answer(1),
            "AlterReplicaLogDirs has no error code in its answer",
        ),
        (lambda faults: faults.on("Fetch").delay(0), "a delay takes more than no time, not 0 s"),
        (lambda faults: faults.on("Fetch").close("now"), "close 'before' or 'after' it is handled, not 'now'"),
        (
            lambda faults: faults.on("Produce").corrupt(),
            "no records come with an answer to Produce: corrupt those to Fetch",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_at_once(said, complaint):
    faults = Broker().faults
    with pytest.raises(ValueError, match=re.escape(complaint)):
        said(faults)
    assert len(faults) == 0


def test_the_version_that_records_are_sent_in_does_not_matter():
    with asking() as (broker, raw):
        broker.faults.on("Produce", topic="orders").answer(19)
        topic_id = broker.server.broker.image.topics["orders"].id
        by_id = a_produce(ORDERS)
        by_id.topic_data[0].topic_id = topic_id

        answers = [raw.ask(by_id, version, ProduceResponse) for version in range(3, 14)]

        assert [each.responses[0].partition_responses[0].error_code for each in answers] == [19] * 11
        assert end(broker, ORDERS) == 0
        assert ProduceRequest.versions.last == 13
