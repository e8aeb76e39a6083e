"""CreateTopics: make topics.

Answered when they can be written to, not before; refused where that cannot be, as on a full disk.  A topic named twice
in one request is refused.  `validate_only` decides everything and writes nothing.  -1 partitions or replicas (v4+) are
the broker's defaults.  v5+: the answer has the topic's settings; v7+: its id.
"""

from collections import Counter

from trilogue.broker.broker import Broker
from trilogue.broker.cluster.decisions import NewTopic
from trilogue.broker.cluster.image import Topic as TopicImage
from trilogue.broker.config.describe import describe_topic
from trilogue.broker.config.validate import validate_topic_config
from trilogue.broker.requests.making import make_topic
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.wire.apis.create_topics import CreateTopicsRequest, CreateTopicsResponse
from trilogue.wire.errors import BrokerError, ErrorCode

Answer = CreateTopicsResponse.Topic


@handles(CreateTopicsRequest)
async def create_topics(broker: Broker, request: CreateTopicsRequest, peer: Peer) -> CreateTopicsResponse:
    times = Counter(topic.name for topic in request.topics)
    answers = []
    for topic in {each.name: each for each in request.topics}.values():
        if times[topic.name] > 1:
            error = BrokerError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            answers.append(refusal(topic.name, error))
        else:
            answers.append(await create(broker, peer, topic, dry_run=request.validate_only))
    return CreateTopicsResponse(topics=answers)


async def create(broker: Broker, peer: Peer, asked: CreateTopicsRequest.Topic, *, dry_run: bool) -> Answer:
    try:
        configs = configs_of(asked)
        validate_topic_config(configs, broker.config)
        new = NewTopic(
            asked.name,
            asked.num_partitions,
            asked.replication_factor,
            assignments_of(asked),
            configs,
        )
        topic = await make_topic(broker, peer, new, broker.topic_defaults, dry_run=dry_run)
    except BrokerError as error:
        return refusal(asked.name, error)
    return success(broker, topic, configs)


def configs_of(asked: CreateTopicsRequest.Topic) -> dict[str, str]:
    for each in asked.configs:
        if each.value is None:
            raise BrokerError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {each.name}")
    return {each.name: each.value for each in asked.configs if each.value is not None}


def assignments_of(asked: CreateTopicsRequest.Topic) -> dict[int, list[int]]:
    assigned = {each.partition_index: each.broker_ids for each in asked.assignments}
    if len(assigned) < len(asked.assignments):
        raise BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Found multiple manual assignments for a partition.")
    return assigned


def refusal(name: str, error: BrokerError) -> Answer:
    return Answer(
        name=name,
        error_code=error.code,
        error_message=error.message,
        num_partitions=-1,
        replication_factor=-1,
        configs=[],
    )


def success(broker: Broker, topic: TopicImage, configs: dict[str, str]) -> Answer:
    return Answer(
        name=topic.name,
        error_message=None,
        topic_id=topic.id,
        num_partitions=len(topic.partitions),
        replication_factor=len(topic.partitions[0].replicas),
        configs=[
            Answer.Config(
                name=each.name,
                value=each.value,
                read_only=each.read_only,
                config_source=each.source,
                is_sensitive=each.sensitive,
            )
            for each in sorted(describe_topic(broker.config.topic(configs)), key=lambda each: each.name)
        ],
    )
