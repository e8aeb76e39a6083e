"""CreatePartitions: give topics more partitions.

Answered when they can be written to.  A topic named twice in one request is refused.  `validate_only` decides
everything and writes nothing.  Partitions are placed by the controller unless the client says where.
v2: flexible.  v3 means the same as v2.
"""

from collections import Counter

from trilogue.broker.broker import Broker
from trilogue.broker.requests.making import make_partitions
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.wire.apis.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from trilogue.wire.errors import BrokerError, ErrorCode

Asked = CreatePartitionsRequest.Topic
Answer = CreatePartitionsResponse.Topic


@handles(CreatePartitionsRequest)
async def create_partitions(broker: Broker, request: CreatePartitionsRequest, peer: Peer) -> CreatePartitionsResponse:
    times = Counter(topic.name for topic in request.topics)
    return CreatePartitionsResponse(
        results=[
            await grow(broker, peer, topic, times[topic.name], dry_run=request.validate_only)
            for topic in {each.name: each for each in request.topics}.values()
        ]
    )


async def grow(broker: Broker, peer: Peer, asked: Asked, times: int, *, dry_run: bool) -> Answer:
    answer = Answer(name=asked.name)
    wanted = None if asked.assignments is None else [each.broker_ids for each in asked.assignments]
    try:
        if times > 1:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
        await make_partitions(broker, peer, asked.name, asked.count, wanted, dry_run=dry_run)
    except BrokerError as error:
        answer.error_code, answer.error_message = error.code, error.message
    return answer
