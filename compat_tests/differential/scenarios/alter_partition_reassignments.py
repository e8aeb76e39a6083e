"""AlterPartitionReassignments, where there is nowhere to go."""

from typing import Any

from compat_tests.differential.asking import Asking, scenario
from trilogue.wire.apis.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from trilogue.wire.apis.list_partition_reassignments import ListPartitionReassignmentsRequest

Topic = AlterPartitionReassignmentsRequest.Topic
Listed = ListPartitionReassignmentsRequest.Topic


@scenario(AlterPartitionReassignmentsRequest)
def moving(ask: Asking) -> None:
    topic = ask.topic("moved", 2).name

    def move(case: str, *wanted: tuple[str, list[tuple[int, list[int] | None]]], **more: Any) -> None:
        topics = [
            Topic(name=name, partitions=[Topic.Partition(partition_index=i, replicas=to) for i, to in parts])
            for name, parts in wanted
        ]
        ask(case, AlterPartitionReassignmentsRequest(topics=topics, timeout_ms=5000, **more))

    move("to where it is", (topic, [(0, [1])]))
    move("both", (topic, [(0, [1]), (1, [1])]))
    move("to an unknown broker", (topic, [(0, [9])]))
    move("to a known and an unknown broker", (topic, [(0, [1, 9])]))
    move("to a broker twice", (topic, [(0, [1, 1])]))
    move("to nobody", (topic, [(0, [])]))
    move("to a negative broker", (topic, [(0, [-1])]))
    move("cancelled, though nothing moves", (topic, [(0, None)]))
    move("an unknown topic", (ask.name("unknown"), [(0, [1])]))
    move("an unknown topic, cancelled", (ask.name("unknown"), [(0, None)]))
    move("partition 2 of 2", (topic, [(2, [1])]))
    move("partition 2 of 2, cancelled", (topic, [(2, None)]))
    move("partition -1", (topic, [(-1, [1])]))
    move("a name that cannot be", ("a/b", [(0, [1])]))
    move("a right and a wrong one", (topic, [(0, [1]), (5, [1])]))
    move("the same partition twice", (topic, [(0, [1]), (0, [9])]))
    move("the same topic twice", (topic, [(0, [1])]), (topic, [(1, [1])]))
    move("no partitions", (topic, []))
    move("no topics")
    move("no other number of replicas", (topic, [(0, [1])]), allow_replication_factor_change=False)
    move("more replicas, not allowed", (topic, [(0, [1, 2])]), allow_replication_factor_change=False)


@scenario(ListPartitionReassignmentsRequest)
def listing(ask: Asking) -> None:
    topic, other = ask.topic("still", 2).name, ask.topic("other").name

    def list_them(case: str, *wanted: tuple[str, list[int]]) -> None:
        topics = [Listed(name=name, partition_indexes=partitions) for name, partitions in wanted]
        ask(case, ListPartitionReassignmentsRequest(topics=topics, timeout_ms=5000))

    ask("all", ListPartitionReassignmentsRequest(topics=None, timeout_ms=5000))
    ask("all, without patience", ListPartitionReassignmentsRequest(topics=None, timeout_ms=0))
    list_them("none")
    list_them("one partition", (topic, [0]))
    list_them("two topics", (topic, [0, 1]), (other, [0]))
    list_them("partition 2 of 2", (topic, [2]))
    list_them("partition -1", (topic, [-1]))
    list_them("an unknown topic", (ask.name("unknown"), [0]))
    list_them("a name that cannot be", ("a/b", [0]))
    list_them("no partitions", (topic, []))
    list_them("the same twice", (topic, [0]), (topic, [0]))
