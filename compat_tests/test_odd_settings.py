"""Clients in settings that are met in the wild: told to speak as to an old broker, and other ways to share partitions.

Our broker takes what Kafka took from 0.8 on; Apache Kafka 4 begins with 0.11 (KIP-896), so what is older is ours only.
"""

from collections.abc import Iterable
from typing import Any

import pytest

from compat_tests.matrix import Client
from compat_tests.stories import MakeTopic, Start, come_and_go, goes_on_where_it_was, numbered

KAFKA_4_REFUSES = "Apache Kafka 4 refuses versions from before 0.11"


def as_to(program: str, setting: str, versions: Iterable[str], refused: Iterable[str]) -> list[Client]:
    """A client that is told how old the broker is; some of these versions Apache Kafka does not serve any more."""
    return [
        Client(
            f"{program} as to {version.strip('()').replace(', ', '.')}",
            program,
            settings={**FALLBACK.get(setting, {}), setting: version.replace(" ", "")},
            ours_only=KAFKA_4_REFUSES if version in refused else "",
        )
        for version in versions
    ]


FALLBACK = {"broker.version.fallback": {"api.version.request": "false"}}

OLD = [
    *as_to("sarama", "version", ["0.10.2.0", "0.11.0.0", "1.0.0", "2.1.0", "2.8.0", "3.9.0", "4.0.0"], {"0.10.2.0"}),
    *as_to("confluent-kafka", "broker.version.fallback", ["0.9.0.1", "0.10.2.1"], {"0.9.0.1", "0.10.2.1"}),
    *as_to("rdkafka", "broker.version.fallback", ["0.9.0.1"], {"0.9.0.1"}),
    *as_to("kafka-python", "api_version", ["(0, 10, 2)", "(0, 11)", "(2, 8)"], {"(0, 10, 2)"}),
    *as_to("kafka-python-2.0.2", "api_version", ["(0, 9)", "(0, 10, 1)", "(2, 5)"], {"(0, 9)", "(0, 10, 1)"}),
    *as_to("kafka-python-1.4.7", "api_version", ["(0, 9)", "(0, 10, 1)", "(1, 0)"], {"(0, 9)", "(0, 10, 1)"}),
]

JAVA_STRATEGY = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
SHARING = [
    *(
        Client(f"{name}, cooperative", name, settings={"partition.assignment.strategy": strategy})
        for name, strategy in [
            ("confluent-kafka", "cooperative-sticky"),
            ("java-4.4.0", JAVA_STRATEGY),
            ("java-2.8.2", JAVA_STRATEGY),
        ]
    ),
    Client("java-3.9.1, round robin", "java-3.9.1",
           settings={"partition.assignment.strategy": "org.apache.kafka.clients.consumer.RoundRobinAssignor"}),
]  # fmt: skip


def params(clients: list[Client]) -> list[Any]:
    return [pytest.param(each, id=each.name) for each in clients]


@pytest.mark.parametrize("client", params(OLD))
def test_a_client_speaks_as_to_an_older_broker(client: Client, start: Start, make_topic: MakeTopic) -> None:
    program, name = start(client), make_topic(1)

    assert program.write(name, numbered(100), codec="gzip") == list(range(100))
    assert program.write(name, numbered(100)) == list(range(100, 200))
    assert program.read(name, 200) == numbered(100) * 2
    goes_on_where_it_was(program, make_topic(2))


@pytest.mark.parametrize("client", params(SHARING))
def test_members_share_in_other_ways(client: Client, start: Start, make_topic: MakeTopic) -> None:
    come_and_go(start(client), start(client, 1), make_topic(4))
