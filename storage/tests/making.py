"""What the tests of the log make their stories of."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from trilogue.storage.config import LogConfig
from trilogue.storage.log import AppendResult, Log
from trilogue.storage.producers import Origin
from trilogue.wire.compression import Codec
from trilogue.wire.records import Batch, Record, build, end_transaction_marker

NOW = 1_700_000_000_000


def batch(*values: bytes | None, key: bytes | None = b"k", timestamp: int = NOW, **fields: Any) -> memoryview:
    """A batch as a producer sends it; one record per value, a millisecond apart."""
    return memoryview(
        build([Record(number, timestamp + number, key, value) for number, value in enumerate(values)], **fields)
    )


def keyed(pairs: Iterable[tuple[bytes, bytes | None]], timestamp: int = NOW, **fields: Any) -> memoryview:
    """A batch of these keys and values."""
    return memoryview(
        build([Record(number, timestamp, key, value) for number, (key, value) in enumerate(pairs)], **fields)
    )


def opened(path: Path, *, clean: bool = False, recovery_point: int = 0, now_ms: int = NOW, **settings: Any) -> Log:
    """The log in `path`, which need not exist."""
    return Log.open(path, LogConfig(**settings), now_ms, clean=clean, recovery_point=recovery_point)


def append(log: Log, *values: bytes | None, epoch: int = 0, now_ms: int = NOW, **fields: Any) -> AppendResult:
    """Append one batch as the leader."""
    return log.append_as_leader(batch(*values, **fields), leader_epoch=epoch, now_ms=now_ms)


def idempotent(
    log: Log, sequence: int, *values: bytes, producer: int = 7, epoch: int = 0, transactional: bool = False, **more: Any
) -> AppendResult:
    """Append one batch of a producer with an id."""
    sent = batch(
        *values, producer_id=producer, producer_epoch=epoch, base_sequence=sequence, transactional=transactional
    )
    return log.append_as_leader(sent, leader_epoch=0, now_ms=NOW, **more)


def end(
    log: Log, commit: bool, *, producer: int = 7, epoch: int = 0, coordinator_epoch: int = 0, version: int = 1
) -> AppendResult:
    """Append the marker that ends a producer's transaction."""
    marker = end_transaction_marker(commit, coordinator_epoch, producer, epoch, NOW)
    return log.append_as_leader(
        memoryview(marker), leader_epoch=0, now_ms=NOW, origin=Origin.COORDINATOR, transaction_version=version
    )


def records(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    """(offset, key, value) of all that is in the log from its start on; markers are left out."""
    return [
        (record.offset, _copy(record.key), _copy(record.value))
        for found in log.batches(log.start_offset)
        if not found.header.control
        for record in found.records()
        if record.offset >= log.start_offset
    ]


def values(log: Log) -> list[bytes | None]:
    """The values of all records."""
    return [value for _, _, value in records(log)]


def kept(found: Batch) -> bytes:
    """The bytes of a batch, to keep."""
    return bytes(found.view)


def _copy(data: bytes | bytearray | memoryview | None) -> bytes | None:
    return None if data is None else bytes(data)


__all__ = ["NOW", "Codec", "append", "batch", "end", "idempotent", "kept", "keyed", "opened", "records", "values"]
