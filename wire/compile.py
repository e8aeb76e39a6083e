"""Straight-line codecs, written out from the construct trees.

A construct tree is the reference: slow, readable, obviously right.  From the same tree the code is written
that a patient person would write for one version of one message: no dispatch, no conditions but those the
bytes ask for.  The tests hold the two equal, on every message in every version.

A codec is made when it is first asked for: all of the protocol would take seconds.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from trilogue.wire.emit import Source
from trilogue.wire.reading import Reader
from trilogue.wire.schema import Body
from trilogue.wire.trees import tree
from trilogue.wire.writing import Writer


class Codec(NamedTuple):
    decode: Callable[[memoryview, int], tuple[Any, int]]
    encode: Callable[[Any, bytearray, list[tuple[int, Any]]], None]
    source: str


@cache
def codec(message: type[Body], version: int) -> Codec:
    """What reads and writes one version of a message."""
    title, con = f"{message.__name__} v{version}", tree(message, version)
    reading, writing = Source(), Source()
    Reader(reading).function(con, title)
    Writer(writing).function(con, title)
    return Codec(
        made(reading, "decode", f"<reads {title}>"),
        made(writing, "encode", f"<writes {title}>"),
        reading.text() + "\n\n" + writing.text(),
    )


def made(source: Source, function: str, filename: str) -> Any:
    exec(compile(source.text(), filename, "exec"), source.names)
    return source.names[function]
