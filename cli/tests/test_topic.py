"""`trilogue topic`, `cluster` and `health`, as a person or a program uses them."""

import json

import pytest

from trilogue.cli.main import main
from trilogue.testing import Broker


def test_create_list_and_delete(trilogue_cli):
    assert trilogue_cli("topic", "list") == ""
    assert trilogue_cli("topic", "create", "b", "a", "--partitions", "3") == ""
    assert trilogue_cli("topic", "list") == "a\t3\t1\nb\t3\t1\n"
    assert trilogue_cli("topic", "delete", "a") == ""
    assert trilogue_cli("topic", "list") == "b\t3\t1\n"


def test_a_person_sees_a_table(trilogue_cli):
    trilogue_cli("topic", "create", "orders", "--partitions", "12")
    trilogue_cli("topic", "create", "b")
    trilogue_cli.watches()

    assert trilogue_cli("topic", "list") == (
        "NAME    PARTITIONS  REPLICATION\n"
        "b                1            1\n"
        "orders          12            1\n"
    )  # fmt: skip


def test_a_program_reads_json(trilogue_cli):
    (made,) = json.loads(trilogue_cli("topic", "create", "orders", "--partitions", "2", "--json"))
    assert (made["name"], made["partitions"], made["replication"]) == ("orders", 2, 1)
    assert json.loads(trilogue_cli("topic", "list", "--json")) == [
        {"name": "orders", "partitions": 2, "replication": 1}
    ]
    (described,) = json.loads(trilogue_cli("topic", "describe", "orders", "--json"))
    assert described["id"] == made["id"]
    assert described["partitions"][1] == {
        "partition": 1,
        "leader": 1,
        "epoch": 0,
        "replicas": [1],
        "isr": [1],
        "start_offset": 0,
        "end_offset": 0,
    }
    assert json.loads(trilogue_cli("topic", "delete", "orders", "--json")) == [{"name": "orders"}]


def test_describe_knows_the_offsets(trilogue_cli):
    trilogue_cli("produce", "orders", stdin=b"1\n2\n3\n")

    assert trilogue_cli("topic", "describe", "orders") == "orders\t0\t1\t0\t1\t1\t0\t3\n"
    trilogue_cli.watches()
    shown = trilogue_cli("topic", "describe", "orders").splitlines()
    assert shown[0] == "name        orders"
    assert shown[-2].split() == ["PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "START", "OFFSET", "END", "OFFSET"]
    assert shown[-1].split() == ["0", "1", "0", "1", "1", "0", "3"]


def test_config_shows_and_changes(trilogue_cli):
    trilogue_cli("topic", "create", "orders", "--config", "retention.ms=1000")
    assert trilogue_cli("topic", "config", "orders") == "retention.ms\t1000\ttopic\n"
    trilogue_cli("topic", "config", "orders", "--set", "cleanup.policy=compact", "--unset", "retention.ms")
    assert trilogue_cli("topic", "config", "orders") == "cleanup.policy\tcompact\ttopic\n"
    everything = json.loads(trilogue_cli("topic", "config", "orders", "--all", "--json"))
    assert {"name": "retention.ms", "value": "604800000", "from": "default"} in everything


def test_refusals_say_what_is_wrong(trilogue_cli):
    trilogue_cli("topic", "create", "there")

    assert trilogue_cli.fails("topic", "create", "there") == "there: Topic 'there' already exists."
    assert trilogue_cli.fails("topic", "delete", "gone") == "gone: there is no such topic"
    assert trilogue_cli.fails("topic", "describe", "gone") == "there is no topic gone; `trilogue topic list` lists them"
    assert "replication factor of 3 cannot be reached" in trilogue_cli.fails(
        "topic", "create", "x", "--replication", "3"
    )
    assert "retention.ms" in trilogue_cli.fails("topic", "create", "x", "--config", "retention.ms=soon")
    assert "no.such" in trilogue_cli.fails("topic", "config", "there", "--set", "no.such=1")


def test_what_is_so_already_may_be_fine(trilogue_cli):
    trilogue_cli("topic", "create", "there")
    trilogue_cli("topic", "create", "there", "--if-not-exists")
    trilogue_cli("topic", "delete", "gone", "--if-exists")


def test_one_that_fails_does_not_keep_the_others_from_being_made(trilogue_cli):
    trilogue_cli("topic", "create", "there")

    assert "already exists" in trilogue_cli.fails("topic", "create", "there", "new")
    assert trilogue_cli("topic", "list") == "new\t1\t1\nthere\t1\t1\n"


def test_a_setting_without_a_value_is_not_understood(trilogue_cli, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["topic", "create", "x", "--config", "retention.ms"])
    assert ended.value.code == 2
    assert "write NAME=VALUE, not 'retention.ms'" in capsys.readouterr().err


def test_cluster(trilogue_cli, broker):
    trilogue_cli("topic", "create", "a", "--partitions", "3")
    assert trilogue_cli("cluster") == f"1\t127.0.0.1\t{broker.port}\t\tyes\n"
    shown = json.loads(trilogue_cli("cluster", "--json"))
    assert shown["brokers"] == [{"id": 1, "host": "127.0.0.1", "port": broker.port, "rack": None, "controller": True}]
    assert (shown["controller"], shown["topics"], shown["partitions"]) == (1, 1, 3)
    trilogue_cli.watches()
    assert trilogue_cli("cluster").splitlines()[-2].split() == ["ID", "HOST", "PORT", "RACK", "CONTROLLER"]


def test_health(trilogue_cli, broker):
    assert trilogue_cli("health") == f"{broker.bootstrap} is ready: 1 broker, the controller is 1\n"
    assert json.loads(trilogue_cli("health", "--json")) == {
        "healthy": True,
        "address": broker.bootstrap,
        "controller": 1,
        "brokers": [1],
    }


def test_health_where_everybody_is_asked_who_he_is(trilogue_cli):
    settings = {
        "listeners": "IN://127.0.0.1:0",
        "listener.security.protocol.map": "IN:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    }
    with Broker(settings) as broker:
        assert trilogue_cli.fails("health", "--bootstrap", broker.bootstrap) == (
            f"{broker.bootstrap} is not ready: it hung up, as listeners with SASL do: "
            "--bootstrap says where another one is"
        )


def test_health_of_nobody(trilogue_cli):
    assert trilogue_cli.fails("health", "--bootstrap", "127.0.0.1:1") == "127.0.0.1:1 is not ready: Connection refused"
    code, out, _ = trilogue_cli.attempt("health", "--bootstrap", "127.0.0.1:1", "--json")
    assert (code, json.loads(out)) == (
        1,
        {"healthy": False, "address": "127.0.0.1:1", "problem": "Connection refused"},
    )


@pytest.mark.parametrize("command", [("topic", "list"), ("cluster",), ("consume", "t"), ("produce", "t")])
def test_a_broker_that_is_not_there(trilogue_cli, command):
    assert trilogue_cli.fails(*command, "--bootstrap", "127.0.0.1:1") == (
        "nobody answers at 127.0.0.1:1: Connection refused; "
        "`trilogue start` starts a broker, --bootstrap says where one is"
    )


def test_a_broker_that_advertises_where_it_is_not(trilogue_cli):
    with Broker(advertised_listeners="PLAINTEXT://127.0.0.1:1") as broker:
        told = trilogue_cli.fails("topic", "create", "t", "--bootstrap", broker.bootstrap)
    assert told == (
        "nobody answers at 127.0.0.1:1: Connection refused: where broker 1 says it is (advertised.listeners)"
    )


def test_an_address_that_is_none(trilogue_cli):
    for command in (("health",), ("topic", "list")):
        told = trilogue_cli.fails(*command, "--bootstrap", "localhost:port")
        assert told == "--bootstrap: 'localhost:port' is not an address: write HOST:PORT"
