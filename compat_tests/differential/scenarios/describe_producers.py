"""DescribeProducers: who writes to a partition."""

from typing import Any

from compat_tests.differential.asking import Asking, batch, scenario
from trilogue.wire.apis.describe_producers import DescribeProducersRequest

Topic = DescribeProducersRequest.Topic


def sort_producers(told: dict[str, Any]) -> dict[str, Any]:
    """Producers come in the order of a hash table."""
    for topic in told["topics"]:
        for each in topic["partitions"]:
            each["active_producers"].sort(key=lambda producer: producer["producer_id"])
    return told


@scenario(DescribeProducersRequest)
def writing(ask: Asking) -> None:
    topic = ask.topic("written", 3)
    ask.write(topic, batch("a", "b", producer_id=7001, producer_epoch=0, base_sequence=0))
    ask.write(topic, batch("c", producer_id=7001, producer_epoch=0, base_sequence=2))
    ask.write(topic, batch("d", producer_id=7002, producer_epoch=5, base_sequence=17))
    ask.write(topic, batch("e"), 1)

    def describe(case: str, *topics: tuple[str, list[int]]) -> None:
        asked = [Topic(name=name, partition_indexes=partitions) for name, partitions in topics]
        ask(case, DescribeProducersRequest(topics=asked), tidy=sort_producers)

    describe("two producers", (topic.name, [0]))
    describe("records of nobody", (topic.name, [1]))
    describe("an empty partition", (topic.name, [2]))
    describe("several partitions", (topic.name, [2, 0]))
    describe("the same partition twice", (topic.name, [0, 0]))
    describe("partition 3 of 3", (topic.name, [3]))
    describe("partition -1", (topic.name, [-1]))
    describe("a right and a wrong one", (topic.name, [0, 7]))
    describe("an unknown topic", (ask.name("unknown"), [0]))
    describe("a name that cannot be", ("a/b", [0]))
    describe("an empty name", ("", [0]))
    describe("two topics", (ask.name("unknown"), [0]), (topic.name, [1]))
    describe("the same topic twice", (topic.name, [1]), (topic.name, [2]))
    describe("no partitions", (topic.name, []))
    describe("no topics")
