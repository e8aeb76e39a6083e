"""`trilogue group`: what groups of stock clients look like, and how they are moved and removed."""

import json

import confluent_kafka
import kafka
import pytest

from trilogue.cli.group import assigned
from trilogue.cli.main import main
from trilogue.testing import Broker


@pytest.fixture
def orders(trilogue_cli) -> str:
    """A topic of two partitions, with five records in each."""
    trilogue_cli("topic", "create", "orders", "--partitions", "2")
    for partition in ("0", "1"):
        trilogue_cli("produce", "orders", "--partition", partition, stdin=b"1\n2\n3\n4\n5\n")
    return "orders"


def commit(broker: Broker, group: str, **offsets: int) -> None:
    """As a consumer does that is no member: `orders_1=3` is partition 1 of orders."""
    consumer = kafka.KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id=group, enable_auto_commit=False)
    places = {kafka.TopicPartition(*split(name)): offset for name, offset in offsets.items()}
    consumer.assign(list(places))
    consumer.commit({place: kafka.OffsetAndMetadata(offset, "", -1) for place, offset in places.items()})
    consumer.close(autocommit=False)


def split(name: str) -> tuple[str, int]:
    topic, _, partition = name.rpartition("_")
    return topic, int(partition)


@pytest.fixture(params=["classic", "consumer"])
def member(request, broker, orders):
    """A living member of the group `readers`, which has committed 1 of one of both partitions."""
    settings = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": "readers",
        "client.id": "reader",
        "group.protocol": request.param,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    consumer = confluent_kafka.Consumer(settings)
    consumer.subscribe([orders])
    first = consumer.poll(10)
    consumer.commit(first, asynchronous=False)
    yield request.param
    consumer.close()


def test_list(trilogue_cli, broker, orders):
    assert trilogue_cli("group", "list") == ""
    commit(broker, "b", orders_0=1)
    commit(broker, "a", orders_0=1)

    assert trilogue_cli("group", "list") == "a\tclassic\t\tEmpty\nb\tclassic\t\tEmpty\n"
    assert trilogue_cli("group", "list", "--state", "Stable") == ""
    trilogue_cli.watches()
    assert trilogue_cli("group", "list").splitlines()[0].split() == ["NAME", "TYPE", "PROTOCOL", "STATE"]


def test_a_living_group(trilogue_cli, member):
    (listed,) = json.loads(trilogue_cli("group", "list", "--json"))
    assert listed == {"name": "readers", "type": member, "protocol": "consumer", "state": "Stable"}

    (group,) = json.loads(trilogue_cli("group", "describe", "readers", "--json"))
    (reader,) = group.pop("members")
    partitions = group.pop("partitions")
    assert group == {
        "name": "readers",
        "type": member,
        "state": "Stable",
        "assignor": {"classic": "range", "consumer": "uniform"}[member],
    }
    assert (reader["client"], reader["assigned"]) == ("reader", ["orders:0", "orders:1"])
    assert [(each["topic"], each["partition"], each["end_offset"]) for each in partitions] == [
        ("orders", 0, 5),
        ("orders", 1, 5),
    ]
    assert {each["member"] for each in partitions} == {reader["member"]}
    assert sorted((each["committed_offset"], each["lag"]) for each in partitions if each["lag"]) == [(1, 4)]
    row = trilogue_cli("group", "describe", "readers", "--members")
    assert row == f"readers\t{reader['member']}\t\treader\t{reader['host']}\torders:0,orders:1\n"


def test_a_person_sees_partitions_and_members(trilogue_cli, member):
    trilogue_cli.watches()
    facts, partitions, members = trilogue_cli("group", "describe", "readers").split("\n\n")

    assert facts.splitlines()[2] == "state     Stable"
    assert partitions.splitlines()[0].split("  ")[0] == "TOPIC"
    assert members.splitlines()[0].split()[:2] == ["MEMBER", "INSTANCE"]


def test_a_living_group_is_not_touched(trilogue_cli, member):
    told = trilogue_cli.fails("group", "reset-offsets", "readers", "--to", "end", "--execute")
    assert told == "readers is Stable: its offsets can be reset when all members have left"
    told = trilogue_cli.fails("group", "delete", "readers")
    assert told == "readers: it has members; `trilogue group describe` shows them"


def test_describe_a_group_without_members(trilogue_cli, broker, orders):
    commit(broker, "g", orders_0=2, orders_1=5)

    assert trilogue_cli("group", "describe", "g") == "g\torders\t0\t2\t5\t3\t\ng\torders\t1\t5\t5\t0\t\n"
    assert trilogue_cli("group", "describe", "g", "--members") == ""


@pytest.mark.parametrize(
    ("to", "offset"),
    [("beginning", 0), ("end", 5), ("2", 2), ("99", 5), ("-2", 3), ("-99", 0), ("@1000", 0), ("2999-01-01", 5)],
)
def test_reset_to(trilogue_cli, broker, orders, to, offset):
    commit(broker, "g", orders_0=1)

    assert trilogue_cli("group", "reset-offsets", "g", "--to", to) == f"orders\t0\t1\t{offset}\n"
    assert trilogue_cli("group", "describe", "g").split("\t")[3] == "1"
    assert trilogue_cli("group", "reset-offsets", "g", "--to", to, "--execute") == f"orders\t0\t1\t{offset}\n"
    assert trilogue_cli("group", "describe", "g").split("\t")[3] == str(offset)


def test_reset_some(trilogue_cli, broker, orders):
    commit(broker, "g", orders_0=1)
    reset = ("group", "reset-offsets", "g", "--to", "4", "--topic")

    assert trilogue_cli(*reset, "orders") == "orders\t0\t1\t4\norders\t1\t\t4\n"
    assert json.loads(trilogue_cli(*reset, "orders:1", "--execute", "--json")) == {
        "name": "g",
        "executed": True,
        "partitions": [{"topic": "orders", "partition": 1, "committed_offset": None, "new_offset": 4}],
    }
    assert [line.split("\t")[3] for line in trilogue_cli("group", "describe", "g").splitlines()] == ["1", "4"]


def test_reset_makes_a_group(trilogue_cli, orders):
    trilogue_cli("group", "reset-offsets", "new", "--to", "end", "--topic", "orders:0", "--execute")
    assert trilogue_cli("group", "describe", "new") == "new\torders\t0\t5\t5\t0\t\n"


def test_refusals_say_what_is_wrong(trilogue_cli, orders):
    reset = ("group", "reset-offsets", "gone", "--to", "end")

    assert trilogue_cli.fails("group", "describe", "gone") == (
        "there is no group gone; `trilogue group list` lists them"
    )
    assert trilogue_cli.fails("group", "delete", "gone") == "gone: there is no such group"
    assert trilogue_cli.fails(*reset) == "gone has committed nothing; --topic says what to reset"
    assert trilogue_cli.fails(*reset, "--topic", "none").startswith("there is no topic none")
    assert trilogue_cli.fails(*reset, "--topic", "orders:7") == "--topic orders:7: orders has partitions 0 to 1"


def test_partitions_are_numbers(trilogue_cli, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["group", "reset-offsets", "g", "--to", "end", "--topic", "orders:x"])
    assert ended.value.code == 2
    assert "write TOPIC or TOPIC:PARTITION,..., not 'orders:x'" in capsys.readouterr().err


def test_what_is_committed_for_a_topic_that_is_gone(trilogue_cli, broker, orders):
    trilogue_cli("topic", "create", "other")
    commit(broker, "g", orders_0=2, other_0=0)
    trilogue_cli("topic", "delete", "other")

    assert trilogue_cli("group", "describe", "g").startswith("g\torders\t0\t2\t5\t3\t\n")


def test_delete(trilogue_cli, broker, orders):
    for group in ("a", "b", "c"):
        commit(broker, group, orders_0=1)

    assert trilogue_cli("group", "delete", "a") == ""
    assert json.loads(trilogue_cli("group", "delete", "b", "--json")) == [{"name": "b"}]
    assert trilogue_cli.fails("group", "delete", "gone", "c") == "gone: there is no such group"
    assert trilogue_cli("group", "list") == ""


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff\xff", b"not of a consumer", b"\0\1\0\0\0\1\0\1t"])
def test_what_is_no_assignment_is_none(data):
    assert assigned(data) == []
