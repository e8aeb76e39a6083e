"""ConsumerGroupHeartbeat: join, stay in and leave a consumer group of the new protocol (KIP-848).

Every heartbeat carries the member one step towards its assignment, which is in the answer when it has changed, or
when the member tells everything.  Epoch 0 joins, -1 leaves, -2 leaves and will be back.
v0: whoever has no id yet is given one.  v1+: members bring their own, and may subscribe by pattern.
"""

from trilogue.broker.broker import Broker
from trilogue.broker.coordinators.ask_group import ask_group, caller
from trilogue.broker.groups.consumer.heartbeat import heartbeat_refusal
from trilogue.broker.groups.requests import consumer
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import Answer, handles
from trilogue.broker.security.operations import Operation
from trilogue.wire.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from trilogue.wire.errors import ErrorCode


@handles(ConsumerGroupHeartbeatRequest)
def consumer_group_heartbeat(broker: Broker, request: ConsumerGroupHeartbeatRequest, peer: Peer) -> Answer:
    if "consumer" not in broker.config["group.coordinator.rebalance.protocols"]:
        return heartbeat_refusal(ErrorCode.UNSUPPORTED_VERSION)
    return ask_group(
        broker,
        peer,
        Operation.READ,
        request.group_id,
        consumer.heartbeat,
        request,
        caller(peer),
        broker.fresh_short_id(),
        refuse=heartbeat_refusal,
    )
