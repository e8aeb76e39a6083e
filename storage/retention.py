"""Which segments have outlived their time.  Pure but for reading timestamps.

Segments go from the oldest on, and the first that stays keeps all after it.  None goes that holds anything at
or above the high watermark: followers may still need it, and a new leader may lack it."""

from collections.abc import Callable

from trilogue.storage.config import LogConfig
from trilogue.storage.segment import Segment

Wanted = Callable[[Segment, int], bool]


def expired(
    segments: list[Segment],
    config: LogConfig,
    now_ms: int,
    high_watermark: int,
    start_offset: int,
    end_offset: int,
) -> int:
    """How many of the oldest segments may go.  All of them, if even the active one is too old; an empty one
    stays."""
    doomed = 0
    excess = sum(segment.size for segment in segments) - config.retention_bytes
    for number, segment in enumerate(segments):
        last = number + 1 == len(segments)
        following = end_offset if last else segments[number + 1].base_offset
        if following > high_watermark or (last and not segment.size):
            break
        below_start = not last and following <= start_offset
        too_old = config.delete and config.retention_ms >= 0 and _age(segment, now_ms) > config.retention_ms
        too_much = config.delete and config.retention_bytes >= 0 and excess - segment.size >= 0
        if not (below_start or too_old or too_much):
            break
        excess -= segment.size
        doomed += 1
    return doomed


def _age(segment: Segment, now_ms: int) -> int:
    """Of its newest record; of the file where records carry no time."""
    newest = segment.time()[0]
    return now_ms - (newest if newest >= 0 else segment.created_ms)
