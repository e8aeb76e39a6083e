"""A partition's folder as it is found: what is in it, and what has no business there.

A crash leaves files half-way: being deleted (.deleted), being compacted (.cleaned), being swapped in (.swap),
being replaced (.tmp).  The first, second and last go; a swap is finished."""

import os
from dataclasses import dataclass, field

from trilogue.storage import names, system
from trilogue.storage.files import OpenFiles, unlink_if_there
from trilogue.storage.scan import Damaged
from trilogue.storage.segment import Segment


@dataclass(slots=True)
class Folder:
    """The files of a partition, after tidying up."""

    segments: list[Segment] = field(default_factory=list)
    snapshots: list[int] = field(default_factory=list)
    lost_indexes: list[Segment] = field(default_factory=list)
    """Segments whose indexes are missing or cannot be what they claim to be."""
    notes: list[str] = field(default_factory=list)


def read_folder(path: str, pool: OpenFiles) -> Folder | None:
    """What is in the folder; None if there is no such folder."""
    found = Folder()
    try:
        sizes, changed_ms = _tidy(path, pool, found)
    except FileNotFoundError:
        return None
    for base in sorted(sizes):
        files = sizes[base]
        if names.SNAPSHOT in files:
            found.snapshots.append(base)
        if names.LOG not in files:
            for kind in files.keys() & set(names.SEGMENT_FILES):
                unlink_if_there(os.path.join(path, names.numbered(base, kind)))
                found.notes.append(f"an orphaned {kind} of {base} went")
            continue
        segment = Segment(path, base, pool, created_ms=changed_ms[base], sizes=files)
        found.segments.append(segment)
        if not _indexes_plausible(files):
            found.lost_indexes.append(segment)
    return found


def _tidy(path: str, pool: OpenFiles, found: Folder) -> tuple[dict[int, dict[str, int]], dict[int, int]]:
    sizes: dict[int, dict[str, int]] = {}
    changed_ms: dict[int, int] = {}
    swapped: set[int] = set()
    with os.scandir(path) as entries:
        for entry in entries:
            name = entry.name
            base = names.offset_of(name)
            if name.endswith((names.DELETED, names.CLEANED, ".tmp")):
                system.unlink(entry.path)
            elif base is None:
                continue
            elif name.endswith(names.SWAP):
                swapped.add(base)
            else:
                status = entry.stat()
                kind = name[20:]
                sizes.setdefault(base, {})[kind] = status.st_size
                if kind == names.LOG:
                    changed_ms[base] = status.st_mtime_ns // 1_000_000
    if swapped:
        for base in swapped:
            _finish_swap(path, base, sorted(sizes), pool, found)
        system.sync_directory(path)
        return _tidy(path, pool, found)
    return sizes, changed_ms


def _finish_swap(path: str, base: int, bases: list[int], pool: OpenFiles, found: Folder) -> None:
    """A compacted segment takes the place of those it was made of: all that begin inside it."""
    swap = os.path.join(path, names.numbered(base, names.LOG) + names.SWAP)
    if os.path.exists(swap):
        segment = Segment(path, base, pool, created_ms=0, suffix=names.SWAP)
        segment.size = os.stat(swap).st_size
        try:
            end = segment.end()
        except Damaged:
            end = base + 1
        segment.sleep()
        for other in bases:
            if base < other < end:
                for kind in names.SEGMENT_FILES:
                    unlink_if_there(os.path.join(path, names.numbered(other, kind)))
        found.notes.append(f"the compaction of {base} was completed")
    for kind in (*names.SEGMENT_FILES[1:], names.LOG):
        target = os.path.join(path, names.numbered(base, kind))
        if os.path.exists(target + names.SWAP):
            system.rename(target + names.SWAP, target)


def _indexes_plausible(files: dict[str, int]) -> bool:
    index, timeindex = files.get(names.INDEX), files.get(names.TIMEINDEX)
    return index is not None and timeindex is not None and index % 8 == 0 and timeindex % 12 == 0
