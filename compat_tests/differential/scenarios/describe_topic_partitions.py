"""DescribeTopicPartitions: sorted topics, in pages."""

from typing import Any

from compat_tests.differential.asking import Asking, scenario
from trilogue.wire.apis.describe_topic_partitions import DescribeTopicPartitionsRequest

Request = DescribeTopicPartitionsRequest
Cursor = Request.Cursor


@scenario(DescribeTopicPartitionsRequest)
def paging(ask: Asking) -> None:
    a, b, c = ask.topic("a", 3).name, ask.topic("b", 2).name, ask.topic("c").name

    def describe(case: str, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> None:
        start = None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1])
        topics = [Request.Topic(name=each) for each in names]
        ask(case, Request(topics=topics, response_partition_limit=limit, cursor=start))

    describe("one topic", a)
    describe("two topics", a, b)
    describe("in another order", c, b, a)
    describe("the same twice", a, a)
    describe("an unknown topic", ask.name("unknown"))
    describe("a known and an unknown topic", ask.name("aa"), b)
    describe("a name that cannot be", "a/b")
    describe("an empty name", "")
    describe("a limit of 2", a, b, limit=2)
    describe("a limit of 3", a, b, limit=3)
    describe("a limit of 4", a, b, limit=4)
    describe("a limit of 5", a, b, limit=5)
    describe("a limit of 0", a, limit=0)
    describe("a limit of -1", a, limit=-1)
    describe("a limit of 5000", a, limit=5000)
    describe("from within a", a, b, cursor=(a, 1))
    describe("from within a, in pieces", a, b, limit=2, cursor=(a, 2))
    describe("from the end of a", a, b, cursor=(a, 3))
    describe("from b", a, b, c, cursor=(b, 0))
    describe("from between", a, c, cursor=(ask.name("ab"), 0))
    describe("from behind", a, b, cursor=(ask.name("z"), 0))
    describe("from a topic that was not asked for", a, c, cursor=(b, 1))
    describe("from a negative partition", a, b, cursor=(a, -1))
    describe("from far behind a", a, b, cursor=(a, 100))
    describe("from an unknown topic that was asked for", ask.name("ab"), c, cursor=(ask.name("ab"), 0))


@scenario(DescribeTopicPartitionsRequest)
def everything(ask: Asking) -> None:
    one = ask.topic("one", 2).name

    def ours_only(told: dict[str, Any]) -> dict[str, Any]:
        return told | {"topics": [each for each in told["topics"] if each["name"] == "one"]}

    ask("all topics", Request(topics=[], response_partition_limit=2000), tidy=ours_only)
    start = Cursor(topic_name=one, partition_index=1)
    ask("all topics from there on", Request(topics=[], response_partition_limit=1, cursor=start), tidy=first_only)


def first_only(told: dict[str, Any]) -> dict[str, Any]:
    return {"topics": told["topics"][:1]}
