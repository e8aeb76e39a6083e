"""What clients have sent, recorded only when asked for."""

import pytest

from trilogue.broker.network.guests import unwatched
from trilogue.broker.tests.running import Raw
from trilogue.storage.tests.making import batch
from trilogue.testing import Broker
from trilogue.testing import history as module
from trilogue.testing.history import Record
from trilogue.testing.tests.asking import PRODUCE, a_produce, create, fetch, produce
from trilogue.wire.apis.produce import ProduceRequest, ProduceResponse
from trilogue.wire.records import Record as Given
from trilogue.wire.records import build

ORDERS, USERS = ("orders", 0), ("users", 0)


def test_requests_as_they_came():
    with Broker() as broker, Raw(broker.server) as raw:
        create(raw, "orders", "users")
        with broker.history.recording() as history:
            produce(raw, ORDERS, USERS)
            fetch(raw, ORDERS)

        assert [(sent.api, sent.client_id) for sent in history] == [("Produce", "raw"), ("Fetch", "raw")]
        (sent,) = history.of("Produce", topic="orders")
        assert (sent.version, sent.topics, sent.partitions) == (PRODUCE, {"orders", "users"}, {ORDERS, USERS})
        assert sent.request.acks == -1
        assert 0 <= broker.server.broker.clock() - sent.at_ms < 60_000
        assert history.of("Produce", topic="nobody") == []
        assert [each.api for each in history.of("Fetch", client_id="raw")] == ["Fetch"]


def test_records_are_decoded_of_one_topic_and_partition():
    with Broker(history=True) as broker, Raw(broker.server) as raw:
        create(raw, "orders", "users", partitions=2)
        request = a_produce(("orders", 1), USERS)
        request.topic_data[0].partition_data[0].records = build(
            [Given(0, 1000, b"k", b"v", (("h", b"x"),)), Given(1, 2000, None, None)]
        )
        raw.ask(request, PRODUCE, ProduceResponse)

        assert broker.history.records("orders") == [
            Record("orders", 1, b"k", b"v", (("h", b"x"),), 1000),
            Record("orders", 1, None, None, (), 2000),
        ]
        assert broker.history.records("orders", partition=0) == []


def test_topics_that_travel_by_id_have_names():
    with Broker(history=True) as broker, Raw(broker.server) as raw:
        create(raw, "orders")
        request = a_produce(ORDERS)
        request.topic_data[0].topic_id = broker.server.broker.image.topics["orders"].id
        raw.ask(request, 13, ProduceResponse)

        assert [each.value for each in broker.history.records("orders")] == [b"v"]


def test_nothing_is_recorded_unless_asked_for():
    with Broker() as broker, Raw(broker.server) as raw:
        create(raw, "orders")
        produce(raw, ORDERS)
        assert len(broker.history) == 0
        assert broker.server.transport._guests.watched is unwatched
        with broker.history.recording(), broker.history.recording():
            produce(raw, ORDERS)
        produce(raw, ORDERS)

        assert len(broker.history) == 1
        assert broker.server.transport._guests.watched is unwatched
        broker.reset()
        assert len(broker.history) == 0


def test_requests_that_a_fault_meets_are_recorded_as_well():
    with Broker(history=True) as broker, Raw(broker.server) as raw:
        create(raw, "orders")
        broker.faults.on("Produce").answer(19)
        produce(raw, ORDERS)

        assert len(broker.history.records("orders")) == 1


def test_a_template_does_not_pass_the_history_by():
    with Broker() as broker, Raw(broker.server) as raw:
        create(raw, "orders")
        for _ in range(3):
            produce(raw, ORDERS)
        with broker.history.recording():
            for _ in range(3):
                produce(raw, ORDERS)

        assert len(broker.history.records("orders")) == 3


def test_the_oldest_go_first(monkeypatch):
    monkeypatch.setattr(module, "REQUESTS_MAX", 2)
    with Broker(history=True) as broker, Raw(broker.server) as raw:
        create(raw, "orders")
        for _ in range(3):
            produce(raw, ORDERS)

        assert (len(broker.history), broker.history.forgotten) == (2, 2)
        assert len(broker.history.records("orders")) == 2


def test_so_many_bytes_are_kept(monkeypatch):
    monkeypatch.setattr(module, "BYTES_MAX", 3000)
    with Broker(history=True) as broker, Raw(broker.server) as raw:
        create(raw, "orders")
        for _ in range(3):
            large = ProduceRequest.Topic.Partition(index=0, records=bytes(batch(bytes(1000))))
            topic = ProduceRequest.Topic(name="orders", partition_data=[large])
            raw.ask(ProduceRequest(acks=-1, timeout_ms=1, topic_data=[topic]), PRODUCE, ProduceResponse)

        assert len(broker.history.records("orders")) == 2


def test_an_api_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="did you mean Produce"):
        Broker().history.of("Produse")
