"""DeleteTopics: remove topics, by name or, from v6 on, by id.

Answered when they are gone.  A topic named twice is refused, also when it is named once and told by its id once.
v5+: messages.
"""

from trilogue.broker.broker import Broker
from trilogue.broker.cluster.image import Image
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.broker.requests.seams import controller
from trilogue.broker.security.operations import Operation
from trilogue.wire.apis.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from trilogue.wire.errors import BrokerError, ErrorCode
from trilogue.wire.schema import ZERO_UUID

Asked = DeleteTopicsRequest.Topic
Answer = DeleteTopicsResponse.Topic
BY_ID = 6
"""From this version on topics may be told by their ids."""


@handles(DeleteTopicsRequest)
async def delete_topics(broker: Broker, request: DeleteTopicsRequest, peer: Peer) -> DeleteTopicsResponse:
    if peer.version >= BY_ID:
        wanted = request.topics
    else:
        wanted = [Asked(name=name, topic_id=ZERO_UUID) for name in request.topic_names]
    answers = [refusal(each, BrokerError(ErrorCode.INVALID_REQUEST, UNCLEAR)) for each in wanted if not is_clear(each)]
    found: dict[tuple[str | None, bytes], list[Asked]] = {}
    for each in wanted:
        if is_clear(each):
            found.setdefault(identity(broker.image, each), []).append(each)
    for (name, topic_id), times in found.items():
        if len(times) > 1:
            answers.append(refusal(together(times), BrokerError(ErrorCode.INVALID_REQUEST, "Duplicate topic.")))
        else:
            answers.append(await delete(broker, peer, Asked(name=name, topic_id=topic_id)))
    return DeleteTopicsResponse(responses=answers)


UNCLEAR = "A topic is told by its name or by its id, and not by both."


def is_clear(asked: Asked) -> bool:
    return (asked.name is None) != (asked.topic_id == ZERO_UUID)


def identity(image: Image, asked: Asked) -> tuple[str | None, bytes]:
    """Name and id, if there is such a topic; otherwise what was asked."""
    topic = image.topic_by_id(asked.topic_id) if asked.name is None else image.topics.get(asked.name)
    return (topic.name, topic.id) if topic else (asked.name, asked.topic_id)


def together(times: list[Asked]) -> Asked:
    """What was said of a topic, taken together."""
    names = [each.name for each in times if each.name is not None]
    return Asked(name=names[0] if names else None, topic_id=max(each.topic_id for each in times))


async def delete(broker: Broker, peer: Peer, asked: Asked) -> Answer:
    try:
        if not broker.config["delete.topic.enable"]:
            raise BrokerError(ErrorCode.TOPIC_DELETION_DISABLED)
        if asked.name is None:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_ID)
        await controller(broker, peer, Operation.DELETE).delete_topic(asked.name)
    except BrokerError as error:
        return refusal(asked, error)
    return Answer(name=asked.name, topic_id=asked.topic_id)


def refusal(asked: Asked, error: BrokerError) -> Answer:
    return Answer(
        name=asked.name,
        topic_id=asked.topic_id,
        error_code=error.code,
        error_message=error.message or error.code.sentence,
    )
