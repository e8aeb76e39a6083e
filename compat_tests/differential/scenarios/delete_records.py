"""DeleteRecords: forget what lies before an offset."""

from typing import Any

from compat_tests.differential.asking import Asking, batch, scenario
from trilogue.wire.apis.delete_records import DeleteRecordsRequest

Topic = DeleteRecordsRequest.Topic
Partition = Topic.Partition


def request(name: str, *parts: tuple[int, int], timeout_ms: int = 5000) -> DeleteRecordsRequest:
    asked = [Partition(partition_index=index, offset=offset) for index, offset in parts]
    return DeleteRecordsRequest(topics=[Topic(name=name, partitions=asked)], timeout_ms=timeout_ms)


def sort_partitions(told: dict[str, Any]) -> dict[str, Any]:
    """Topics and partitions come in the order of a hash table."""
    for topic in told["topics"]:
        topic["partitions"].sort(key=lambda each: each["partition_index"])
    return told | {"topics": sorted(told["topics"], key=lambda each: each["name"])}


@scenario(DeleteRecordsRequest)
def forgetting(ask: Asking) -> None:
    topic = ask.topic("forgetting", 3)
    for partition in (0, 1):
        ask.write(topic, batch("a", "b", "c", "d"), partition)
    for case, asked in (
        ("before 0", request(topic.name, (0, 0))),
        ("before 1", request(topic.name, (0, 1))),
        ("before 0 again", request(topic.name, (0, 0))),
        ("before 3", request(topic.name, (0, 3))),
        ("everything", request(topic.name, (0, -1))),
        ("past the end", request(topic.name, (0, 5))),
        ("-2", request(topic.name, (0, -2))),
        ("far past the end", request(topic.name, (0, 2**62))),
        ("an empty partition", request(topic.name, (2, -1))),
        ("an empty partition, before 1", request(topic.name, (2, 1))),
        ("partition 3 of 3", request(topic.name, (3, 0))),
        ("partition -1", request(topic.name, (-1, 0))),
        ("an unknown topic", request(ask.name("unknown"), (0, 0))),
        ("a name that cannot be", request("a/b", (0, 0))),
        ("two partitions", request(topic.name, (0, -1), (1, 2))),
        ("a right and a wrong one", request(topic.name, (1, 3), (9, 0))),
        ("the same partition twice", request(topic.name, (1, 3), (1, 4))),
        ("no partitions", request(topic.name)),
        ("no topics", DeleteRecordsRequest(topics=[], timeout_ms=5000)),
        ("no patience", request(topic.name, (1, 4), timeout_ms=0)),
    ):
        ask(case, asked, tidy=sort_partitions)
    compacted = ask.topic("compacted", cleanup_policy="compact")
    ask.write(compacted, batch("a", "b"))
    ask("a compacted topic", request(compacted.name, (0, 1)))
    mixed = ask.topic("mixed", cleanup_policy="compact,delete")
    ask.write(mixed, batch("a", "b"))
    ask("a topic that is compacted and deleted", request(mixed.name, (0, 1)))
