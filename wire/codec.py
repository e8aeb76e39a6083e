"""One message to bytes and back, whole; and the codecs that were made so far."""

from typing import TYPE_CHECKING, Any, TypeVar

from trilogue.wire.errors import MalformedMessage
from trilogue.wire.schema import Body

if TYPE_CHECKING:
    from trilogue.wire.compile import Codec

B = TypeVar("B", bound=Body)

_made: dict[tuple[type[Body], int], "Codec"] = {}


def codec(message: type[Body], version: int) -> "Codec":
    """What reads and writes one version of a message.

    construct is loaded with the first codec that is made, not before; to ask for the import in every call instead, as
    whoever needs a codec once may do, costs as much as reading a small message.
    """
    try:
        return _made[message, version]
    except KeyError:
        from trilogue.wire.compile import codec as make

        return _made.setdefault((message, version), make(message, version))


def parse(message: type[B], version: int, data: bytes | bytearray | memoryview) -> B:
    """The message in these bytes.  Bytes left over are refused."""
    view = memoryview(data)
    it, at = codec(message, version).decode(view, 0)
    if at != len(view):
        raise MalformedMessage(f"{len(view) - at} bytes too many", f"{message.__name__} v{version}")
    return it  # type: ignore[no-any-return]


def build(it: Body, version: int) -> bytes:
    """The bytes of a message whose records, if it has any, are buffers."""
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
