"""What generated code calls when a value is not of the common kind, and how its errors get their path.

A generated line that fails is found by its number: `places` says which field each line reads or writes,
and the loop variables of the failed frame say which element.  So a path costs nothing until it is needed.
"""

import struct
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple, NoReturn

from trilogue.wire.errors import MalformedMessage
from trilogue.wire.limits import ELEMENTS_MAX, STRING_BYTES_MAX, TAGGED_FIELDS_MAX, VARINT_BYTES_MAX

UNREADABLE = (struct.error, IndexError, MalformedMessage)
UNWRITABLE = (struct.error, AttributeError, TypeError, ValueError)

BUFFERS = (bytes, bytearray, memoryview)
COPIED_MAX = 4096
"""Records up to this size are copied into the message; larger ones go out by reference."""
CACHED_LENGTHS = 256
"""Arrays of numbers up to this length keep their `struct` object; longer ones make one each time."""


class Place(NamedTuple):
    """What a generated line is about: paths with the names of loop variables in braces, and their sizes."""

    fields: tuple[tuple[str, int], ...]


# -- reading ---------------------------------------------------------------------------------------


def uvarint(buf: memoryview, at: int) -> tuple[int, int]:
    first = buf[at]
    return (first, at + 1) if first < 128 else more(buf, at + 1, first)


def more(buf: memoryview, at: int, first: int) -> tuple[int, int]:
    """The rest of a varint that did not end with its first byte.  Two or three bytes are the usual."""
    second = buf[at]
    if second < 128:
        return first & 127 | second << 7, at + 1
    third = buf[at + 1]
    if third < 128:
        return first & 127 | (second & 127) << 7 | third << 14, at + 2
    value, shift, at = first & 127 | (second & 127) << 7 | (third & 127) << 14, 21, at + 2
    while shift < 7 * VARINT_BYTES_MAX:
        byte = buf[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise MalformedMessage(f"varint is longer than {VARINT_BYTES_MAX} bytes")


def short(size: int, left: int) -> NoReturn:
    if size < 0:
        bad_size(size)
    raise MalformedMessage(f"{size} bytes declared, {left} left")


def few(count: int, left: int) -> NoReturn:
    if count < 0:
        bad_size(count)
    if count > ELEMENTS_MAX:
        raise MalformedMessage(f"{count} elements declared; the limit is {ELEMENTS_MAX}")
    raise MalformedMessage(f"{count} elements declared, {left} bytes left")


def bad_size(size: int) -> NoReturn:
    raise MalformedMessage(f"size {size} is not allowed here")


def long_string(size: int) -> NoReturn:
    raise MalformedMessage(f"string of {size} bytes; the limit is {STRING_BYTES_MAX}")


def read_tag(buf: memoryview, at: int, last: int) -> tuple[int, int, int]:
    """The head of a tagged field: its tag, where its body begins, and where that ends."""
    tag, at = uvarint(buf, at)
    size, at = uvarint(buf, at)
    if tag <= last:
        raise MalformedMessage(f"tag {tag} after tag {last}")
    if size > len(buf) - at:
        raise MalformedMessage(f"tag {tag}: {size} bytes declared, {len(buf) - at} left")
    return tag, at, at + size


def tag_count(buf: memoryview, at: int, first: int) -> tuple[int, int]:
    count, at = (first, at) if first < 128 else more(buf, at, first)
    if count > TAGGED_FIELDS_MAX:
        raise MalformedMessage(f"{count} tagged fields; the limit is {TAGGED_FIELDS_MAX}")
    return count, at


def skip_tags(buf: memoryview, at: int, first: int) -> int:
    """Where the fields end that only newer peers know."""
    count, at = tag_count(buf, at, first)
    last = -1
    for _ in range(count):
        last, _, at = read_tag(buf, at, last)
    return at


def ragged(rest: int) -> NoReturn:
    raise MalformedMessage(f"{abs(rest)} bytes too {'many' if rest > 0 else 'few'} for its tagged field")


# -- writing ---------------------------------------------------------------------------------------


def put_uvarint(value: int, out: bytearray) -> None:
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def put_string_size(size_plus_one: int, out: bytearray) -> None:
    if size_plus_one > STRING_BYTES_MAX + 1:
        raise ValueError(f"string of {size_plus_one - 1} bytes; the limit is {STRING_BYTES_MAX}")
    put_uvarint(size_plus_one, out)


def put_tags(fields: list[tuple[int, bytearray]], out: bytearray) -> None:
    put_uvarint(len(fields), out)
    for tag, body in fields:
        put_uvarint(tag, out)
        put_uvarint(len(body), out)
        out += body


def sixteen(value: bytes) -> bytes:
    """`struct` would pad or cut in silence."""
    if len(value) != 16:
        raise ValueError(f"an id of {len(value)} bytes, not 16")
    return value


class Many(dict[int, Callable[..., Any]]):
    """`struct` functions for n numbers of one kind; made when first asked for."""

    def __init__(self, code: str, function: str) -> None:
        super().__init__()
        self.code, self.function = code, function

    def __missing__(self, n: int) -> Callable[..., Any]:
        made: Callable[..., Any] = getattr(struct.Struct(">" + self.code * n), self.function)
        if n <= CACHED_LENGTHS:
            self[n] = made
        return made


@cache
def reads(code: str) -> Many:
    return Many(code, "unpack_from")


@cache
def writes(code: str) -> Many:
    return Many(code, "pack")


# -- explaining ------------------------------------------------------------------------------------


def unreadable(
    error: Exception, message: str, places: Mapping[int, Place], frame: Mapping[str, Any]
) -> MalformedMessage:
    """The same failure, with the path of the field that was being read."""
    fields = places[line_of(error)].fields
    if isinstance(error, MalformedMessage):
        return MalformedMessage(error.problem, f"{message}: {fields[-1][0].format_map(frame)}".rstrip(": "))
    # The bytes end somewhere in a run of neighbours that are read together: it is the first that lacks any.
    rest = max(0, len(frame["buf"]) - frame["at"])
    for template, size in fields:
        if size > rest:
            path = template.format_map(frame)
            return MalformedMessage(f"{size} bytes needed, {rest} left", f"{message}: {path}")
        rest -= size
    path = fields[-1][0].format_map(frame)
    return MalformedMessage("the bytes end inside of a varint", f"{message}: {path}")


def unwritable(error: Exception, message: str, places: Mapping[int, Place], frame: Mapping[str, Any]) -> ValueError:
    """A message that cannot be written is a bug of its maker's: it hears where and why."""
    paths = [path.format_map(Indices(frame)) for path, _ in places[line_of(error)].fields]
    return ValueError(f"{message}: {' or '.join(paths)}: {error}")


class Indices(dict[str, int]):
    """While writing, a loop has no counter: the element is looked up in its list, by identity."""

    def __missing__(self, name: str) -> Any:
        return "?"

    def __init__(self, frame: Mapping[str, Any]) -> None:
        super().__init__()
        for name, item in frame.items():
            if name.startswith("item"):
                siblings = frame.get(f"list{name[4:]}") or ()
                self[f"i{name[4:]}"] = next((i for i, each in enumerate(siblings) if each is item), -1)


def line_of(error: Exception) -> int:
    assert error.__traceback__ is not None
    return error.__traceback__.tb_lineno
