"""Knowing again who had written what, from the batches themselves.

Producer state cannot be wound back, so after a truncation or a crash it is read again: from the last snapshot
that is not past the end, and from the batches after it."""

import os

from trilogue.storage import names, snapshot
from trilogue.storage.aborted import AbortedTransaction
from trilogue.storage.checkpoint import DamagedFile
from trilogue.storage.config import LogConfig
from trilogue.storage.files import read_file, unlink_if_there
from trilogue.storage.producers import Producers
from trilogue.storage.segment import Segment
from trilogue.wire.records import EndTransaction, Header, end_transaction


def take_over(producers: Producers, header: Header, marker: EndTransaction | None) -> AbortedTransaction | None:
    """Note what a batch says about its producer.  Returns what belongs into the index of aborted
    transactions."""
    if not header.control:
        producers.appended(
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            header.last_sequence,
            header.base_offset,
            header.last_offset,
            header.max_timestamp,
            header.transactional,
        )
        return None
    if marker is None:
        return None
    return producers.ended(header.producer_id, header.producer_epoch, marker, header.base_offset, header.max_timestamp)


def producers_at(
    folder: str, segments: list[Segment], snapshots: list[int], end_offset: int, config: LogConfig, now_ms: int
) -> tuple[Producers, list[str]]:
    """The producers as of `end_offset`, and what was odd about the snapshots.  Those of no use are deleted,
    also from the list."""
    notes: list[str] = []
    producers = Producers()
    for taken_at in sorted(snapshots, reverse=True):
        path = os.path.join(folder, names.numbered(taken_at, names.SNAPSHOT))
        if taken_at <= end_offset:
            try:
                _restore(producers, path, config, now_ms)
                producers.end_offset = taken_at
                break
            except DamagedFile as damage:
                notes.append(f"producer snapshot {taken_at} is damaged ({damage})")
        unlink_if_there(path)
        snapshots.remove(taken_at)
    for number, segment in enumerate(segments):
        follows = number + 1 < len(segments)
        if follows and segments[number + 1].base_offset <= producers.end_offset:
            continue
        if segment.base_offset >= end_offset:
            break
        _read(producers, segment, end_offset)
    producers.end_offset = end_offset
    return producers, notes


def _restore(producers: Producers, path: str, config: LogConfig, now_ms: int) -> None:
    content = read_file(path)
    if content is None:
        raise DamagedFile("it is gone")
    for known in snapshot.parse(content):
        if known.transaction_start >= 0 or now_ms - known.last_timestamp < config.producer_id_expiration_ms:
            producers.restore(known)


def _read(producers: Producers, segment: Segment, end_offset: int) -> None:
    found = segment.find(producers.end_offset)
    if found is None:
        return
    for position, header in segment.headers(found[0]):
        if header.base_offset >= end_offset:
            return
        if header.producer_id >= 0:
            marker = end_transaction(next(segment.batches(position))[1]) if header.control else None
            take_over(producers, header, marker)
