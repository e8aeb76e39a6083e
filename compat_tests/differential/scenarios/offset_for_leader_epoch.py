"""OffsetForLeaderEpoch: where a reign ended."""

from typing import Any

from compat_tests.differential.asking import Asking, batch, scenario
from trilogue.wire.apis.offset_for_leader_epoch import OffsetForLeaderEpochRequest

Partition = OffsetForLeaderEpochRequest.Topic.Partition


def request(topic: str, *parts: Partition, **more: Any) -> OffsetForLeaderEpochRequest:
    topics = [OffsetForLeaderEpochRequest.Topic(topic=topic, partitions=list(parts))]
    return OffsetForLeaderEpochRequest(**({"replica_id": -1, "topics": topics} | more))


def part(epoch: int, current: int = -1, partition: int = 0) -> Partition:
    return Partition(partition=partition, current_leader_epoch=current, leader_epoch=epoch)


@scenario(OffsetForLeaderEpochRequest)
def reigns(ask: Asking) -> None:
    topic, empty = ask.topic("reigns", 2), ask.topic("empty")
    ask.write(topic, batch("a", "b"))
    for epoch in (0, 1, 5, -1, -2):
        ask(f"epoch {epoch}", request(topic.name, part(epoch)))
        ask(f"epoch {epoch} of an empty topic", request(empty.name, part(epoch)))
    for current in (0, 1, -2):
        ask(f"current epoch {current}", request(topic.name, part(0, current)))
    ask("an unknown topic", request(ask.name("unknown"), part(0)))
    ask("partition 2 of 2", request(topic.name, part(0, partition=2)))
    ask("partition -1", request(topic.name, part(0, partition=-1)))
    ask("two partitions", request(topic.name, part(0), part(0, partition=1)))
    ask("the same partition twice", request(topic.name, part(0), part(0)))
    ask("no topics", request("", topics=[]))
    ask("no partitions", request(topic.name))
    for replica in (-2, 0, 1, 7):
        ask(f"replica {replica}", request(topic.name, part(0), replica_id=replica))
