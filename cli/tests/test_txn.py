"""`trilogue txn`: what producers have open, and how it is ended for them."""

import json

import kafka
import kafka.errors
import pytest

from trilogue.cli.main import main
from trilogue.client.blocking import Blocking, run
from trilogue.client.client import Client
from trilogue.client.world import Address
from trilogue.testing import Broker
from trilogue.wire.apis.produce import ProduceRequest, ProduceResponse
from trilogue.wire.records import Record, build


@pytest.fixture
def producer(broker, trilogue_cli):
    """Of the transactional id `t`, with one record in `orders` that is not committed."""
    trilogue_cli("topic", "create", "orders")
    producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id="t", linger_ms=0)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("orders", b"one", partition=0).get(10)
    yield producer
    producer.close(timeout=1)


def test_list(trilogue_cli, producer):
    (listed,) = json.loads(trilogue_cli("txn", "list", "--json"))
    assert (listed["id"], listed["state"], listed["coordinator"]) == ("t", "Ongoing", 1)
    assert trilogue_cli("txn", "list") == f"t\tOngoing\t{listed['producer_id']}\t1\n"
    assert trilogue_cli("txn", "list", "--state", "CompleteCommit") == ""
    assert trilogue_cli.fails("txn", "list", "--state", "Asleep") == "--state: there is no state Asleep"
    trilogue_cli.watches()
    assert trilogue_cli("txn", "list").splitlines()[0].split() == ["ID", "STATE", "PRODUCER", "ID", "COORDINATOR"]


def test_describe(trilogue_cli, producer):
    (described,) = json.loads(trilogue_cli("txn", "describe", "t", "--json"))
    assert (described["state"], described["partitions"]) == ("Ongoing", ["orders:0"])
    assert described["timeout_ms"] == 60000
    assert described["open_seconds"] < 30
    assert "partitions\torders:0\n" in trilogue_cli("txn", "describe", "t")

    producer.commit_transaction()
    (described,) = json.loads(trilogue_cli("txn", "describe", "t", "--json"))
    assert (described["open_seconds"], described["partitions"]) == (None, [])


def test_abort_fences_the_producer(trilogue_cli, producer):
    assert trilogue_cli("consume", "orders", "--uncommitted") == "one\n"
    assert trilogue_cli("txn", "abort", "t") == ""

    assert trilogue_cli("txn", "list", "--state", "Ongoing") == ""
    trilogue_cli("produce", "orders", stdin=b"two\n")
    assert trilogue_cli("consume", "orders") == "two\n"
    with pytest.raises(kafka.errors.KafkaError):
        producer.commit_transaction()
    assert trilogue_cli.fails("txn", "abort", "t").startswith("t has no open transaction: its state is ")


def test_one_that_a_coordinator_knows_does_not_hang(trilogue_cli, producer):
    told = trilogue_cli.fails("txn", "abort", "--at", "orders:0:0")
    assert told == ("the transaction at orders:0:0 does not hang: it is Ongoing, and `trilogue txn abort t` aborts it")
    producer.commit_transaction()
    assert trilogue_cli("consume", "orders") == "one\n"


def hang(broker: Broker) -> None:
    """Write into `orders` for a transaction that nobody has begun, as producers older than Produce v12 could."""
    batch = build(
        [Record(0, 1000, None, b"lost")], producer_id=4000, producer_epoch=0, base_sequence=0, transactional=True
    )
    Topic = ProduceRequest.Topic
    topic = Topic(name="orders", partition_data=[Topic.Partition(index=0, records=batch)])
    request = ProduceRequest(transactional_id="lost", acks=-1, timeout_ms=5000, topic_data=[topic])

    async def work() -> ProduceResponse:
        async with Client([Address.parse(broker.bootstrap)], Blocking()) as client:
            return await client.call(request, ProduceResponse, cap=11)

    assert run(work()).responses[0].partition_responses[0].error_code == 0


def test_abort_one_that_hangs(trilogue_cli, monkeypatch):
    with Broker(num_partitions=1, transaction_partition_verification_enable=False) as broker:
        monkeypatch.setenv("TRILOGUE_BOOTSTRAP", broker.bootstrap)
        trilogue_cli("topic", "create", "orders")
        hang(broker)
        trilogue_cli("produce", "orders", stdin=b"one\n")
        assert trilogue_cli("consume", "orders") == ""

        assert json.loads(trilogue_cli("txn", "abort", "--at", "orders:0:0", "--json")) == [
            {"at": "orders:0:0", "topic": "orders", "partition": 0, "offset": 0}
        ]

        assert trilogue_cli("consume", "orders") == "one\n"
        assert trilogue_cli.fails("txn", "abort", "--at", "orders:0:0") == "no open transaction begins at orders:0:0"


def test_refusals_say_what_is_wrong(trilogue_cli, producer):
    for verb in ("describe", "abort"):
        told = trilogue_cli.fails("txn", verb, "gone")
        assert told == "there is no transactional id gone; `trilogue txn list` lists them"
    assert trilogue_cli.fails("txn", "abort", "--at", "orders:0:7") == "no open transaction begins at orders:0:7"
    assert trilogue_cli.fails("txn", "abort", "--at", "none:0:7").startswith("there is no topic none")


@pytest.mark.parametrize("words", [("--at", "orders:0"), (), ("t", "--at", "orders:0:0")])
def test_what_to_abort_has_to_be_said(trilogue_cli, capsys, words):
    with pytest.raises(SystemExit) as ended:
        main(["txn", "abort", *words])
    assert ended.value.code == 2
