"""FindCoordinator: which broker looks after a group, a transactional id or a share partition.

The first to ask for any makes the topic that coordinators keep their state in, and waits for it; Kafka would send it
away with COORDINATOR_NOT_AVAILABLE, to ask again.  v1+: transactional ids.  v4+: several keys at once.  v6+: share
partitions (KNOWN_GAPS.md).
"""

from trilogue.broker.broker import Broker
from trilogue.broker.coordinators.lookup import ensure_topic, partition_of
from trilogue.broker.names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from trilogue.broker.requests.endpoints import endpoint
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.wire.apis.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from trilogue.wire.errors import BrokerError, ErrorCode

TOPICS = {0: OFFSETS_TOPIC, 1: TRANSACTIONS_TOPIC}
Answer = FindCoordinatorResponse.Coordinator


@handles(FindCoordinatorRequest)
async def find_coordinator(broker: Broker, request: FindCoordinatorRequest, peer: Peer) -> FindCoordinatorResponse:
    version = peer.version
    if version >= 4:
        pace = broker.turns.pace()
        answers = []
        for key in request.coordinator_keys:
            answer = await find(broker, key, request.key_type, peer)
            answer.error_message = ""  # as Kafka answers: the code says it all
            answers.append(answer)
            await pace.step()
        return FindCoordinatorResponse(coordinators=answers)
    one = await find(broker, request.key, request.key_type, peer)
    return FindCoordinatorResponse(
        error_code=one.error_code, error_message=one.error_message, node_id=one.node_id, host=one.host, port=one.port
    )


async def find(broker: Broker, key: str, key_type: int, peer: Peer) -> Answer:
    try:
        if key_type not in TOPICS:
            raise BrokerError(ErrorCode.INVALID_REQUEST)
        topic = TOPICS[key_type]
        await ensure_topic(broker, topic)
        state = broker.image.partition(topic, partition_of(broker, topic, key))
        info = broker.image.brokers.get(state.leader) if state else None
        where = endpoint(broker, info, peer) if info else None
        if info is None or where is None:
            raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    except BrokerError as error:
        return Answer(key=key, node_id=-1, host="", port=-1, error_code=error.code, error_message=error.code.sentence)
    return Answer(key=key, node_id=info.id, host=where[0], port=where[1])
