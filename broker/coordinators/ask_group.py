"""How handlers put questions to the coordinators of groups."""

from collections.abc import Callable
from typing import Any, TypeVar

from trilogue.broker.broker import Broker
from trilogue.broker.coordinators.lookup import partition_of
from trilogue.broker.groups.world import Caller
from trilogue.broker.machines.effects import Effect
from trilogue.broker.names import OFFSETS_TOPIC
from trilogue.broker.requests.later import Later
from trilogue.broker.requests.peer import Peer
from trilogue.broker.security.operations import Operation
from trilogue.wire.errors import BrokerError, ErrorCode

R = TypeVar("R")


def ask_group(
    broker: Broker,
    peer: Peer,
    operation: Operation,
    group_id: str,
    act: Callable[..., list[Effect]],
    *arguments: Any,
    refuse: Callable[[ErrorCode], R],
) -> R | Later[R]:
    """Put something to the coordinator of a group, by one of its methods: `act(machine, now, *arguments, ticket)`."""
    try:
        shard = broker.groups.shard(partition_of(broker, OFFSETS_TOPIC, group_id))
    except BrokerError:
        # Where there is no topic yet there is no coordinator either.  Every client understands this code.
        return refuse(ErrorCode.NOT_COORDINATOR)
    return shard.ask(act, *arguments, refuse=refuse)


def caller(peer: Peer) -> Caller:
    """As Kafka prints addresses: behind the name that was not looked up."""
    return Caller(peer.version, peer.client_id or "", f"/{peer.host}")
