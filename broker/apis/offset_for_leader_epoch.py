"""OffsetForLeaderEpoch: where a leader epoch ended, to find out where two logs part.

Answers the largest epoch not above the one asked for, and the offset behind its last record; -1 and -1 if that is not
known here, which is no error.  v0: no epoch in the answer.  v2+: whoever knows another leader than us is refused.
v3+: who asks; consumers and replicas hear the same.
"""

from trilogue.broker.broker import Broker
from trilogue.broker.requests.later import Later
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.broker.requests.seams import led_partition
from trilogue.broker.security.operations import Operation
from trilogue.wire.apis.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from trilogue.wire.errors import BrokerError

Asked = OffsetForLeaderEpochRequest.Topic.Partition
Topic = OffsetForLeaderEpochResponse.Topic
Answer = Topic.Partition


@handles(OffsetForLeaderEpochRequest)
def offset_for_leader_epoch(
    broker: Broker, request: OffsetForLeaderEpochRequest, peer: Peer
) -> OffsetForLeaderEpochResponse | Later[OffsetForLeaderEpochResponse]:
    topics = [Topic(topic=topic.topic, partitions=[]) for topic in request.topics]
    asked = ((topic, each) for topic, wanted in zip(topics, request.topics, strict=True) for each in wanted.partitions)

    def answer(both: tuple[Topic, Asked]) -> None:
        topic, each = both
        topic.partitions.append(end_of(broker, peer, topic.topic, each))

    return broker.turns.each(asked, answer, lambda _: OffsetForLeaderEpochResponse(topics=topics))


def end_of(broker: Broker, peer: Peer, topic: str, asked: Asked) -> Answer:
    answer = Answer(partition=asked.partition)
    try:
        partition = led_partition(broker, peer, Operation.DESCRIBE, topic, asked.partition)
        partition.check_leader(asked.current_leader_epoch)
        answer.leader_epoch, answer.end_offset = partition.log.epoch_end_offset(asked.leader_epoch)
    except BrokerError as error:
        answer.error_code = error.code
    return answer
