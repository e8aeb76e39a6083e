"""AlterReplicaLogDirs: move replicas between the data directories of this broker.

Answered at once; the move goes on meanwhile, and DescribeLogDirs shows it.  A request for where the replica is already
stops a move under way.  A directory is known by its path, word for word; one that has failed is refused.
Of a partition named twice the last word counts.  v1 and v2 mean the same as v0.
Not done: remembering a request for a replica that is not here yet (KNOWN_GAPS.md).
"""

from trilogue.broker.broker import Broker
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.wire.apis.alter_replica_log_dirs import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse
from trilogue.wire.errors import BrokerError, ErrorCode

Topic = AlterReplicaLogDirsResponse.Topic
Answer = Topic.Partition


@handles(AlterReplicaLogDirsRequest)
def alter_replica_log_dirs(
    broker: Broker, request: AlterReplicaLogDirsRequest, peer: Peer
) -> AlterReplicaLogDirsResponse:
    wanted = {
        (topic.name, index): each.path for each in request.dirs for topic in each.topics for index in topic.partitions
    }
    topics: dict[str, Topic] = {}
    for (name, index), path in wanted.items():
        topic = topics.setdefault(name, Topic(topic_name=name, partitions=[]))
        topic.partitions.append(move(broker, name, index, path))
    return AlterReplicaLogDirsResponse(results=list(topics.values()))


def move(broker: Broker, topic: str, index: int, path: str) -> Answer:
    answer = Answer(partition_index=index)
    replicas = broker.replicas
    try:
        target = next((each for each in replicas.directories if each.path == path and each.failed is None), None)
        if target is None:
            raise BrokerError(ErrorCode.LOG_DIR_NOT_FOUND)
        partition = replicas.find(topic, index)
        if partition is None:
            known = broker.image.partition(topic, index) is not None
            raise BrokerError(ErrorCode.REPLICA_NOT_AVAILABLE if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if partition.log.failed is not None:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR)
        if replicas.wants_move(partition, target):
            broker.tasks.start_soon(replicas.move, partition, target)
    except BrokerError as error:
        answer.error_code = error.code
    return answer
