"""Where handlers reach what they are about.

Two handlers in three are about a partition that we lead, the cluster's metadata, a group or a transactional id.  Each
of the four has one way to it, which is told who asks and what for: `led_partition` and `controller` here,
`ask_group` and `ask_transaction` in `coordinators/`.  Whoever is to be refused, or sent to another broker, is so there
and nowhere else.  The broker's own errands have no peer.  Handlers that only read ask `may` what a peer may see.

Nobody is refused anything for who he is yet (KNOWN_GAPS.md).
"""

from trilogue.broker.broker import Broker
from trilogue.broker.cluster.controller import Controller
from trilogue.broker.partitions.partition import Partition
from trilogue.broker.requests.peer import Peer
from trilogue.broker.security.operations import CLUSTER_NAME, Operation, ResourceType
from trilogue.wire.errors import BrokerError, ErrorCode


def led_partition(broker: Broker, peer: Peer | None, operation: Operation, topic: str, index: int) -> Partition:
    """The partition, if we lead it; raises what a client hears otherwise."""
    found = broker.replicas.partitions.get((topic, index))
    if found is None:
        if (topic, index) in broker.replicas.unopened:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{topic}-{index} is offline")
        if broker.image.partition(topic, index) is not None:
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{topic}-{index} is on other brokers")
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if not found.leads:
        found.check_leader()
    return found


def controller(broker: Broker, peer: Peer | None, operation: Operation) -> Controller:
    """Changes topics, partitions and settings.  Whichever broker is the controller, any may be asked."""
    return broker.controller


def may(broker: Broker, peer: Peer | None, operation: Operation, kind: ResourceType, name: str = CLUSTER_NAME) -> bool:
    """Whether the peer may do that."""
    return True


REFUSALS = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ResourceType.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}


def demand(
    broker: Broker, peer: Peer | None, operation: Operation, kind: ResourceType, name: str = CLUSTER_NAME
) -> None:
    """Raises what a client hears that may not do that."""
    if not may(broker, peer, operation, kind, name):
        raise BrokerError(REFUSALS[kind])
