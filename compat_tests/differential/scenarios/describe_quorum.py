"""DescribeQuorum: what can be asked of a quorum of one."""

from typing import Any

from compat_tests.differential.asking import Asking, scenario
from trilogue.wire.apis.describe_quorum import DescribeQuorumRequest

Topic = DescribeQuorumRequest.Topic
METADATA = "__cluster_metadata"


@scenario(DescribeQuorumRequest)
def describing(ask: Asking) -> None:
    def describe(case: str, *wanted: tuple[str, list[int]]) -> None:
        topics = [
            Topic(topic_name=name, partitions=[Topic.Partition(partition_index=i) for i in parts])
            for name, parts in wanted
        ]
        ask(case, DescribeQuorumRequest(topics=topics), tidy=without_progress)

    describe("the metadata", (METADATA, [0]))
    describe("another partition", (METADATA, [1]))
    describe("a negative partition", (METADATA, [-1]))
    describe("two partitions", (METADATA, [0, 1]))
    describe("the same partition twice", (METADATA, [0, 0]))
    describe("no partitions", (METADATA, []))
    describe("another topic", ("elsewhere", [0]))
    describe("an empty name", ("", [0]))
    describe("two topics", (METADATA, [0]), ("elsewhere", [0]))
    describe("the same topic twice", (METADATA, [0]), (METADATA, [0]))
    describe("no topics")


def without_progress(told: dict[str, Any]) -> dict[str, Any]:
    """How far a log of metadata has come is its own affair."""
    for topic in told["topics"]:
        for each in topic["partitions"]:
            for name in ("leader_epoch", "high_watermark"):
                each[name] = min(each[name], 1)
            for replica in each["current_voters"] + each["observers"]:
                for name in ("log_end_offset", "last_fetch_timestamp", "last_caught_up_timestamp"):
                    if name in replica:
                        replica[name] = min(replica[name], 1)
    return told
