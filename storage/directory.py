"""One data directory: who it belongs to, which partitions are in it, and the offsets it keeps about them.

Several directories are several of these; when a disk fails, `failed` says so, and only its partitions are
offline.  A full disk has not failed, nor has one that there were no descriptors for (`passing.py`).  A lock keeps a
second broker out, Apache Kafka included, and tells us if the directory is taken away under us."""

import errno
import json
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from trilogue.storage import checkpoint, names, system
from trilogue.storage.checkpoint import (
    CLEANED_TO,
    HIGH_WATERMARKS,
    LOG_STARTS,
    META_PROPERTIES,
    META_VERSION,
    RECOVERY_POINTS,
    DamagedFile,
    Partition,
    parse_id,
)
from trilogue.storage.config import LogConfig
from trilogue.storage.files import MODE, Handle, OpenFiles, read_file, replace_file, unlink_if_there, write_all
from trilogue.storage.log import SHARED_FILES, Log
from trilogue.storage.passing import passes
from trilogue.wire.ids import uuid_text

logger = logging.getLogger(__name__)

LOCK = ".lock"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"

TRIED_OUT, TRIED_OUT_BYTES = "is-there-room.tmp", 8192
"""A folder with the first files of a log takes about as much."""


class DirectoryInUse(Exception):
    """Another broker has this data directory open."""


class WrongDirectory(Exception):
    """The directory belongs to another broker or another cluster."""


class DataDirectory:
    """A data directory, locked for us from `__init__` to `close`."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        cluster_id: str,
        node_id: int,
        new_id: bytes,
        pool: OpenFiles = SHARED_FILES,
    ) -> None:
        """Open it, or make it.  `new_id` becomes its id if it has none yet."""
        self.path = os.path.abspath(path)
        self.pool = pool
        self.failed: OSError | None = None
        self._opened: set[Partition] = set()
        os.makedirs(self.path, exist_ok=True)
        self._place = os.stat(self.path)
        """By which we know it again."""
        self._lock = self._take_lock()
        try:
            self.id = self._identify(cluster_id, node_id, new_id)
            self.clean_broker_epoch = self._read_clean_shutdown()
            """The broker epoch of the last clean shutdown; None if the last end was not clean.  -1 if it was,
            long ago."""
            self.recovery_points = self._read_offsets(RECOVERY_POINTS)
            self.high_watermarks = self._read_offsets(HIGH_WATERMARKS)
            self.log_starts = self._read_offsets(LOG_STARTS)
            self.cleaned_to = self._read_offsets(CLEANED_TO)
        except BaseException:
            self._release()  # here and now: who keeps the error keeps the lock with it
            raise

    @property
    def was_clean(self) -> bool:
        """Whether whoever had it before us closed it properly."""
        return self.clean_broker_epoch is not None

    def _take_lock(self) -> Handle:
        lock = Handle(system.open(self._path(LOCK), os.O_RDWR | os.O_CREAT, MODE))
        try:
            system.lock(lock.fd)
        except OSError as error:
            raise DirectoryInUse(f"{self.path} is in use by another broker") from error
        return lock

    def _release(self) -> None:
        with suppress(OSError):
            if os.path.samestat(os.stat(self._path(LOCK)), system.fstat(self._lock.fd)):  # or else it is another's
                system.unlock(self._lock.fd, self._path(LOCK))
        del self._lock

    def let_go(self) -> None:
        """It was opened in vain: there is nothing to be closed."""
        self._release()

    def is_there(self) -> bool:
        """Whether it is still where it was when it was opened, and not another under its name."""
        try:
            return os.path.samestat(os.stat(self.path), self._place)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True  # it cannot be seen, which is another trouble

    def _keep_lock(self) -> None:
        """Somebody may have taken our lock for one that was left behind: a second broker must not get in by that."""
        try:
            ours = os.path.samestat(os.stat(self._path(LOCK)), system.fstat(self._lock.fd))
        except FileNotFoundError:
            logger.warning("%s: its %s was removed, and is made anew", self.path, LOCK)
            ours = False
        if not ours:
            self._lock = self._take_lock()

    def _identify(self, cluster_id: str, node_id: int, new_id: bytes) -> bytes:
        path = self._path(META_PROPERTIES)
        found = checkpoint.read_properties(path)
        if not found:
            checkpoint.write_properties(
                path,
                {
                    "node.id": str(node_id),
                    "directory.id": uuid_text(new_id),
                    "version": str(META_VERSION),
                    "cluster.id": cluster_id,
                },
            )
            return new_id
        if found.get("version") != str(META_VERSION):
            raise WrongDirectory(f"{path}: version {found.get('version')}, not {META_VERSION}")
        if found.get("cluster.id") != cluster_id or found.get("node.id") != str(node_id):
            raise WrongDirectory(
                f"{self.path} belongs to node {found.get('node.id')} of cluster {found.get('cluster.id')}, "
                f"not to node {node_id} of cluster {cluster_id}"
            )
        if "directory.id" not in found:
            checkpoint.write_properties(path, {**found, "directory.id": uuid_text(new_id)})
            return new_id
        return parse_id(found["directory.id"])

    def _read_clean_shutdown(self) -> int | None:
        """Read and remove the marker: if we crash from here on, the end is not clean."""
        content = read_file(self._path(CLEAN_SHUTDOWN))
        if content is None:
            return None
        unlink_if_there(self._path(CLEAN_SHUTDOWN))
        system.sync_directory(self.path)
        try:
            epoch = json.loads(content)["brokerEpoch"]
            return epoch if isinstance(epoch, int) else -1
        except (ValueError, TypeError, KeyError):
            logger.warning("%s: %s is not readable, but it is there", self.path, CLEAN_SHUTDOWN)
            return -1

    def _read_offsets(self, name: str) -> dict[Partition, int]:
        try:
            return checkpoint.read_offsets(self._path(name))
        except DamagedFile as damage:
            logger.warning("%s: %s is damaged and counts as empty: %s", self.path, name, damage)
            return {}

    def _path(self, name: str) -> str:
        return os.path.join(self.path, name)

    def try_out(self, size: int = TRIED_OUT_BYTES) -> None:
        """Raises OSError if not so much can be written here now."""
        handle: Handle | None = None
        try:
            handle = Handle(system.open(self._path(TRIED_OUT), os.O_WRONLY | os.O_CREAT, MODE))
            write_all(handle.fd, bytes(size), 0)
        finally:
            handle = None  # here and now: who keeps the error would keep the file, and its room
            unlink_if_there(self._path(TRIED_OUT))

    # ---- partitions --------------------------------------------------------------------------------------

    def partitions(self) -> list[Partition]:
        """Those that have files here."""
        with os.scandir(self.path) as entries:
            found = [names.parse_folder(entry.name) for entry in entries if entry.is_dir()]
        return sorted(partition for partition in found if partition is not None)

    def open_log(
        self, topic: str, partition: int, config: LogConfig, now_ms: int, topic_id: bytes | None = None
    ) -> Log:
        """Open a partition's log with what the checkpoints know about it.

        That the last broker ended cleanly holds for the first opening only: a log that is opened again was closed
        by us, for whatever reason, and is checked.
        """
        key = (topic, partition)
        path = self._path(names.folder(topic, partition))
        if not os.path.isdir(path):
            self.forget(key)  # what is noted was said about another topic of this name
        clean = self.was_clean and key not in self._opened
        self._opened.add(key)
        return Log.open(
            path,
            config,
            now_ms,
            topic_id=topic_id,
            start_offset=self.log_starts.get(key, 0),
            recovery_point=self.recovery_points.get(key, 0),
            clean_offset=self.cleaned_to.get(key, 0),
            clean=clean,
            pool=self.pool,
        )

    def forget(self, partition: Partition) -> None:
        """A partition was deleted: drop what the checkpoints know about it."""
        for offsets in (self.recovery_points, self.high_watermarks, self.log_starts, self.cleaned_to):
            offsets.pop(partition, None)

    def leftovers(self) -> list[str]:
        """Folders of deleted partitions that still wait for their removal."""
        with os.scandir(self.path) as entries:
            return sorted(
                entry.path for entry in entries if entry.is_dir() and entry.name.endswith(names.DELETE_FOLDER)
            )

    def remove_leftover(self, path: str) -> None:
        """Delete the folder of a deleted partition.  May run in a thread."""
        if os.path.dirname(path) != self.path or not path.endswith(names.DELETE_FOLDER):
            raise ValueError(f"{path} is not a deleted partition of {self.path}")
        system.rmtree(path)

    # ---- checkpoints -------------------------------------------------------------------------------------

    def save_recovery_points(self, logs: Mapping[Partition, Log]) -> None:
        """Up to where each log is safe.  Regularly, and at the end."""
        self.recovery_points = {key: log.recovery_point for key, log in logs.items()}
        self._guarded(checkpoint.write_offsets, self._path(RECOVERY_POINTS), self.recovery_points)

    def save_log_starts(self, logs: Mapping[Partition, Log]) -> None:
        """Where logs begin, if that is not where their first segment does."""
        self.log_starts = {
            key: log.start_offset
            for key, log in logs.items()
            if log.segments and log.start_offset > log.segments[0].base_offset
        }
        self._guarded(checkpoint.write_offsets, self._path(LOG_STARTS), self.log_starts)

    def save_high_watermarks(self, high_watermarks: Mapping[Partition, int]) -> None:
        """What followers were known to have."""
        self.high_watermarks = dict(high_watermarks)
        self._guarded(checkpoint.write_offsets, self._path(HIGH_WATERMARKS), self.high_watermarks)

    def save_cleaned_to(self, logs: Mapping[Partition, Log]) -> None:
        """How far compaction has been."""
        self.cleaned_to = {
            key: log.clean_offset for key, log in logs.items() if log.config.compact and log.clean_offset
        }
        self._guarded(checkpoint.write_offsets, self._path(CLEANED_TO), self.cleaned_to)

    def _guarded(
        self, write: Callable[[str, Mapping[Partition, int]], None], path: str, offsets: dict[Partition, int]
    ) -> None:
        if self.failed is not None:
            raise self.failed
        try:
            write(path, offsets)
        except OSError as error:
            if not passes(error):
                self.fail(error)
            raise

    def fail_if_gone(self, logs: Iterable[Log] = ()) -> None:
        """What is written where nobody can find it is lost, however well the writing goes; and so is what two brokers
        write at once."""
        if self.failed is not None:
            return
        if not self.is_there():
            self.fail(FileNotFoundError(errno.ENOENT, "it was removed under us", self.path), logs)
            return
        try:
            self._keep_lock()
        except DirectoryInUse:
            self.fail(OSError(errno.EBUSY, "another broker has it, for our lock was removed", self.path), logs)
        except OSError as error:
            if not passes(error):
                self.fail(error, logs)

    def fail(self, error: OSError, logs: Iterable[Log] = ()) -> None:
        """The disk has failed: nothing more is written here, and its logs refuse too."""
        if self.failed is None:
            self.failed = error
            logger.error("%s: goes offline: %s", self.path, error)
        for log in logs:
            log.fail(error)

    def close(self, logs: Mapping[Partition, Log], *, clean: bool, now_ms: int, broker_epoch: int = -1) -> None:
        """Close all logs and let go of the directory.  Only if everything went well is it marked as clean; otherwise
        the next start will check what it finds."""
        try:
            for log in logs.values():
                try:
                    log.close(clean=clean and self.failed is None, now_ms=now_ms)
                except OSError as error:
                    log.fail(error)
            if clean and self.failed is None and not any(log.failed for log in logs.values()):
                self.save_recovery_points(logs)
                self.save_log_starts(logs)
                self.save_cleaned_to(logs)
                marker = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
                replace_file(self._path(CLEAN_SHUTDOWN), marker.encode())
        except OSError as error:
            logger.error("%s: its end is not clean, and it will be checked: %s", self.path, error)
        finally:
            self._release()
