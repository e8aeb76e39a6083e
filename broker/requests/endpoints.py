"""Where brokers are, as the client that asks can reach them."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from trilogue.broker.broker import Broker
from trilogue.broker.cluster.image import BrokerInfo
from trilogue.broker.requests.peer import Peer


class Leader(NamedTuple):
    id: int
    epoch: int
    host: str
    port: int
    rack: str | None


def endpoint(broker: Broker, info: BrokerInfo, peer: Peer) -> tuple[str, int] | None:
    """Where this client reaches that broker: on the listener it came by, and us by the address it used."""
    if info.id == broker.node_id and peer.listener in broker.unadvertised:
        return peer.local
    found = info.endpoint(peer.listener)
    return (found.host, found.port) if found else None


def current_leader(broker: Broker, peer: Peer, topic: str, topic_id: bytes, partition: int) -> Leader | None:
    """Of a partition; a wrong hint would make clients run in circles, so rather none."""
    image = broker.image
    state = image.partition(topic or image.topic_names.get(topic_id, ""), partition)
    info = image.brokers.get(state.leader) if state else None
    where = endpoint(broker, info, peer) if info else None
    if state is None or info is None or where is None:
        return None
    return Leader(info.id, state.leader_epoch, *where, info.rack)


def add_leaders(
    broker: Broker, peer: Peer, response: Any, moved: Iterable[tuple[str, bytes, int, Any]], *, endpoints: bool = True
) -> None:
    """For who came to the wrong broker (KIP-951): each of these answers, by topic, its id and partition, names its
    leader, and the response where that is."""
    nodes: dict[int, Any] = {}
    for topic, topic_id, index, answer in moved:
        leader = current_leader(broker, peer, topic, topic_id, index)
        if leader is not None:
            answer.current_leader.leader_id, answer.current_leader.leader_epoch = leader.id, leader.epoch
            nodes[leader.id] = response.NodeEndpoint(
                node_id=leader.id, host=leader.host, port=leader.port, rack=leader.rack
            )
    response.node_endpoints = list(nodes.values()) if endpoints else []
