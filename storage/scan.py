"""Walking over the batches of a file, with bounded memory.

`headers` hops from header to header, `batches` also brings what lies between.  Both trust nothing: they stop,
with `Damaged`, where the bytes do not make sense.  Neither looks at checksums; recovery does.  A walk holds the
file open: it may be put to sleep, renamed or removed meanwhile."""

from collections.abc import Iterator

from trilogue.storage import system
from trilogue.storage.files import Handle
from trilogue.wire.errors import MalformedMessage
from trilogue.wire.records import HEADER_SIZE, Batch, Header, read_header

CHUNK = 1 << 20
"""What `batches` reads at once; a larger batch is read whole, whatever it takes (the log has accepted it)."""
HOP = 8192
"""What `headers` reads at once: more than the index's interval, so that a look-up takes one read as a
rule."""


class Damaged(Exception):
    """From `position` on the file does not hold batches."""

    def __init__(self, position: int, problem: str) -> None:
        super().__init__(position, problem)
        self.position, self.problem = position, problem

    def __str__(self) -> str:
        return f"{self.problem} at position {self.position}"


def headers(handle: Handle, position: int, end: int) -> Iterator[tuple[int, Header]]:
    """(position, header) of every batch that begins between `position` and `end`; the last one lies whole
    before it."""
    data = b""
    origin = position
    while position < end:
        at = position - origin
        if at + HEADER_SIZE > len(data):
            data, origin, at = system.pread(handle.fd, min(HOP, end - position), position), position, 0
        try:
            header = read_header(data, at)
        except MalformedMessage as problem:
            raise Damaged(position, str(problem)) from None
        if header.size > end - position:
            raise Damaged(position, f"a batch of {header.size} bytes, {end - position} left")
        yield position, header
        position += header.size


def batches(handle: Handle, position: int, end: int) -> Iterator[tuple[int, Batch]]:
    """(position, batch) of every batch between `position` and `end`.  A batch is valid until the next is
    asked for."""
    buffer = bytearray(min(CHUNK, max(end - position, 0)))
    view = memoryview(buffer)
    at = filled = 0
    while position < end:
        header = None
        if filled - at >= HEADER_SIZE:
            header = _header(view, at, position)
        if header is None or filled - at < header.size:
            needed = header.size if header else HEADER_SIZE
            if needed > end - position:
                raise Damaged(position, f"a batch of {needed} bytes or more, {end - position} left")
            if needed > len(view):
                buffer = bytearray(needed)
                view = memoryview(buffer)
            filled, at = _fill(handle, view, position, end), 0
            if filled < needed:
                raise Damaged(position, f"a batch of {needed} bytes or more, {filled} left")
            header = _header(view, 0, position)
            if filled < header.size:
                continue
        yield position, Batch(header, view[at : at + header.size])
        at += header.size
        position += header.size


def _header(view: memoryview, at: int, position: int) -> Header:
    try:
        return read_header(view, at)
    except MalformedMessage as problem:
        raise Damaged(position, str(problem)) from None


def _fill(handle: Handle, view: memoryview, position: int, end: int) -> int:
    filled, wanted = 0, min(len(view), end - position)
    while filled < wanted and (got := system.preadv(handle.fd, [view[filled:wanted]], position + filled)):
        filled += got
    return filled
