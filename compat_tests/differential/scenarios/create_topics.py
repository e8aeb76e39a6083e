"""CreateTopics: numbers, assignments, settings, names; for real and only as a question."""

from typing import Any

from compat_tests.differential.asking import Asking, scenario
from trilogue.wire.apis.create_topics import CreateTopicsRequest
from trilogue.wire.apis.metadata import MetadataRequest

Topic = CreateTopicsRequest.Topic
Config = Topic.Config


def new(name: str, partitions: int = 1, replicas: int = 1, assignments: Any = (), **configs: str | None) -> Topic:
    return Topic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=[Topic.Assignment(partition_index=i, broker_ids=list(brokers)) for i, brokers in assignments],
        configs=[Config(name=key.replace("_", "."), value=value) for key, value in configs.items()],
    )


def request(*topics: Topic, only_ask: bool = False) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=list(topics), timeout_ms=10_000, validate_only=only_ask)


@scenario(CreateTopicsRequest)
def creating(ask: Asking) -> None:
    def make(case: str, *topics: Topic, **more: Any) -> None:
        answer = ask(case, request(*topics, **more), tidy=sort_topics)
        for each in answer.topics if answer else ():
            if any(each.topic_id):
                ask.note(f"{case}: the id of {each.name.removeprefix(ask.name(''))} is that of Metadata", same_id(each))

    def same_id(created: Any) -> bool:
        ask.catch_up()
        wanted = MetadataRequest(topics=[MetadataRequest.Topic(name=created.name)], allow_auto_topic_creation=False)
        return bool(ask.quietly(wanted, 12).topics[0].topic_id == created.topic_id)

    make("one partition", new(ask.name("one")))
    make("again", new(ask.name("one")))
    make("three partitions", new(ask.name("three"), 3))
    make("no topics")
    make("the default of partitions", new(ask.name("default-p"), -1))
    make("the default of replicas", new(ask.name("default-r"), 1, -1))
    make("both defaults", new(ask.name("default"), -1, -1))
    make("no partitions", new(ask.name("zero"), 0))
    make("-2 partitions", new(ask.name("negative"), -2))
    make("no replicas", new(ask.name("no-replicas"), 1, 0))
    make("-2 replicas", new(ask.name("negative-replicas"), 1, -2))
    make("more replicas than brokers", new(ask.name("two"), 1, 2))
    make("too many partitions", new(ask.name("many"), 10_001))
    make("the same topic twice", new(ask.name("twice")), new(ask.name("twice"), 2))
    make("one twice, another once", new(ask.name("w")), new(ask.name("w")), new(ask.name("v")))
    make("two topics, one of them wrong", new(ask.name("right")), new(ask.name("wrong"), 0))
    make("a dot", new(ask.name("a.b")))
    make("a collision with an underscore", new(ask.name("a_b")))


def sort_topics(told: dict[str, Any]) -> dict[str, Any]:
    """Topics come in the order of a hash table."""
    return told | {"topics": sorted(told["topics"], key=lambda each: each["name"])}


@scenario(CreateTopicsRequest)
def names(ask: Asking) -> None:
    for case, name in (
        ("empty", ""),
        ("a dot", "."),
        ("two dots", ".."),
        ("three dots", "..."),
        ("a slash", "a/b"),
        ("a space", "a b"),
        ("249 letters", ask.name("x").ljust(249, "x")),
        ("250 letters", ask.name("x").ljust(250, "x")),
        ("another alphabet", "ä"),
        ("__cluster_metadata", "__cluster_metadata"),
    ):
        ask(case, request(new(name)))


@scenario(CreateTopicsRequest)
def assigned(ask: Asking) -> None:
    for number, (case, topic) in enumerate(
        (
            ("by hand", new("", -1, -1, [(0, [1]), (1, [1])])),
            ("and a number of partitions", new("", 2, -1, [(0, [1]), (1, [1])])),
            ("and a number of replicas", new("", -1, 1, [(0, [1])])),
            ("an unknown broker", new("", -1, -1, [(0, [9])])),
            ("a known and an unknown broker", new("", -1, -1, [(0, [1, 9])])),
            ("a broker twice", new("", -1, -1, [(0, [1, 1])])),
            ("no brokers", new("", -1, -1, [(0, [])])),
            ("no partition 0", new("", -1, -1, [(1, [1])])),
            ("a partition missing", new("", -1, -1, [(0, [1]), (2, [1])])),
            ("a partition twice", new("", -1, -1, [(0, [1]), (0, [1])])),
            ("in another order", new("", -1, -1, [(1, [1]), (0, [1])])),
            ("a negative partition", new("", -1, -1, [(-1, [1]), (0, [1])])),
            ("different numbers of replicas", new("", -1, -1, [(0, [1]), (1, [])])),
            ("a negative broker", new("", -1, -1, [(0, [-1])])),
        )
    ):
        topic.name = ask.name(f"assigned-{number}")
        ask(case, request(topic))


@scenario(CreateTopicsRequest)
def configured(ask: Asking) -> None:
    for number, (case, configs) in enumerate(
        (
            ("a setting", {"retention_ms": "1000"}),
            ("several", {"cleanup_policy": "compact,delete", "segment_bytes": "1048576", "flush_messages": "1"}),
            ("an unknown setting", {"no_such_setting": "1"}),
            ("a value of the wrong type", {"retention_ms": "soon"}),
            ("a value out of range", {"segment_bytes": "1"}),
            ("an empty value", {"retention_ms": ""}),
            ("null", {"retention_ms": None}),
            ("an unknown policy", {"cleanup_policy": "burn"}),
            ("an unknown codec", {"compression_type": "rar"}),
            ("a value with spaces", {"retention_ms": " 5 "}),
            ("more replicas in sync than there are", {"min_insync_replicas": "3"}),
            ("two settings that do not fit", {"segment_bytes": "1048576", "max_message_bytes": "10000000"}),
        )
    ):
        ask(case, request(new(ask.name(f"configured-{number}"), **configs)))


@scenario(CreateTopicsRequest)
def only_asking(ask: Asking) -> None:
    there = ask.topic("there")
    for case, topic in (
        ("fine", new(ask.name("not"))),
        ("with a setting", new(ask.name("not"), retention_ms="5")),
        ("is there already", new(there.name)),
        ("wrong number", new(ask.name("not"), 0)),
        ("wrong setting", new(ask.name("not"), retention_ms="soon")),
        ("wrong name", new("a/b")),
        ("unknown broker", new(ask.name("not"), -1, -1, [(0, [9])])),
        ("defaults", new(ask.name("not"), -1, -1)),
    ):
        ask(case, request(topic, only_ask=True))
    wanted = MetadataRequest(topics=[MetadataRequest.Topic(name=ask.name("not"))], allow_auto_topic_creation=False)
    ask.note("nothing was made", ask.quietly(wanted, 12).topics[0].error_code)
