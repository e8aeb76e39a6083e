"""DeleteTopics: remove topics, by name or, from v6 on, by id.

Answered when they are gone.  A topic named twice is refused for each time but once.  v5+: messages.
"""

from collections import Counter

from trilogue.broker.api import handles
from trilogue.broker.connection import Peer
from trilogue.broker.server import Broker
from trilogue.wire.apis.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from trilogue.wire.errors import BrokerError, ErrorCode
from trilogue.wire.schema import ZERO_UUID

Asked = DeleteTopicsRequest.Topic
Answer = DeleteTopicsResponse.Topic


@handles(DeleteTopicsRequest)
async def delete_topics(broker: Broker, request: DeleteTopicsRequest, peer: Peer) -> DeleteTopicsResponse:
    asked = (
        request.topics if peer.version >= 6 else [Asked(name=name, topic_id=ZERO_UUID) for name in request.topic_names]
    )
    times = Counter((each.name, each.topic_id) for each in asked)
    answers = []
    for each in {(each.name, each.topic_id): each for each in asked}.values():
        if times[each.name, each.topic_id] > 1:
            answers.append(refusal(each, BrokerError(ErrorCode.INVALID_REQUEST, "Duplicate topic name or id.")))
        else:
            answers.append(await delete(broker, each))
    return DeleteTopicsResponse(responses=answers)


async def delete(broker: Broker, asked: Asked) -> Answer:
    try:
        if not broker.config["delete.topic.enable"]:
            raise BrokerError(ErrorCode.TOPIC_DELETION_DISABLED)
        if asked.name is not None and asked.topic_id != ZERO_UUID:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
        if asked.name is None:
            found = broker.image.topic_by_id(asked.topic_id)
            if found is None:
                raise BrokerError(ErrorCode.UNKNOWN_TOPIC_ID)
        else:
            found = broker.image.topics.get(asked.name)
            if found is None:
                raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        await broker.office.delete_topic(found.name)
    except BrokerError as error:
        return refusal(asked, error)
    return Answer(name=found.name, topic_id=found.id)


def refusal(asked: Asked, error: BrokerError) -> Answer:
    return Answer(
        name=asked.name,
        topic_id=asked.topic_id,
        error_code=error.code,
        error_message=error.message or error.code.sentence,
    )
