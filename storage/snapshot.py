"""The .snapshot files: what is known about producers at an offset, so that opening need not read the whole
log.

Version 1 of Kafka's ProducerSnapshot, its checksum over all that follows it."""

from collections.abc import Iterable
from struct import Struct
from struct import error as StructError

from trilogue.storage.checkpoint import DamagedFile
from trilogue.storage.files import replace_file
from trilogue.storage.producers import SEQUENCE_MASK, Appended, Producer
from trilogue.wire import records

VERSION = 1
_HEAD = Struct(">hI")
_COUNT = Struct(">i")
_ENTRY = Struct(">qhiqiqiq")


def render(producers: Iterable[Producer]) -> bytes:
    """The content of a snapshot.  Of each producer's batches only the last is kept: that is the format."""
    entries = [
        _ENTRY.pack(
            known.id,
            known.epoch,
            known.last_sequence,
            known.last_offset,
            known.batches[-1].last_offset - known.batches[-1].first_offset if known.batches else 0,
            known.last_timestamp,
            known.coordinator_epoch,
            known.transaction_start,
        )
        for known in producers
    ]
    body = _COUNT.pack(len(entries)) + b"".join(entries)
    return _HEAD.pack(VERSION, records.checksum(memoryview(body))) + body


def parse(content: bytes) -> list[Producer]:
    """The producers of a snapshot.  Raises `DamagedFile`."""
    try:
        version, crc = _HEAD.unpack_from(content)
        (count,) = _COUNT.unpack_from(content, _HEAD.size)
    except StructError as error:
        raise DamagedFile(str(error)) from None
    body = content[_HEAD.size :]
    if version != VERSION or len(body) != _COUNT.size + count * _ENTRY.size:
        raise DamagedFile(f"version {version}, {count} producers, {len(content)} bytes")
    if crc != records.checksum(memoryview(body)):
        raise DamagedFile("the checksum is wrong")
    return [_producer(*fields) for fields in _ENTRY.iter_unpack(body[_COUNT.size :])]


def write(path: str, producers: Iterable[Producer]) -> None:
    """Write a snapshot; its name says the offset it was taken at."""
    replace_file(path, render(producers))


def _producer(
    producer_id: int,
    epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp: int,
    coordinator_epoch: int,
    transaction_start: int,
) -> Producer:
    known = Producer(producer_id, epoch)
    known.coordinator_epoch = coordinator_epoch
    known.last_timestamp = timestamp
    known.transaction_start = transaction_start
    if last_offset >= 0:
        known.next_sequence = last_sequence + 1 & SEQUENCE_MASK
        first_sequence = (last_sequence - offset_delta) & SEQUENCE_MASK if last_sequence >= 0 else last_sequence
        known.batches.append(
            Appended(first_sequence, last_sequence, last_offset - offset_delta, last_offset, timestamp)
        )
    return known
