"""The upkeep of partitions: retention, flushing, compaction, checkpoints.

What may take long runs in threads, on files that nobody writes; deciding and adopting the result happen here.
"""

import errno
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import trio

from trilogue.broker.names import TopicPartition
from trilogue.broker.partitions.partition import Partition
from trilogue.broker.partitions.replicas import Replicas
from trilogue.storage import cleaner
from trilogue.storage.directory import DataDirectory
from trilogue.storage.log import Log
from trilogue.storage.passing import passes

logger = logging.getLogger(__name__)

TOGETHER = 100
"""So many partitions are looked at before others have a turn: it takes less than a millisecond."""

RETENTION, FLUSHING, COMPACTION = "retention", "flushing", "compaction"

ROOM_BYTES = 1 << 20
"""So much has to fit on a disk that was full before it counts on it again: the first batches would fill less, and who
comes and goes with every batch is of no use to the others."""

PARTITIONS_PER_TURN = 1000
"""So many are looked at in well under a millisecond."""


class Upkeep:
    def __init__(self, replicas: Replicas, clock_ms: Callable[[], int]) -> None:
        self._replicas, self._clock_ms = replicas, clock_ms
        self.flushing = 0
        """How many flushes are on their way."""
        self._saved: dict[str, object] = {}
        """By directory, what the last checkpoint said."""
        self.troubles = replicas.troubles
        self._looked_at: dict[TopicPartition, int] = {}
        """Where each log ended when it was last seen that its files are there."""

    @contextmanager
    def _only(self, work: str, partition: Partition) -> Iterator[None]:
        """Whatever goes wrong costs this partition and nobody else.  A disk that fails takes more along; what passes
        costs nothing, and is tried the next time: retention is what makes room on a full disk."""
        try:
            yield
        except OSError as error:
            self._replicas.failed(partition, error)
        except Exception:
            pause_ms = self.troubles.failed(work, partition.key, self._clock_ms())
            logger.exception("%s of %s-%d failed; it is left alone for %d s", work, *partition.key, pause_ms // 1000)
        else:
            self.troubles.succeeded(work, partition.key)

    def _due(self, work: str) -> Iterator[Partition]:
        """All partitions but those that this failed for lately, or that are moving."""
        for partition in list(self._replicas):
            if partition.key not in self._replicas.moves and not self.troubles.rests(
                work, partition.key, self._clock_ms()
            ):
                yield partition

    async def expire(self) -> None:
        """Retention, once over all partitions; yields in between."""
        for partition in self._due(RETENTION):
            now_ms = self._clock_ms()
            with self._only(RETENTION, partition):
                if partition.log.config.delete and partition.leads:
                    partition.expire(now_ms)
                partition.log.sweep(now_ms)
                partition.log.expire_producers(now_ms)
            await trio.lowlevel.checkpoint()
        await self.remove_doomed(self._clock_ms())

    async def remove_doomed(self, now_ms: float) -> None:
        """The folders of deleted partitions whose time has come."""
        due = [each for each in self._replicas.doomed if each[0] <= now_ms]
        self._replicas.doomed = [each for each in self._replicas.doomed if each[0] > now_ms]
        for _, home, folder in due:
            await trio.to_thread.run_sync(home.remove_leftover, folder)

    async def flush_due(self) -> None:
        """fsync what flush.messages and flush.ms ask for, and segments that are finished."""
        for number, partition in enumerate(list(self._replicas)):
            now_ms = self._clock_ms()
            if partition.log.flush_due(now_ms) and not self.troubles.rests(FLUSHING, partition.key, now_ms):
                with self._only(FLUSHING, partition):
                    await self.flush(partition)
            if number % TOGETHER == 0:
                await trio.lowlevel.checkpoint()

    async def flush(self, partition: Partition) -> None:
        log = partition.log
        self.flushing += 1
        try:
            flush = log.start_flush()
            try:
                await trio.to_thread.run_sync(flush.run)
            except OSError as error:
                log.flush_failed(error)
                raise
            log.finish_flush(flush, self._clock_ms())
        except OSError as error:
            self._replicas.failed(partition, error)
            raise
        finally:
            self.flushing -= 1

    async def compact(self, *, at_once: bool = False) -> None:
        """One round of compaction over all partitions that are dirty enough; `at_once`, of all that they have."""
        for partition in self._due(COMPACTION):
            log = partition.log
            if not log.config.compact:
                continue
            with self._only(COMPACTION, partition):
                if at_once and log.segments:
                    log.roll(self._clock_ms())  # what is in the active segment is not compacted
                plan = cleaner.plan(log, self._clock_ms(), partition.high_watermark, at_once=at_once)
                if plan is None:
                    continue
                cleaned = await trio.to_thread.run_sync(partial(plan.run, stop=ends_when_cancelled))
                if partition.log is log and partition.key not in self._replicas.moves:  # else the next round will
                    cleaner.adopt(log, cleaned, self._clock_ms())

    async def checkpoint(self) -> None:
        """Write down how far everything has come, if it has come any further; in a thread, since it is synced."""
        for directory in self._replicas.directories:
            if directory.failed is not None:
                continue
            logs = self._replicas.logs_in(directory)
            reached = self._replicas.high_watermarks_in(directory)
            state = (
                reached,
                {key: (log.recovery_point, log.start_offset, log.clean_offset) for key, log in logs.items()},
            )
            if self._saved.get(directory.path) == state:
                continue
            try:
                await trio.to_thread.run_sync(save, directory, logs, reached)
                self._saved[directory.path] = state
            except OSError as error:
                directory.fail_if_gone()
                if directory.failed is not None:
                    directory.fail(directory.failed, logs.values())
                elif self.troubles.news(f"checkpoint of {directory.path}", error.errno, self._clock_ms()):
                    logger.error("%s: no checkpoint for now: %s", directory.path, error.strerror)

    async def look(self) -> None:
        """Notice what nobody tells us: directories that are gone, logs that have failed under somebody's write, and
        logs whose files are gone.  Of the last only those that were written to: the others lose nothing by waiting."""
        for directory in self._replicas.directories:
            directory.fail_if_gone()
            if directory.failed is not None:
                directory.fail(directory.failed, self._replicas.logs_in(directory).values())
        await self._look_for_room()
        offline = set(self._replicas.unopened)
        written: list[tuple[Partition, Log]] = []
        looked_at, self._looked_at = self._looked_at, {}
        for number, partition in enumerate(list(self._replicas)):
            log = partition.log
            self._looked_at[partition.key] = log.end_offset
            if log.failed is not None:
                self._replicas.failed(partition, log.failed)
            elif looked_at.get(partition.key) != log.end_offset:
                written.append((partition, log))
            if self._replicas.cannot_be_written(partition):
                offline.add(partition.key)
            if number % PARTITIONS_PER_TURN == PARTITIONS_PER_TURN - 1:
                await trio.lowlevel.checkpoint()
        self._replicas.offline = frozenset(offline)
        if written:
            for partition, log in await trio.to_thread.run_sync(without_files, written):
                # Meanwhile it may have been deleted, moved or begun another segment: then it is not where it was.
                if self._replicas.find(*partition.key) is partition and partition.log is log and not log.is_there():
                    log.fail(FileNotFoundError(errno.ENOENT, "its files were removed under us", log.path))

    async def _look_for_room(self) -> None:
        for directory in list(self._replicas.full):
            try:
                if directory.failed is None:
                    await trio.to_thread.run_sync(directory.try_out, ROOM_BYTES)
            except OSError as error:
                if passes(error):
                    continue
                directory.fail(error, self._replicas.logs_in(directory).values())
            else:
                logger.warning("%s: there is room again", directory.path)
            self._replicas.full.discard(directory)


def without_files(written: Iterable[tuple[Partition, Log]]) -> list[tuple[Partition, Log]]:
    """Runs in a thread: a slow disk must not hold the loop."""
    return [(partition, log) for partition, log in written if not log.is_there()]


def ends_when_cancelled() -> bool:
    """For work in a thread, between two pieces: raises `trio.Cancelled` when whoever waits for it is to end."""
    trio.from_thread.check_cancelled()
    return False


def save(
    directory: DataDirectory, logs: Mapping[TopicPartition, Log], high_watermarks: Mapping[TopicPartition, int]
) -> None:
    directory.save_high_watermarks(high_watermarks)
    directory.save_recovery_points(logs)
    directory.save_log_starts(logs)
    directory.save_cleaned_to(logs)
