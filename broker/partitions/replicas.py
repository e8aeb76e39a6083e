"""All partitions on this broker; turns a new image of the cluster into "lead" and "follow"."""

import logging
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import trio

from trilogue.broker.cluster.image import Image, PartitionState, Topic
from trilogue.broker.config import BrokerConfig, TopicConfig
from trilogue.broker.names import METADATA_TOPIC, TopicPartition
from trilogue.broker.partitions.partition import Partition
from trilogue.broker.partitions.troubles import Troubles
from trilogue.broker.requests.turns import Turns
from trilogue.storage import system
from trilogue.storage.config import LogConfig
from trilogue.storage.directory import DataDirectory
from trilogue.storage.log import Log
from trilogue.storage.move import ON_THE_SPOT_BYTES, ROUNDS_MAX, Move, remove_unfinished
from trilogue.storage.passing import lacks_space, passes

logger = logging.getLogger(__name__)

FIRST_PAUSE_MS, LONGEST_PAUSE_MS = 1000, 16_000
"""Until a log that could not be opened is tried again.  Opening may mean checking all of it: not to be done at every
turn; and whoever has made room waits for us."""


NO_EPOCH, UNREGISTERED = -1, -2

AT_ONCE = 100
"""So many logs are opened before others have a turn: it takes a few milliseconds."""


class Attempt(NamedTuple):
    """To open a log, next time."""

    at_ms: int
    pause_ms: int
    error: OSError

    def is_due(self, now_ms: int) -> bool:
        """Also if the clock has been put back since: it would be waited for as long as it was put back."""
        return not self.at_ms - self.pause_ms <= now_ms < self.at_ms


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
        self._opened_now = 0
        """How many logs were opened for the image at hand."""
        self.broker_epoch: int | None = None
        """Of our registration: what we were given under another, we do not begin to lead.  None if nobody minds."""
        self._applied = config()
        """What the settings of logs were last made of."""
        self.partitions: dict[TopicPartition, Partition] = {}
        self._homes: dict[TopicPartition, DataDirectory] = {}
        self.doomed: list[tuple[float, DataDirectory, str]] = []
        """When to remove which folder of a deleted partition."""
        self.moves: dict[TopicPartition, Move] = {}
        """Partitions on their way to another directory."""
        self.unopened: dict[TopicPartition, Attempt] = {}
        """Partitions whose logs the disk did not let us open, and when that is tried again."""
        self.opening: dict[TopicPartition, None] = {}
        """Partitions that are to be opened when it is their turn, in this order."""
        self.in_pieces = False
        """While we start, everything is opened at once: nobody waits for anything else."""
        self._stirred, self._drained = trio.Event(), trio.Event()
        self._told: tuple[BrokerConfig, Mapping[str, str], TopicConfig] | None = None
        """The settings of the topic opened last: its other partitions have the same."""
        self.troubles = Troubles()
        self.full: set[DataDirectory] = set()
        """Directories without room, until it has been seen that there is some again."""
        self.offline: frozenset[TopicPartition] = frozenset()
        """What cannot be written to now, as `Upkeep.look` has found."""
        self._on_disk: dict[TopicPartition, DataDirectory] = {}
        for directory in directories:
            remove_unfinished(directory)
            self.doomed += ((0, directory, folder) for folder in directory.leftovers())
            for key in directory.partitions():
                if key[0] == METADATA_TOPIC:
                    continue  # Apache Kafka's own metadata, should it want its directory back
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
        self._opened_now = 0
        for name, old in before.topics.items():
            new = image.topics.get(name)
            if new is None or new.id != old.id:
                self._remove(old)
        for name, topic in image.topics.items():
            if before.topics.get(name) is not topic:
                self._update(topic, image)
        if before.configs is not image.configs or self._applied is not self._config():
            self._reconfigure(before, image)

    def _update(self, topic: Topic, image: Image) -> None:
        for index, state in enumerate(topic.partitions):
            if self._node_id not in state.replicas:
                if state.replicas:  # nobody has meant none at all
                    self._drop((topic.name, index))
                continue
            found = self.partitions.get((topic.name, index))
            if found is None:
                if self.in_pieces and self._opened_now >= AT_ONCE:
                    self.opening[topic.name, index] = None
                    self._stirred.set()
                    continue
                self._opened_now += 1
                found = self._try_to_open(topic, index, image)
            if found is not None and found.state is not state:
                self._take_over(found, state)

    def _take_over(self, partition: Partition, state: PartitionState) -> None:
        """What a run of ours before this one was given is not ours: it may have had what was not on the disk, and to
        lead on under its epoch would give offsets out a second time."""
        if (
            self.broker_epoch is not None
            and state.leader == self._node_id
            and state.leader_broker_epoch != self.broker_epoch
            and partition.leader_epoch == NO_EPOCH
        ):
            return
        partition.become(state)

    def registered(self, broker_epoch: int, image: Image) -> None:
        """From now on we lead what was given to us under this epoch."""
        self.broker_epoch = broker_epoch
        for key, partition in self.partitions.items():
            state = image.partition(*key)
            if state is not None and state is not partition.state:
                self._take_over(partition, state)

    async def open_the_rest(self, image: Callable[[], Image], turns: Turns, opened: Callable[[], None]) -> None:
        """Never ends: opens what had to wait, in pieces; `opened` is called when all are."""
        while True:
            await self._stirred.wait()
            self._stirred = trio.Event()
            pace = turns.pace()
            while self.opening:
                key = next(iter(self.opening))
                topic, state = image().topics.get(key[0]), image().partition(*key)
                if topic is not None and state is not None and self._node_id in state.replicas:
                    found = self.partitions.get(key) or self._try_to_open(topic, key[1], image())
                    if found is not None:
                        self._take_over(found, state)
                del self.opening[key]
                await pace.step()
            opened()
            self._drained.set()
            self._drained = trio.Event()

    async def opened(self, topic: Topic) -> None:
        """Returns when none of its partitions waits for its turn any more."""
        while any((topic.name, index) in self.opening for index in range(len(topic.partitions))):
            await self._drained.wait()

    def _try_to_open(self, topic: Topic, index: int, image: Image) -> Partition | None:
        """None if that cannot be, for now or for good: it must not keep all the others from being opened."""
        key = (topic.name, index)
        before = self.unopened.pop(key, None)
        try:
            return self._open(topic, index, image)
        except OSError as error:
            pause_ms = FIRST_PAUSE_MS if before is None else min(before.pause_ms * 2, LONGEST_PAUSE_MS)
            self.unopened[key] = Attempt(self._clock_ms() + pause_ms, pause_ms, error)
            if before is None or before.error.errno != error.errno:
                logger.error("%s-%d is offline until it can be opened: %s", *key, error)
        except Exception:  # it is what its files hold, and will hold
            logger.exception("%s-%d is offline", *key)
        return None

    def open_what_could_not_be(self, image: Image) -> bool:
        """Try again those whose time has come; whether any is open now."""
        opened = False
        now_ms = self._clock_ms()
        for key in [key for key, attempt in self.unopened.items() if attempt.is_due(now_ms)]:
            topic, state = image.topics.get(key[0]), image.partition(*key)
            if topic is None or state is None or self._node_id not in state.replicas:
                del self.unopened[key]
            elif (found := self._try_to_open(topic, key[1], image)) is not None:
                logger.warning("%s-%d could be opened", *key)
                self._take_over(found, state)
                opened = True
        return opened

    def _open(self, topic: Topic, index: int, image: Image) -> Partition:
        key = (topic.name, index)
        home = self._on_disk.get(key) or self._least_filled()
        config = self._config_of(image.config("topics", topic.name))
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

    def _config_of(self, overrides: Mapping[str, str]) -> TopicConfig:
        config = self._config()
        if self._told is None or self._told[0] is not config or self._told[1] is not overrides:
            self._told = config, overrides, config.topic(overrides)
        return self._told[2]

    def _least_filled(self) -> DataDirectory:
        """The working directory with the fewest partitions, as Kafka chooses."""
        working = [each for each in self.directories if each.failed is None]
        if not working:
            raise OSError("no data directory works any more")
        if len(working) == 1:
            return working[0]
        filled = Counter(self._homes.values())
        return min(working, key=lambda each: filled[each])

    def try_out(self) -> None:
        """Raises what keeps the directory that would have the next partition from being written to."""
        home = self._least_filled()
        home.fail_if_gone()
        if home.failed is not None:
            raise home.failed
        try:
            home.try_out()
        except OSError as error:
            if not passes(error):
                home.fail(error)
            raise

    def _remove(self, topic: Topic) -> None:
        for index in range(len(topic.partitions)):
            self._drop((topic.name, index))

    def _drop(self, key: TopicPartition) -> None:
        """We are no replica of it any more: whoever waits for it hears that, and its log goes."""
        self.unopened.pop(key, None)
        partition = self.partitions.pop(key, None)
        if partition is None:
            return
        home = self._homes.pop(key)
        self._on_disk.pop(key, None)
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

    def _reconfigure(self, before: Image, image: Image) -> None:
        """Settings have changed, of topics or of the broker.  Most topics have none of their own: what their logs have
        to know is worked out once for all that are alike."""
        everybody, self._applied = self._applied is not self._config(), self._config()
        alike: dict[frozenset[tuple[str, str]], TopicConfig] = {}
        logs: dict[tuple[TopicConfig, int], LogConfig] = {}
        for name, topic in image.topics.items():
            overrides = image.config("topics", name)
            if not everybody and overrides is before.config("topics", name):
                continue
            setting = frozenset(overrides.items())
            config = alike.get(setting) or alike.setdefault(setting, self._applied.topic(overrides))
            for index in range(len(topic.partitions)):
                if (partition := self.partitions.get((name, index))) is None:
                    continue
                kind = (config, partition.log.config.segment_jitter_ms)
                wanted = logs.get(kind) or logs.setdefault(kind, config.log_config(kind[1]))
                if wanted != partition.log.config:
                    partition.log.config = wanted
                partition.min_isr = config["min.insync.replicas"]

    def put_strays_aside(self, image: Image) -> None:
        """Folders of partitions that the cluster does not have, or that have moved to other brokers while we were away:
        kept, under a name that says so.  A topic that cannot be understood is there: when somebody has put it right, it
        has its data."""
        for key, home in list(self._on_disk.items()):
            state = image.partition(*key)
            if key[0] not in image.unread and (state is None or self._node_id not in state.replicas):
                del self._on_disk[key]
                self._put_aside(home, key)

    def _put_aside(self, home: DataDirectory, key: TopicPartition) -> None:
        folder = Path(home.path, f"{key[0]}-{key[1]}")
        target = Path(home.path, f"{folder.name}.{self._chance.randbytes(16).hex()}-stray")
        logger.warning("%s belongs to no partition of ours; it is now %s", folder, target.name)
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
        """The disk has refused something: judge what that costs.

        Nothing, if it passes; this partition, if its files were taken away; otherwise the disk has failed, and
        everything on it is offline.
        """
        home = self._homes.get(partition.key)
        if home is None:
            return
        if passes(error):
            if lacks_space(error):
                self.full.add(home)
            # A log that has failed by it, in an fsync, has said so itself.
            if partition.log.failed is not error and self.troubles.news(home.path, error.errno, self._clock_ms()):
                logger.error("%s: cannot be written to for now: %s", home.path, error.strerror)
        elif isinstance(error, FileNotFoundError) and home.is_there():
            partition.log.fail(error)
        elif home.failed is None:
            home.fail(error, self.logs_in(home).values())

    def cannot_be_written(self, partition: Partition) -> bool:
        home = self._homes[partition.key]
        return partition.log.failed is not None or home.failed is not None or home in self.full

    @property
    def none_left(self) -> OSError | None:
        """Why no directory works any more, if so."""
        failures = [each.failed for each in self.directories]
        return failures[-1] if all(failures) else None

    def close(self, broker_epoch: int | None, *, clean: bool = True) -> None:
        """`broker_epoch` is the last in which nothing was lost; None if that is not known.  Unless this is `clean`,
        nothing more is written down: the next start has to check what it finds."""
        for directory in self.directories:
            logs = self.logs_in(directory)
            if clean and directory.failed is None:
                try:
                    directory.save_high_watermarks(self.high_watermarks_in(directory))
                except OSError as error:
                    directory.fail(error)  # even if it passes: there is no later
            directory.close(
                logs,
                clean=clean,
                now_ms=self._clock_ms(),
                broker_epoch=NO_EPOCH if broker_epoch is None else broker_epoch,
            )
