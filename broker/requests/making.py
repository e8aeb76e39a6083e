"""Topics and partitions are made where they can be kept, or not at all.

Logs have no files before the first append, so making a topic asks nothing of the disk but a line in the store.  Whoever
hears that it is there would then find that it takes no records.  So the disk is tried first.
"""

import logging
from collections.abc import Sequence

import trio

from trilogue.broker.broker import Broker
from trilogue.broker.cluster.decisions import NewTopic
from trilogue.broker.cluster.image import Topic
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.seams import controller
from trilogue.broker.security.operations import Operation
from trilogue.wire.apis.metadata import MetadataRequest, MetadataResponse
from trilogue.wire.errors import BrokerError, ErrorCode

logger = logging.getLogger(__name__)

KNOWN_SECONDS = 5.0
"""How long other brokers may take to learn of a topic before it is there without them."""
AGAIN_SECONDS = 0.01
METADATA_VERSION = 12


async def make_topic(
    broker: Broker, peer: Peer | None, new: NewTopic, defaults: tuple[int, int], *, dry_run: bool = False
) -> Topic:
    """Returns when it can be written to."""
    asked = controller(broker, peer, Operation.CREATE)
    if dry_run:
        return await asked.create_topic(new, defaults, dry_run=True)
    demand_room(broker)
    made = await asked.create_topic(new, defaults)
    await broker.replicas.opened(made)
    if any((made.name, index) in broker.replicas.unopened for index in range(len(made.partitions))):
        await asked.delete_topic(made.name)
        raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"the logs of {made.name} cannot be opened")
    await known_everywhere(broker, made)
    return made


async def make_partitions(
    broker: Broker, peer: Peer, topic: str, count: int, assignments: Sequence[Sequence[int]] | None, *, dry_run: bool
) -> None:
    if not dry_run:
        demand_room(broker)
    await controller(broker, peer, Operation.ALTER).add_partitions(topic, count, assignments, dry_run=dry_run)
    if not dry_run and (grown := broker.image.topics.get(topic)) is not None:
        await broker.replicas.opened(grown)
        await known_everywhere(broker, grown)


async def known_everywhere(broker: Broker, topic: Topic) -> None:
    """Returns when every broker knows the topic, or takes too long: whoever hears that it is there may go to any."""
    with trio.move_on_after(KNOWN_SECONDS):
        async with trio.open_nursery() as nursery:
            for node_id in broker.image.brokers:
                if node_id != broker.node_id:
                    nursery.start_soon(known_to, broker, node_id, topic)


async def known_to(broker: Broker, node_id: int, topic: Topic) -> None:
    asked = MetadataRequest(topics=[MetadataRequest.Topic(name=topic.name)], allow_auto_topic_creation=False)
    while node_id in broker.image.brokers:
        try:
            answer = await broker.inter_broker(node_id, asked, METADATA_VERSION, MetadataResponse)
        except BrokerError as error:
            logger.debug("whether it knows %s, broker %d does not say: %s", topic.name, node_id, error)
        else:
            found = answer.topics[0]
            if found.topic_id != topic.id and found.error_code == ErrorCode.NONE:
                return  # it is another by now
            if len(found.partitions) >= len(topic.partitions):
                return
        await trio.sleep(AGAIN_SECONDS)


def demand_room(broker: Broker) -> None:
    """Refuse if nothing can be written here.  Where there are other brokers, it may be they who will have to."""
    if broker.image.brokers.keys() == {broker.node_id}:
        try:
            broker.replicas.try_out()
        except OSError as error:
            problem = f"nothing can be written here: {error.strerror or error}"
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, problem) from None
