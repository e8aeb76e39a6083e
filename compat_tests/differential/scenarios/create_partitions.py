"""CreatePartitions: more partitions, never fewer."""

from typing import Any

from compat_tests.differential.asking import Asking, scenario
from trilogue.wire.apis.create_partitions import CreatePartitionsRequest
from trilogue.wire.apis.metadata import MetadataRequest

Topic = CreatePartitionsRequest.Topic


def more(name: str, count: int, assignments: list[list[int]] | None = None) -> Topic:
    wanted = None if assignments is None else [Topic.Assignment(broker_ids=each) for each in assignments]
    return Topic(name=name, count=count, assignments=wanted)


@scenario(CreatePartitionsRequest)
def growing(ask: Asking) -> None:
    topic, other = ask.topic("growing").name, ask.topic("other").name

    def grow(case: str, *topics: Topic, only_ask: bool = False) -> None:
        asked = CreatePartitionsRequest(topics=list(topics), timeout_ms=5000, validate_only=only_ask)
        ask(case, asked, tidy=sort_results)

    grow("only asked", more(topic, 3), only_ask=True)
    grow("to three", more(topic, 3))
    ask.settled(topic, 3)
    grow("to three again", more(topic, 3))
    grow("to fewer", more(topic, 2))
    grow("to none", more(topic, 0))
    grow("to -1", more(topic, -1))

    grow("by hand", more(topic, 5, [[1], [1]]))
    grow("too few assignments", more(topic, 7, [[1]]))
    grow("too many assignments", more(topic, 6, [[1], [1]]))
    grow("no assignments", more(topic, 6, []))
    grow("an unknown broker", more(topic, 6, [[9]]))
    grow("a broker twice", more(topic, 6, [[1, 1]]))
    grow("an assignment of nobody", more(topic, 6, [[]]))
    grow("too many replicas", more(topic, 6, [[1, 2]]))
    grow("an unknown topic", more(ask.name("unknown"), 2))
    grow("a name that cannot be", more("a/b", 2))
    grow("an empty name", more("", 2))
    grow("no topics")
    grow("the same topic twice", more(topic, 6), more(topic, 7))
    grow("one twice and another", more(topic, 6), more(topic, 7), more(other, 2))
    grow("a right and a wrong one", more(other, 3), more(topic, 1))
    grow("a wrong one, only asked", more(topic, 1), only_ask=True)
    ask.catch_up()
    wanted = MetadataRequest(topics=[MetadataRequest.Topic(name=topic)], allow_auto_topic_creation=False)
    ask.note("how many it has", len(ask.quietly(wanted, 12).topics[0].partitions))


def sort_results(told: dict[str, Any]) -> dict[str, Any]:
    """Topics come in the order of a hash table."""
    return told | {"results": sorted(told["results"], key=lambda each: each["name"])}
