"""One message to bytes and back, whole: for whoever has no stream."""

from typing import Any, TypeVar

from trilogue.wire.errors import MalformedMessage
from trilogue.wire.schema import Body

B = TypeVar("B", bound=Body)


def parse(message: type[B], version: int, data: bytes | bytearray | memoryview) -> B:
    """The message in these bytes.  Bytes left over are refused."""
    from trilogue.wire.compile import codec

    view = memoryview(data)
    it, at = codec(message, version).decode(view, 0)
    if at != len(view):
        raise MalformedMessage(f"{len(view) - at} bytes too many", f"{message.__name__} v{version}")
    return it  # type: ignore[no-any-return]


def build(it: Body, version: int) -> bytes:
    """The bytes of a message whose records, if it has any, are buffers."""
    from trilogue.wire.compile import codec

    out = bytearray()
    parts: list[tuple[int, Any]] = []
    codec(type(it), version).encode(it, out, parts)
    return b"".join(interleave(out, parts))


def interleave(out: bytearray, parts: list[tuple[int, Any]]) -> list[Any]:
    """Put the records that were not copied where they belong among the bytes."""
    if not parts:
        return [out]
    view, done, whole = memoryview(out), 0, []
    for at, part in parts:
        whole += [view[done:at], part]
        done = at
    return [*whole, view[done:]]
