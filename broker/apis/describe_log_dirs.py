"""DescribeLogDirs: the data directories of this broker, and what lies in them.

Null asks for all partitions.  What is not here is not mentioned; a directory that has failed is, with an error.  A
partition on its way to another directory is told twice, there as the future one.
v3+: an error of the whole.  v4+: the size of the disk.  v5+: cordoned directories; we have none.
"""

import shutil
from collections.abc import Iterable

from trilogue.broker.broker import Broker
from trilogue.broker.partitions.partition import Partition
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.storage.directory import DataDirectory
from trilogue.wire.apis.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from trilogue.wire.errors import ErrorCode

Answer = DescribeLogDirsResponse.Result
Topic = Answer.Topic


@handles(DescribeLogDirsRequest)
def describe_log_dirs(broker: Broker, request: DescribeLogDirsRequest, peer: Peer) -> DescribeLogDirsResponse:
    wanted = None
    if request.topics is not None:
        wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    found = [each for each in broker.replicas if wanted is None or (each.topic, each.index) in wanted]
    return DescribeLogDirsResponse(results=[describe(broker, each, found) for each in broker.replicas.directories])


def describe(broker: Broker, directory: DataDirectory, partitions: Iterable[Partition]) -> Answer:
    answer = Answer(log_dir=directory.path, topics=[])
    if directory.failed is not None:
        answer.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        return answer
    topics: dict[str, Topic] = {}
    for each in partitions:
        key = (each.topic, each.index)
        if broker.replicas.home(key) is directory:
            put(topics, each, each.log.size, lag=each.high_watermark - each.log.end_offset, future=False)
        move = broker.replicas.moves.get(key)
        if move is not None and move.target is directory:
            put(topics, each, move.copied_bytes, lag=each.log.end_offset - move.copied_to, future=True)
    answer.topics = list(topics.values())
    try:
        answer.total_bytes, _, answer.usable_bytes = shutil.disk_usage(directory.path)
    except OSError:  # it is gone, and will be said to have failed
        answer.error_code, answer.topics = ErrorCode.KAFKA_STORAGE_ERROR, []
    return answer


def put(topics: dict[str, Topic], partition: Partition, size: int, *, lag: int, future: bool) -> None:
    topic = topics.setdefault(partition.topic, Topic(name=partition.topic, partitions=[]))
    topic.partitions.append(
        Topic.Partition(
            partition_index=partition.index, partition_size=size, offset_lag=max(lag, 0), is_future_key=future
        )
    )
