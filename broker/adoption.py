"""Takes up partitions that the metadata knows nothing of: their topics are made again from what lies in the folders.

For whoever has lost the metadata, or brings the data of Apache Kafka.  A folder says the topic's name and id, the
partition and the leader epochs; it does not say the topic's settings, nor which partitions nobody has written to yet.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from trilogue.broker.cluster.decisions import create_ops
from trilogue.broker.cluster.image import PRODUCER_IDS, TOPICS, PartitionState, Topic
from trilogue.broker.cluster.store import Create, Session
from trilogue.broker.config import BrokerConfig
from trilogue.broker.coordinators.lookup import PREFIX, topic_settings
from trilogue.broker.names import METADATA_TOPIC
from trilogue.storage.config import LogConfig
from trilogue.storage.directory import DataDirectory

logger = logging.getLogger(__name__)


class Found(NamedTuple):
    """A partition's folder."""

    topic: str
    partition: int
    topic_id: bytes | None
    leader_epoch: int


async def adopt(
    session: Session,
    directories: Iterable[DataDirectory],
    config: BrokerConfig,
    node_id: int,
    now_ms: int,
    fresh_id: Callable[[], bytes],
) -> None:
    """Every topic that has folders and is not in the store; what is there stays as it is."""
    known = {path[len(TOPICS) :].partition("/")[0] for path in await session.tree() if path.startswith(TOPICS)}
    unknown: dict[str, list[Found]] = {}
    for directory in directories:
        for name, partition in directory.partitions():
            if name not in known and name != METADATA_TOPIC:
                unknown.setdefault(name, []).append(look(directory, name, partition, now_ms))
    for name, found in sorted(unknown.items()):
        least = config[f"{PREFIX[name]}.num.partitions"] if name in PREFIX else 1
        topic = remade(found, node_id, least, fresh_id)
        settings = topic_settings(config, name) if name in PREFIX else {}
        await session.commit(create_ops(topic, settings, controller_epoch=0))
        logger.warning(
            "adopted topic %s: %d of %d partitions have data; its settings are the defaults",
            name,
            len(found),
            len(topic.partitions),
        )
    if unknown and await session.read(PRODUCER_IDS) is None:
        # Ids of before were counted from 0: none of them is as large as the time is in milliseconds.
        await session.commit([Create(PRODUCER_IDS, str(now_ms).encode())])


def look(directory: DataDirectory, topic: str, partition: int, now_ms: int) -> Found:
    """Opened for a moment: what a crash has torn is mended on the way."""
    log = directory.open_log(topic, partition, LogConfig(), now_ms)
    try:
        return Found(topic, partition, log.topic_id, log.latest_epoch or 0)
    finally:
        log.close(clean=False, now_ms=now_ms)


def remade(found: Sequence[Found], node_id: int, least: int, fresh_id: Callable[[], bytes]) -> Topic:
    """The topic of these partitions, all of them led here in an epoch that has ended."""
    ids = Counter(each.topic_id for each in found if each.topic_id is not None).most_common(1)
    topic_id = ids[0][0] if ids else fresh_id()
    ours = {each.partition: each for each in found if each.topic_id in (None, topic_id)}
    for each in found:
        if each.partition not in ours:
            logger.warning("%s-%d is of another topic of that name, and is put aside", each.topic, each.partition)
    count = max(least, max(ours) + 1)
    epochs = [ours[index].leader_epoch if index in ours else 0 for index in range(count)]
    states = (PartitionState((node_id,), node_id, epoch, (node_id,)) for epoch in epochs)
    return Topic(found[0].topic, topic_id, tuple(states))
