"""Every client does everything it can: one test per feature, told once for all of them."""

import time

import pytest

from compat_tests import matrix
from compat_tests.matrix import CLIENTS, CODECS, Client, every_client
from compat_tests.program import Record, spelled
from compat_tests.stories import (
    MakeTopic,
    Start,
    come_and_go,
    eventually,
    fresh,
    goes_on_where_it_was,
    numbered,
    read_as_member,
)


@pytest.fixture
def topic(make_topic: MakeTopic) -> str:
    return make_topic(1)


# -- writing and reading ---------------------------------------------------------------------------


@pytest.mark.parametrize("client", every_client(matrix.METADATA))
def test_a_topic_that_was_made_is_seen_with_its_partitions(client: Client, start: Start) -> None:
    program, name = start(client), fresh("made")

    program.ask("create", topic=name, partitions=3)

    eventually(lambda: name in program.ask("topics")["topics"], True)
    assert program.ask("describe", topic=name)["partitions"] == [0, 1, 2]


@pytest.mark.parametrize(("client", "codec"), [each for codec in CODECS for each in every_client(codec, codec)])
def test_what_was_written_is_read_in_order(client: Client, codec: str, start: Start, topic: str) -> None:
    program = start(client)
    records = [Record(b"k%d" % index, b"v" * 100 + b"%d" % index) for index in range(500)]

    assert program.write(topic, records, codec=codec) == list(range(500))
    assert program.read(topic, 500) == records


@pytest.mark.parametrize("client", every_client(matrix.HEADERS))
def test_what_is_not_there_is_not_the_same_as_empty(client: Client, start: Start, topic: str) -> None:
    program = start(client)
    records = [
        Record(b"key", b"value"),
        Record(None, b"no key"),
        Record(b"tombstone", None),
        Record(b"", b""),
        Record(
            b"h", b"with headers", (("first", b"1"), ("first", b"2"), ("utf-8 \u00fc", b"\xff\x00"), ("empty", b""))
        ),
    ]

    assert program.write(topic, records) == list(range(len(records)))
    assert program.read(topic, len(records)) == records


@pytest.mark.parametrize("client", every_client(matrix.LARGE))
def test_values_from_nothing_to_ten_mebibytes(client: Client, start: Start, make_topic: MakeTopic) -> None:
    program, name = start(client), make_topic(1, **{"max.message.bytes": str(12 << 20)})
    records = [Record(b"%d" % size, bytes(size)) for size in (0, 1, 1 << 10, 1 << 20, 10 << 20)]

    assert program.write(name, records[:4]) == [0, 1, 2, 3]
    assert program.write(name, records[4:]) == [4]
    assert program.read(name, 5) == records


@pytest.mark.parametrize("client", every_client(matrix.IDEMPOTENT))
def test_an_idempotent_producer_writes_everything_once(client: Client, start: Start, topic: str) -> None:
    program = start(client)

    assert program.write(topic, numbered(2_000), idempotent="true") == list(range(2_000))
    assert program.read(topic, 2_000) == numbered(2_000)


@pytest.mark.parametrize("client", every_client(matrix.ACKS))
def test_acknowledged_or_not_it_is_written(client: Client, start: Start, topic: str) -> None:
    program = start(client)

    program.write(topic, numbered(10), acks="0")
    assert program.read(topic, 10) == numbered(10)  # nobody told us where they are: we wait for them
    assert program.write(topic, numbered(10), acks="1") == list(range(10, 20))
    assert program.write(topic, numbered(10), acks="all") == list(range(20, 30))
    assert program.read(topic, 30) == numbered(10) * 3


@pytest.mark.parametrize("client", every_client(matrix.SEEK))
def test_both_ends_are_found(client: Client, start: Start, topic: str) -> None:
    program = start(client)

    assert program.ask("position", topic=topic, at="earliest") == {"position": 0}
    assert program.ask("position", topic=topic, at="latest") == {"position": 0}
    program.write(topic, numbered(7))
    assert program.ask("position", topic=topic, at="earliest") == {"position": 0}
    assert program.ask("position", topic=topic, at="latest") == {"position": 7}
    assert program.read(topic, 3, start=4) == numbered(3, first=4)


@pytest.mark.parametrize("client", every_client(matrix.TIMES))
def test_offsets_are_found_by_time(client: Client, start: Start, topic: str) -> None:
    program, begin = start(client), int(time.time() * 1000) - 3_600_000
    program.write(topic, numbered(10), timestamp=begin)

    def position(milliseconds: int) -> int:
        return int(program.ask("position", topic=topic, at=begin + milliseconds)["position"])

    found = program.ask("consume", topic=topic, count=10)["records"]
    assert [each["timestamp"] - begin for each in found] == list(range(0, 10_000, 1_000))
    assert [position(each) for each in (-1, 0, 1, 1_000, 8_999, 9_000)] == [0, 0, 1, 1, 9, 9]


Written = tuple[str, tuple[list[Record], list[Record]]]


@pytest.fixture(scope="session")
def written_by_all(programs: Start, make_topic: MakeTopic, target: str) -> Written:
    """To partition 0 all have written, in all their codecs but zstd, which not everybody reads: that is in 1."""
    name, expected = make_topic(2), ([], [])
    for client in CLIENTS:
        if client.ours_only and target == "apache-kafka":
            continue
        try:
            program = programs(client)
        except pytest.skip.Exception:
            continue
        for codec in CODECS:
            if codec not in client.lacks:
                partition = int(codec == "zstd")
                records = [Record(client.name.encode(), codec.encode() * 50, (("codec", codec.encode()),))] * 2
                program.write(name, records, codec=codec, partition=partition)
                expected[partition].extend(records)
    return name, expected


@pytest.mark.parametrize("client", every_client(matrix.OTHERS))
def test_clients_understand_each_other(client: Client, start: Start, written_by_all: Written) -> None:
    name, expected = written_by_all
    for partition in (0,) if "zstd" in client.lacks else (0, 1):
        found = start(client).read(name, len(expected[partition]), partition=partition)
        assert found == expected[partition]


# -- groups ----------------------------------------------------------------------------------------

PROTOCOLS = [
    *(("classic", matrix.GROUP, matrix.REBALANCE), ("consumer", matrix.NEW_GROUP, matrix.NEW_REBALANCE)),
]


@pytest.mark.parametrize(
    ("client", "protocol"), [each for name, row, _ in PROTOCOLS for each in every_client(row, name)]
)
def test_a_group_goes_on_where_it_was(client: Client, protocol: str, start: Start, make_topic: MakeTopic) -> None:
    goes_on_where_it_was(start(client), make_topic(2), protocol=protocol)


@pytest.mark.parametrize(
    ("client", "protocol"), [each for name, _, row in PROTOCOLS for each in every_client(row, name)]
)
def test_members_come_and_go_and_share_what_there_is(
    client: Client, protocol: str, start: Start, make_topic: MakeTopic
) -> None:
    come_and_go(start(client), start(client, 1), make_topic(4), protocol=protocol)


# -- transactions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("client", every_client(matrix.TRANSACTIONS))
def test_only_what_was_committed_is_read(client: Client, start: Start, topic: str) -> None:
    program, name = start(client), fresh("tx")

    def transact(first: int, end: str) -> None:
        program.ask("transact", topic=topic, name=name, end=end, records=spelled(numbered(3, first)))

    transact(0, "commit")
    transact(3, "abort")
    transact(6, "commit")

    committed = numbered(3) + numbered(3, first=6)
    assert program.read(topic, 6, isolation="read_committed") == committed
    assert program.read(topic, 9, isolation="read_uncommitted") == numbered(9)


# -- administration --------------------------------------------------------------------------------


@pytest.mark.parametrize("client", every_client(matrix.ADMIN_TOPICS))
def test_topics_grow_and_go(client: Client, start: Start) -> None:
    program, name = start(client), fresh("grows")

    program.ask("create", topic=name, partitions=1)
    program.ask("grow", topic=name, partitions=4)
    eventually(lambda: name in program.ask("topics")["topics"], True)
    eventually(lambda: program.ask("describe", topic=name)["partitions"], [0, 1, 2, 3])
    program.ask("delete", topic=name)
    eventually(lambda: name in program.ask("topics")["topics"], False)


@pytest.mark.parametrize("client", every_client(matrix.ADMIN_CONFIGS))
def test_settings_are_described_and_altered(client: Client, start: Start) -> None:
    program, name = start(client), fresh("set")

    program.ask("create", topic=name, partitions=1, **{"retention.ms": "86400000"})
    eventually(lambda: name in program.ask("topics")["topics"], True)
    assert program.ask("configs", topic=name, name="retention.ms") == {"value": "86400000"}
    assert program.ask("configs", topic=name, name="max.message.bytes") == {"value": "1048588"}
    program.ask("alter", topic=name, name="max.message.bytes", value="2000000")
    eventually(lambda: program.ask("configs", topic=name, name="max.message.bytes"), {"value": "2000000"})


@pytest.fixture
def group_at_rest(request: pytest.FixtureRequest, start: Start, make_topic: MakeTopic) -> tuple[str, str]:
    """A topic, and a group that has read ten records of it and has no member."""
    name, group, program = make_topic(1), fresh("rests"), start(request.getfixturevalue("client"))
    program.write(name, numbered(10))
    program.ask("join", topic=name, group=group)
    read_as_member(program, 10)
    program.ask("commit")
    living = program.ask("describe_group", group=group)
    assert (living["state"].upper(), living["members"]) == ("STABLE", 1)
    program.ask("leave")
    return name, group


@pytest.mark.parametrize("client", every_client(matrix.ADMIN_GROUPS))
def test_groups_are_listed_and_described(client: Client, start: Start, group_at_rest: tuple[str, str]) -> None:
    program, (name, group) = start(client), group_at_rest

    assert group in program.ask("groups")["groups"]
    described = program.ask("describe_group", group=group)
    assert (described["state"].upper(), described["members"]) == ("EMPTY", 0)
    assert program.ask("group_offsets", group=group, topic=name) == {"offsets": {"0": 10}}


@pytest.mark.parametrize("client", every_client(matrix.DELETE_GROUP))
def test_a_deleted_group_is_gone(client: Client, start: Start, group_at_rest: tuple[str, str]) -> None:
    program, (_, group) = start(client), group_at_rest

    program.ask("delete_group", group=group)

    assert group not in program.ask("groups")["groups"]


@pytest.mark.parametrize("client", every_client(matrix.DELETE_RECORDS))
def test_deleted_records_are_gone(client: Client, start: Start, topic: str) -> None:
    program = start(client)
    program.write(topic, numbered(10))

    assert program.ask("delete_records", topic=topic, offset=4) == {"low_watermark": 4}
    assert program.ask("position", topic=topic, at="earliest") == {"position": 4}
    assert program.read(topic, 6, start=4) == numbered(6, first=4)
