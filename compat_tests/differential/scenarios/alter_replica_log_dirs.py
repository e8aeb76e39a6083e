"""AlterReplicaLogDirs: moves between the data directories of a broker."""

import time
from typing import Any

from compat_tests.differential.asking import Asking, batch, scenario
from trilogue.wire.apis.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from trilogue.wire.apis.describe_log_dirs import DescribeLogDirsRequest
from trilogue.wire.apis.list_offsets import ListOffsetsRequest

Dir = AlterReplicaLogDirsRequest.Dir


def sort_results(told: dict[str, Any]) -> dict[str, Any]:
    """Topics and partitions come in the order of a hash table."""
    for topic in told["results"]:
        topic["partitions"].sort(key=lambda each: each["partition_index"])
    return told | {"results": sorted(told["results"], key=lambda each: each["topic_name"])}


@scenario(AlterReplicaLogDirsRequest)
def moving(ask: Asking) -> None:
    topic = ask.topic("moving", 2)
    ask.write(topic, batch("a", "b"))

    def move(case: str, *moves: tuple[str, str, list[int]]) -> None:
        dirs = [
            Dir(path=path, topics=[Dir.Topic(name=name, partitions=partitions)]) for path, name, partitions in moves
        ]
        ask(case, AlterReplicaLogDirsRequest(dirs=dirs), tidy=sort_results)

    here, there = homes(ask, topic.name)
    move("to where it is", (here, topic.name, [0]))
    move("to the other directory", (there, topic.name, [0]))
    ask.note("it arrives", arrives(ask, topic.name, there))
    ask.note("with its records", end_of(ask, topic.name))
    ask.note("and can be written to", ask.write(topic, batch("c")))
    move("back again", (here, topic.name, [0]))
    ask.note("it arrives again", arrives(ask, topic.name, here))
    move("an unknown directory", ("/nowhere", topic.name, [0]))
    move("a relative directory", ("nowhere", topic.name, [0]))
    move("no directory", ("", topic.name, [0]))
    move("with a slash at the end", (here + "/", topic.name, [0]))
    move("an unknown topic", (here, ask.name("unknown"), [0]))
    move("an unknown topic to an unknown directory", ("/nowhere", ask.name("unknown"), [0]))
    move("partition 2 of 2", (here, topic.name, [2]))
    move("partition -1", (here, topic.name, [-1]))
    move("a name that cannot be", (here, "a/b", [0]))
    move("two moves", (here, topic.name, [0]), ("/nowhere", topic.name, [1]))
    move("the same partition to two directories", ("/nowhere", topic.name, [0]), (here, topic.name, [0]))
    move("no partitions", (here, topic.name, []))
    move("no directories")


def homes(ask: Asking, name: str) -> tuple[str, str]:
    """The directory that partition 0 is in, and the other."""
    (here,) = current(ask, name)
    asked = DescribeLogDirsRequest(topics=[])
    (there,) = (each.log_dir for each in ask.quietly(asked, 4).results if each.log_dir != here)
    return here, there


def current(ask: Asking, name: str) -> list[str]:
    """Where partition 0 is; for a moment that may be two directories, or none."""
    asked = [DescribeLogDirsRequest.Topic(topic=name, partitions=[0])]
    found = ask.quietly(DescribeLogDirsRequest(topics=asked), 4).results
    return [each.log_dir for each in found if each.topics]


def arrives(ask: Asking, name: str, path: str) -> bool:
    until = time.monotonic() + 10
    while time.monotonic() < until:
        if current(ask, name) == [path]:
            return True
        time.sleep(0.02)
    return False


def end_of(ask: Asking, name: str) -> int:
    latest = ListOffsetsRequest.Topic.Partition(partition_index=0, timestamp=-1)
    topics = [ListOffsetsRequest.Topic(name=name, partitions=[latest])]
    return int(ask.quietly(ListOffsetsRequest(replica_id=-1, topics=topics), 7).topics[0].partitions[0].offset)
