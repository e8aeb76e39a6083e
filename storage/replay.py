"""Knowing again who had written what, from the batches themselves.

Producer state cannot be wound back, so after a truncation or a crash it is read again: from the last snapshot
that is not past the end, and from the batches after it.

Of each producer's batches a snapshot has the last only, which is Kafka's format.  Five may be in flight, and whoever
has heard nothing of them sends all five again: so those before the last are read from the log, as far as anybody may
still send them.  Apache Kafka does not, and refuses the first of them as out of order."""

import os
from collections import deque
from collections.abc import Iterator, Sequence

from trilogue.storage import names, snapshot
from trilogue.storage.aborted import AbortedTransaction
from trilogue.storage.checkpoint import DamagedFile
from trilogue.storage.config import LogConfig
from trilogue.storage.files import read_file, unlink_if_there
from trilogue.storage.producers import REMEMBERED_BATCHES, Appended, Producers
from trilogue.storage.scan import Damaged
from trilogue.storage.segment import Segment
from trilogue.wire.records import EndTransaction, Header, end_transaction

RECALL_BYTES = 1 << 20
"""So much before a snapshot is read: mostly all that was in flight, in well under a millisecond for each producer."""

RECALL_MS = 600_000
"""Who was silent for so long has given up what he had in flight: producers do so after two minutes."""


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
                _recall(producers, segments, taken_at, now_ms)
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


def _recall(producers: Producers, segments: Sequence[Segment], taken_at: int, now_ms: int) -> None:
    """The batches before the last of each producer.  What cannot be read is not known: others find the damage."""
    wanted = {known.id: known for known in producers if known.batches and now_ms - known.last_timestamp < RECALL_MS}
    found: dict[int, deque[Appended]] = {each: deque(maxlen=REMEMBERED_BATCHES) for each in wanted}
    if not wanted:
        return
    try:
        for header in _headers_before(segments, taken_at):
            known = wanted.get(header.producer_id)
            if known is not None and header.producer_epoch == known.epoch and not header.control:
                found[known.id].append(
                    Appended(
                        header.base_sequence,
                        header.last_sequence,
                        header.base_offset,
                        header.last_offset,
                        header.max_timestamp,
                    )
                )
    except Damaged:
        return
    for producer_id, batches in found.items():
        known = wanted[producer_id]
        if batches and batches[-1][1:4:2] == (known.last_sequence, known.last_offset):
            known.batches = batches


def _headers_before(segments: Sequence[Segment], offset: int) -> Iterator[Header]:
    """Of the batches before an offset, as many as lie in the last few bytes."""
    before = [each for each in segments if each.base_offset < offset]
    left, first = RECALL_BYTES, len(before)
    while first and left > 0:
        first -= 1
        left -= before[first].size
    for segment in before[first:]:
        position = 0
        if left < 0 and segment is before[first] and (begin := _entry_at(segment, -left)) is not None:
            place = segment.find(begin)
            position = place[0] if place is not None else 0
        for _, header in segment.headers(position):
            if header.base_offset >= offset:
                return
            yield header


def _entry_at(segment: Segment, position: int) -> int | None:
    """An offset that the index knows, of a batch that begins at or before there; None if it is the first."""
    index = segment.index
    low, high = 0, index.count
    while low < high:
        middle = (low + high) // 2
        if index.at(middle)[1] <= position:
            low = middle + 1
        else:
            high = middle
    return segment.base_offset + index.at(low - 1)[0] if low else None


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
