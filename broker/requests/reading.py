"""What a Fetch is answered for one partition, whoever asks: a consumer, or a follower in another broker."""

from collections.abc import Iterable

from trilogue.broker.broker import Broker
from trilogue.broker.partitions.fetch_sessions import Wanted
from trilogue.broker.partitions.partition import Partition, Read
from trilogue.broker.requests.endpoints import add_leaders
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.seams import led_partition
from trilogue.broker.security.operations import Operation
from trilogue.wire.apis.fetch import FetchResponse
from trilogue.wire.errors import BrokerError, ErrorCode
from trilogue.wire.schema import ZERO_UUID

Topic = FetchResponse.Topic
Answer = Topic.Partition

READ = Operation.READ  # a member of an enum takes ten times as long to find
NOTHING = b""
NO_OFFSET = -1
NAMES_LEADERS = 16
"""From this version on whoever came to the wrong broker is told the right one (KIP-951)."""
MOVED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


def find(broker: Broker, peer: Peer, wanted: Wanted) -> Partition:
    topic = wanted.topic
    if isinstance(topic, str):
        return led_partition(broker, peer, READ, topic, wanted.partition)
    name = broker.image.topic_names.get(topic)
    if name is None:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_ID)
    return led_partition(broker, peer, READ, name, wanted.partition)


def refusal(index: int, code: int, partition: Partition | None = None) -> Answer:
    return Answer(
        partition_index=index,
        error_code=code,
        high_watermark=NO_OFFSET,
        aborted_transactions=[] if partition is None else None,
        records=NOTHING,
    )


def shape(index: int, got: Read) -> Answer:
    """For somebody who is not told which transactions were aborted."""
    answer = Answer(
        partition_index=index,
        high_watermark=got.high_watermark,
        last_stable_offset=got.last_stable_offset,
        log_start_offset=got.log_start_offset,
        aborted_transactions=None,
        records=got.records or NOTHING,
    )
    if got.diverging is not None:
        answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset = got.diverging
    return answer


def by_topic(answers: Iterable[tuple[str | bytes, Answer]]) -> list[Topic]:
    """Partitions of a topic stand together: by the name that its first has, or by its id."""
    topics: dict[str | bytes, Topic] = {}
    for name, each in answers:
        topic = topics.get(name)
        if topic is None:
            if isinstance(name, str):
                topic = Topic(topic=name, topic_id=ZERO_UUID, partitions=[])
            else:
                topic = Topic(topic="", topic_id=name, partitions=[])
            topics[name] = topic
        topic.partitions.append(each)
    return list(topics.values())


def name_leaders(broker: Broker, peer: Peer, response: FetchResponse, *, endpoints: bool) -> None:
    """Of partitions that have moved; brokers know where brokers are."""
    moved = (
        (topic.topic, topic.topic_id, each.partition_index, each)
        for topic in response.responses
        for each in topic.partitions
        if each.error_code in MOVED
    )
    add_leaders(broker, peer, response, moved, endpoints=endpoints)
