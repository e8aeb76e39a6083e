"""Which partition, and so which broker, looks after a group or a transactional id."""

import logging

from trilogue.broker.broker import Broker
from trilogue.broker.cluster.decisions import NewTopic
from trilogue.broker.config import BrokerConfig
from trilogue.broker.names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from trilogue.broker.requests.making import make_topic
from trilogue.wire.errors import BrokerError, ErrorCode

logger = logging.getLogger(__name__)

PREFIX = {OFFSETS_TOPIC: "offsets.topic", TRANSACTIONS_TOPIC: "transaction.state.log"}


def java_hash(text: str) -> int:
    """As Java's String.hashCode: over UTF-16 units, in 32 bits."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & 0xFFFF_FFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def partition_for(name: str, partitions: int) -> int:
    """As Kafka chooses: our topics hold what Kafka's would, where Kafka's would."""
    value = java_hash(name)
    return (0 if value == -(1 << 31) else abs(value)) % partitions


def partition_of(broker: Broker, topic: str, name: str) -> int:
    """The partition that a name belongs to; COORDINATOR_NOT_AVAILABLE while the topic is not there."""
    found = broker.image.topics.get(topic)
    if found is None:
        raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return partition_for(name, len(found.partitions))


def topic_settings(config: BrokerConfig, topic: str) -> dict[str, str]:
    """What Kafka gives a coordinator's topic."""
    settings = {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": str(config[f"{PREFIX[topic]}.segment.bytes"]),
    }
    if topic == TRANSACTIONS_TOPIC:
        settings |= {
            "min.insync.replicas": str(config["transaction.state.log.min.isr"]),
            "unclean.leader.election.enable": "false",
        }
    return settings


async def ensure_topic(broker: Broker, topic: str) -> None:
    """Make a coordinator's topic."""
    if topic in broker.image.topics:
        return
    config, prefix = broker.config, PREFIX[topic]
    defaults = config[f"{prefix}.num.partitions"], config[f"{prefix}.replication.factor"]
    try:
        new = NewTopic(topic, -1, -1, {}, topic_settings(config, topic))
        await make_topic(broker, None, new, defaults)
    except BrokerError as error:
        if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
            logger.warning("%s cannot be made: %s", topic, error)
            raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)) from None
