"""ListOffsets: beginnings, ends and times."""

from typing import Any

from compat_tests.differential.asking import TIME_MS, Asking, batch, scenario
from trilogue.wire.apis.delete_records import DeleteRecordsRequest
from trilogue.wire.apis.list_offsets import ListOffsetsRequest
from trilogue.wire.compression import Codec

Partition = ListOffsetsRequest.Topic.Partition


def request(topic: str, timestamp: int, partition: int = 0, epoch: int = -1, **more: Any) -> ListOffsetsRequest:
    asked = Partition(partition_index=partition, current_leader_epoch=epoch, timestamp=timestamp)
    topics = [ListOffsetsRequest.Topic(name=topic, partitions=[asked])]
    return ListOffsetsRequest(**({"replica_id": -1, "isolation_level": 0, "topics": topics, "timeout_ms": 5000} | more))


@scenario(ListOffsetsRequest)
def times(ask: Asking) -> None:
    topic, empty = ask.topic("times"), ask.topic("empty")
    ask.write(topic, batch("a", "b", "c"))
    ask.write(topic, batch("d", "e", "f", at_ms=TIME_MS + 60_000, codec=Codec.LZ4))
    ask.write(topic, batch("g", at_ms=TIME_MS + 10_000))
    for timestamp in (-1, -2, -3, -4, -5, -6, -7, -100):
        ask(f"special time {timestamp}", request(topic.name, timestamp))
        ask(f"special time {timestamp} of an empty topic", request(empty.name, timestamp))
        ask(f"special time {timestamp}, committed only", request(topic.name, timestamp, isolation_level=1))
    for after in (-1000, 0, 1, 1000, 2000, 2001, 10_000, 60_000, 60_001, 61_000, 62_000, 62_001):
        ask(f"the beginning and {after} ms", request(topic.name, TIME_MS + after))
    ask("time 0", request(topic.name, 0))
    ask("time 0 of an empty topic", request(empty.name, 0))
    ask("the end of time", request(topic.name, 2**63 - 1))


@scenario(ListOffsetsRequest)
def shortened(ask: Asking) -> None:
    topic = ask.topic("short")
    ask.write(topic, batch("a", "b", "c"))
    gone = DeleteRecordsRequest.Topic(
        name=topic.name, partitions=[DeleteRecordsRequest.Topic.Partition(partition_index=0, offset=2)]
    )
    ask.quietly(DeleteRecordsRequest(topics=[gone], timeout_ms=5000), 2)
    for timestamp in (-1, -2, -3, -4, TIME_MS, TIME_MS + 2000):
        ask(f"time {timestamp}", request(topic.name, timestamp))


@scenario(ListOffsetsRequest)
def refused(ask: Asking) -> None:
    topic = ask.topic("refused", 2)
    ask("an unknown topic", request(ask.name("unknown"), -1))
    ask("a name that cannot be", request("a/b", -1))
    ask("partition 2 of 2", request(topic.name, -1, 2))
    ask("partition -1", request(topic.name, -1, -1))
    for epoch in (0, 1, -2, 100):
        ask(f"leader epoch {epoch}", request(topic.name, -1, epoch=epoch))
    one = Partition(partition_index=0, timestamp=-1)
    other = Partition(partition_index=1, timestamp=-1)
    topics = ListOffsetsRequest.Topic
    ask("a partition twice", request("", 0, topics=[topics(name=topic.name, partitions=[one, one, other])]))
    ask("a topic twice", request("", 0, topics=[topics(name=topic.name, partitions=[one])] * 2))
    ask("no topics", request("", 0, topics=[]))
    ask("no partitions", request("", 0, topics=[topics(name=topic.name, partitions=[])]))
    for replica in (-2, -3, 0, 1, 5):
        ask(f"replica {replica}", request(topic.name, -1, replica_id=replica))
    ask("isolation level 2", request(topic.name, -1, isolation_level=2))
    ask("bytes behind the request", request(topic.name, -1), trailing=b"more")
