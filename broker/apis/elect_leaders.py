"""ElectLeaders: put preferred replicas in the lead, or, where nobody leads, any that is alive.

Null asks for every partition; then those that need no election are not mentioned, and their topics are.
v0 knows only preferred leaders.  v1+: an error of the whole, for a kind of election that does not exist.
"""

from trilogue.broker.broker import Broker
from trilogue.broker.cluster.decisions import ELECTIONS
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.broker.requests.seams import controller
from trilogue.broker.security.operations import Operation
from trilogue.wire.apis.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from trilogue.wire.errors import BrokerError, ErrorCode

Topic = ElectLeadersResponse.ReplicaElectionResult
Answer = Topic.PartitionResult


@handles(ElectLeadersRequest)
async def elect_leaders(broker: Broker, request: ElectLeadersRequest, peer: Peer) -> ElectLeadersResponse:
    wanted = request.topic_partitions
    if wanted is None:
        everything = [(name, list(range(len(topic.partitions)))) for name, topic in broker.image.topics.items()]
    else:
        everything = [(each.topic, each.partitions) for each in wanted]
    response = ElectLeadersResponse(replica_election_results=[])
    for name, partitions in everything:
        answers = [await elect(broker, peer, name, index, request.election_type) for index in partitions]
        if wanted is None:
            answers = [each for each in answers if each.error_code != ErrorCode.ELECTION_NOT_NEEDED]
        response.replica_election_results.append(Topic(topic=name, partition_result=answers))
    if request.election_type not in ELECTIONS:
        response.error_code = ErrorCode.INVALID_REQUEST
    return response


async def elect(broker: Broker, peer: Peer, topic: str, index: int, kind: int) -> Answer:
    answer = Answer(partition_id=index, error_message=None)
    try:
        if kind not in ELECTIONS:
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"Unknown election type {kind}")
        await controller(broker, peer, Operation.ALTER).change_partition(topic, index, ELECTIONS[kind])
    except BrokerError as error:
        answer.error_code, answer.error_message = error.code, error.message or error.code.sentence
    return answer
