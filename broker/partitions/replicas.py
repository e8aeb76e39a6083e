"""All partitions on this broker; turns a new image of the cluster into "lead" and "follow"."""

import logging
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import trio

from trilogue.broker.cluster.image import Image, Topic
from trilogue.broker.config import BrokerConfig
from trilogue.broker.names import TopicPartition
from trilogue.broker.partitions.partition import Partition
from trilogue.storage import system
from trilogue.storage.directory import DataDirectory
from trilogue.storage.log import Log
from trilogue.storage.move import ON_THE_SPOT_BYTES, ROUNDS_MAX, Move, remove_unfinished

logger = logging.getLogger(__name__)


class Replicas:
    def __init__(
        self,
        node_id: int,
        directories: Sequence[DataDirectory],
        clock_ms: Callable[[], int],
        chance: random.Random,
        config: Callable[[], BrokerConfig],
    ) -> None:
        self._node_id, self.directories, self._clock_ms = node_id, directories, clock_ms
        self._chance, self._config = chance, config
        self.partitions: dict[TopicPartition, Partition] = {}
        self._homes: dict[TopicPartition, DataDirectory] = {}
        self.doomed: list[tuple[float, DataDirectory, str]] = []
        """When to remove which folder of a deleted partition."""
        self.moves: dict[TopicPartition, Move] = {}
        """Partitions on their way to another directory."""
        self._on_disk: dict[TopicPartition, DataDirectory] = {}
        for directory in directories:
            remove_unfinished(directory)
            self.doomed += ((0, directory, folder) for folder in directory.leftovers())
            for key in directory.partitions():
                if key in self._on_disk:  # we ended while it changed over, and both are complete
                    self._put_aside(directory, key)
                else:
                    self._on_disk[key] = directory

    # -- finding -------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Partition]:
        return iter(self.partitions.values())

    def find(self, topic: str, index: int) -> Partition | None:
        return self.partitions.get((topic, index))

    def home(self, key: TopicPartition) -> DataDirectory:
        return self._homes[key]

    # -- following the cluster -----------------------------------------------------------------

    def apply(self, before: Image, image: Image) -> None:
        """Take over what has changed between two images."""
        for name, old in before.topics.items():
            new = image.topics.get(name)
            if new is None or new.id != old.id:
                self._remove(old)
        for name, topic in image.topics.items():
            if before.topics.get(name) is not topic:
                self._update(topic, image)
        if before.configs is not image.configs:
            self.reconfigure(image)

    def _update(self, topic: Topic, image: Image) -> None:
        for index, state in enumerate(topic.partitions):
            if self._node_id not in state.replicas:
                continue
            found = self.partitions.get((topic.name, index))
            if found is None:
                try:
                    found = self._open(topic, index, image)
                except OSError as error:
                    logger.error("%s-%d is offline: %s", topic.name, index, error)
                    continue
                except Exception:  # what its files hold must not keep all the others from being opened
                    logger.exception("%s-%d is offline", topic.name, index)
                    continue
            if found.state is not state:
                found.become(state)

    def _open(self, topic: Topic, index: int, image: Image) -> Partition:
        key = (topic.name, index)
        home = self._on_disk.get(key) or self._least_filled()
        config = self._config().topic(image.config("topics", topic.name))
        most = min(config["segment.jitter.ms"], config["segment.ms"])  # a broker may be told any number
        jitter = self._chance.randrange(most) if most > 0 else 0
        log = home.open_log(topic.name, index, config.log_config(jitter), self._clock_ms(), topic.id)
        if log.topic_id is not None and log.topic_id != topic.id:
            # Files of an earlier topic of that name: it was deleted while we were not looking.
            self._discard(log, home)
            log = home.open_log(topic.name, index, config.log_config(jitter), self._clock_ms(), topic.id)
        high_watermark = home.high_watermarks.get(key, 0)
        partition = Partition(
            self._node_id, topic.name, index, topic.id, log, high_watermark, config["min.insync.replicas"]
        )
        self.partitions[key] = partition
        self._homes[key] = home
        return partition

    def _least_filled(self) -> DataDirectory:
        """The working directory with the fewest partitions, as Kafka chooses."""
        working = [each for each in self.directories if each.failed is None]
        if not working:
            raise OSError("no data directory works any more")
        homes = list(self._homes.values())
        return min(working, key=homes.count)

    def _remove(self, topic: Topic) -> None:
        for index in range(len(topic.partitions)):
            partition = self.partitions.pop((topic.name, index), None)
            if partition is None:
                continue
            home = self._homes.pop((topic.name, index))
            self._on_disk.pop((topic.name, index), None)
            partition.become(partition.state._replace(leader=-1, leader_epoch=partition.leader_epoch + 1))
            self._discard(partition.log, home)

    def _discard(self, log: Log, home: DataDirectory) -> None:
        """Out of sight at once, from the disk after a while: somebody may be reading."""
        delay_ms = log.config.file_delete_delay_ms
        try:
            folder = log.delete(self._chance.randbytes(16).hex())
        except OSError as error:
            logger.error("%s cannot be deleted: %s", log.name, error)
            return
        if folder is not None:
            self.doomed.append((self._clock_ms() + delay_ms, home, folder))

    def reconfigure(self, image: Image) -> None:
        """Settings have changed, of topics or of the broker."""
        broker_config = self._config()
        by_topic: dict[str, list[Partition]] = {}
        for partition in self:
            by_topic.setdefault(partition.topic, []).append(partition)
        for name, partitions in by_topic.items():
            config = broker_config.topic(image.config("topics", name))
            for partition in partitions:
                wanted = config.log_config(partition.log.config.segment_jitter_ms)
                if wanted != partition.log.config:
                    partition.log.config = wanted
                partition.min_isr = config["min.insync.replicas"]

    def put_strays_aside(self, image: Image) -> None:
        """Folders of topics that the cluster does not have: kept, under a name that says so."""
        for key, home in self._on_disk.items():
            if image.partition(*key) is None:
                self._put_aside(home, key)

    def _put_aside(self, home: DataDirectory, key: TopicPartition) -> None:
        folder = Path(home.path, f"{key[0]}-{key[1]}")
        target = Path(home.path, f"{folder.name}.{self._chance.randbytes(16).hex()}-stray")
        logger.warning("%s belongs to no partition we know; it is now %s", folder, target.name)
        system.rename(str(folder), str(target))

    # -- moving between directories ------------------------------------------------------------

    def wants_move(self, partition: Partition, target: DataDirectory) -> bool:
        """Whether a move to this directory has to begin.  One to another directory is given up."""
        key = partition.key
        under_way = self.moves.get(key)
        if under_way is not None and under_way.target is not target:
            del self.moves[key]  # its task will notice
        return self._homes[key] is not target and key not in self.moves

    async def move(self, partition: Partition, target: DataDirectory) -> None:
        """Bring a partition to another directory.  Ends early when it is deleted or wanted elsewhere meanwhile."""
        key = partition.key
        if not self.wants_move(partition, target):
            return
        move = self.moves[key] = Move(partition.log, target, self._chance.randbytes(16).hex())
        try:
            while True:
                files = move.next_round(self._clock_ms())
                if move.size(files) <= ON_THE_SPOT_BYTES or move.rounds > ROUNDS_MAX:
                    break
                await trio.to_thread.run_sync(move.copy, files)
                if self.moves.get(key) is not move or self.partitions.get(key) is not partition:
                    return
            old, home = partition.log, self._homes[key]
            partition.log = move.change_over(self._clock_ms())
            self._homes[key] = self._on_disk[key] = target
            self._discard(old, home)
        except OSError as error:
            logger.error("%s cannot be moved to %s: %s", move.log.name, target.path, error)
        finally:
            if self.moves.get(key) is move:
                del self.moves[key]
            move.give_up()

    # -- ending --------------------------------------------------------------------------------

    def logs_in(self, directory: DataDirectory) -> dict[TopicPartition, Log]:
        return {key: partition.log for key, partition in self.partitions.items() if self._homes[key] is directory}

    def high_watermarks_in(self, directory: DataDirectory) -> dict[TopicPartition, int]:
        return {
            key: partition.high_watermark for key, partition in self.partitions.items() if self._homes[key] is directory
        }

    def failed(self, partition: Partition, error: OSError) -> None:
        """A disk has failed: everything on it is offline."""
        home = self._homes.get(partition.key)
        if home is not None:
            home.fail(error, self.logs_in(home).values())

    def close(self, broker_epoch: int) -> None:
        for directory in self.directories:
            logs = self.logs_in(directory)
            if directory.failed is None:
                try:
                    directory.save_high_watermarks(self.high_watermarks_in(directory))
                except OSError as error:
                    directory.fail(error)
            directory.close(logs, clean=True, now_ms=self._clock_ms(), broker_epoch=broker_epoch)
