"""Where the leader is, for whoever came to the wrong broker (KIP-951)."""

from typing import TYPE_CHECKING, NamedTuple

from trilogue.broker.requests.peer import Peer

if TYPE_CHECKING:
    from trilogue.broker.server import Broker


class Leader(NamedTuple):
    id: int
    epoch: int
    host: str
    port: int
    rack: str | None


def current_leader(broker: "Broker", topic: str, topic_id: bytes, partition: int, peer: Peer) -> Leader | None:
    """The leader as this client can reach it; a wrong hint would make clients run in circles, so rather none."""
    image = broker.image
    state = image.partition(topic or image.topic_names.get(topic_id, ""), partition)
    info = image.brokers.get(state.leader) if state else None
    where = broker.endpoint(info, peer) if info else None
    if state is None or info is None or where is None:
        return None
    return Leader(info.id, state.leader_epoch, *where, info.rack)
