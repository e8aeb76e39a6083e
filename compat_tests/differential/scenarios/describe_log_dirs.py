"""DescribeLogDirs: data directories, and what lies in them."""

from typing import Any

from compat_tests.differential.asking import Asking, batch, scenario
from trilogue.wire.apis.describe_log_dirs import DescribeLogDirsRequest

Topic = DescribeLogDirsRequest.Topic


def together(told: dict[str, Any]) -> dict[str, Any]:
    """Which directory a new partition goes to depends on what was there before; told is what all have together."""
    if not told["results"]:
        return told
    topics = [topic for each in told["results"] for topic in each["topics"]]
    partitions: dict[str, list[Any]] = {}
    for topic in topics:
        partitions.setdefault(topic["name"], []).extend(topic["partitions"])
    for found in partitions.values():
        found.sort(key=lambda each: each["partition_index"])
    others = [{key: value for key, value in each.items() if key != "topics"} for each in told["results"]]
    for each in others:
        each["log_dir"] = each["log_dir"].rpartition("/")[2]
        for size in ("total_bytes", "usable_bytes"):
            if size in each:
                each[size] = each[size] > 1 << 20
    return told | {"results": sorted(others, key=repr), "topics": dict(sorted(partitions.items()))}


@scenario(DescribeLogDirsRequest)
def describing(ask: Asking) -> None:
    topic, empty = ask.topic("written", 3), ask.topic("empty", 2)
    ask.write(topic, batch("a", "b"))
    ask.write(topic, batch("c"), 1)

    def describe(case: str, *topics: tuple[str, list[int]]) -> None:
        asked = [Topic(topic=name, partitions=partitions) for name, partitions in topics]
        ask(case, DescribeLogDirsRequest(topics=asked), tidy=together)

    def ours_only(told: dict[str, Any]) -> dict[str, Any]:
        found = together(told)
        return found | {
            "topics": {name: each for name, each in found["topics"].items() if name in ("written", "empty")}
        }

    ask("everything", DescribeLogDirsRequest(topics=None), tidy=ours_only)
    describe("one partition", (topic.name, [0]))
    describe("all of them", (topic.name, [0, 1, 2]))
    describe("two topics", (topic.name, [0]), (empty.name, [1]))
    describe("an empty topic", (empty.name, [0, 1]))
    describe("partition 3 of 3", (topic.name, [3]))
    describe("a right and a wrong one", (topic.name, [0, 3]))
    describe("the same partition twice", (topic.name, [0, 0]))
    describe("an unknown topic", (ask.name("unknown"), [0]))
    describe("an empty name", ("", [0]))
    describe("no partitions", (topic.name, []))
    describe("no topics")
