"""The few constructs that Kafka needs and `construct` lacks.

Everything variable in size has two forms on the wire.  The plain form counts in a fixed integer and says
null with -1; the compact form, used by flexible versions, counts in an unsigned varint holding the size
plus one, and says null with 0.

These are the reference: slow, readable, obviously right.  What runs is written out from them by `compile.py`.
"""

import io
from collections.abc import Mapping, Sequence
from typing import Any

import construct as c

from trilogue.wire.limits import ELEMENTS_MAX, STRING_BYTES_MAX, TAGGED_FIELDS_MAX, VARINT_BYTES_MAX


class Refused(c.ConstructError):  # type: ignore[misc]
    """The bytes are not the message they claim to be."""


def left(stream: Any) -> int:
    """How many bytes are still to come."""
    here = stream.tell()
    end = stream.seek(0, io.SEEK_END)
    stream.seek(here)
    return int(end - here)


def read(stream: Any, size: int, path: str) -> bytes:
    if size > left(stream):
        raise Refused(f"{size} bytes declared, {left(stream)} left", path=path)
    return bytes(stream.read(size))


class _UnsignedVarint(c.Construct):  # type: ignore[misc]
    """Seven bits a byte, the lowest first; at most five bytes, so that nobody can make us read for ever."""

    def _parse(self, stream: Any, context: Any, path: str) -> int:
        value = 0
        for place in range(VARINT_BYTES_MAX):
            (byte,) = read(stream, 1, path)
            value |= (byte & 127) << 7 * place
            if byte < 128:
                return value
        raise Refused(f"varint is longer than {VARINT_BYTES_MAX} bytes", path=path)

    def _build(self, obj: int, stream: Any, context: Any, path: str) -> int:
        rest = obj
        while rest > 127:
            stream.write(bytes([rest & 127 | 128]))
            rest >>= 7
        stream.write(bytes([rest]))
        return obj


UnsignedVarint = _UnsignedVarint()
Uuid = c.Bytes(16)


class Sized(c.Construct):  # type: ignore[misc]
    """Something preceded by how much of it there is."""

    counter: c.Construct

    def __init__(self, compact: bool, nullable: bool) -> None:
        super().__init__()
        self.compact, self.nullable = compact, nullable

    def read_count(self, stream: Any, context: Any, path: str) -> int | None:
        if self.compact:
            count = UnsignedVarint._parse(stream, context, path) - 1
        else:
            count = self.counter._parse(stream, context, path)
        if count >= 0:
            return int(count)
        if self.nullable and count == -1:
            return None
        raise Refused(f"size {count} is not allowed here", path=path)

    def write_count(self, count: int | None, stream: Any, context: Any, path: str) -> None:
        if count is None and not self.nullable:
            raise Refused("null is not allowed here", path=path)
        count = -1 if count is None else count
        if self.compact:
            UnsignedVarint._build(count + 1, stream, context, path)
        else:
            self.counter._build(count, stream, context, path)


class Blob(Sized):
    counter = c.Int32sb

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        count = self.read_count(stream, context, path)
        return None if count is None else read(stream, count, path)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        self.write_count(None if obj is None else len(obj), stream, context, path)
        if obj:
            stream.write(obj)
        return obj


class RecordBlob(Blob):
    """Record batches: compiled code leaves them where they are."""


class Text(Blob):
    """Text in UTF-8.  What is not, is replaced as Java does it: a name nobody has, not a broken message."""

    counter = c.Int16sb

    def _parse(self, stream: Any, context: Any, path: str) -> str | None:
        count = self.read_count(stream, context, path)
        if count is None:
            return None
        if count > STRING_BYTES_MAX:
            raise Refused(f"string of {count} bytes; the limit is {STRING_BYTES_MAX}", path=path)
        return str(read(stream, count, path), "utf-8", "replace")

    def _build(self, obj: str | None, stream: Any, context: Any, path: str) -> Any:
        raw = None if obj is None else obj.encode()
        if raw is not None and len(raw) > STRING_BYTES_MAX:
            raise Refused(f"string of {len(raw)} bytes; the limit is {STRING_BYTES_MAX}", path=path)
        super()._build(raw, stream, context, path)
        return obj


class Items(Sized):
    counter = c.Int32sb

    def __init__(self, subcon: c.Construct, compact: bool, nullable: bool) -> None:
        super().__init__(compact, nullable)
        self.subcon = subcon

    def _parse(self, stream: Any, context: Any, path: str) -> list[Any] | None:
        count = self.read_count(stream, context, path)
        if count is None:
            return None
        if count > ELEMENTS_MAX:
            raise Refused(f"{count} elements declared; the limit is {ELEMENTS_MAX}", path=path)
        if count * smallest(self.subcon) > left(stream):
            raise Refused(f"{count} elements declared, {left(stream)} bytes left", path=path)
        return [self.subcon._parse(stream, context, f"{path}[{i}]") for i in range(count)]

    def _build(self, obj: Sequence[Any] | None, stream: Any, context: Any, path: str) -> Any:
        self.write_count(None if obj is None else len(obj), stream, context, path)
        for i, item in enumerate(obj or ()):
            self.subcon._build(item, stream, context, f"{path}[{i}]")
        return obj


class Maybe(c.Subconstruct):  # type: ignore[misc]
    """A struct that may be null.

    Before it stands a signed byte, below zero for null and 1 for present; in a tagged field, an unsigned
    varint, 0 for null and 1 for present.
    """

    def __init__(self, subcon: c.Construct, in_tag: bool) -> None:
        super().__init__(subcon)
        self.in_tag = in_tag

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        mark = UnsignedVarint if self.in_tag else c.Int8sb
        there = mark._parse(stream, context, path)
        return None if (there == 0 and self.in_tag) or there < 0 else self.subcon._parse(stream, context, path)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        null = 0 if self.in_tag else 255
        stream.write(bytes([null if obj is None else 1]))
        if obj is not None:
            self.subcon._build(obj, stream, context, path)
        return obj


class Message(c.Construct):  # type: ignore[misc]
    """construct's own struct of named fields, then, in flexible versions, the tagged ones.

    `cls` is what is made of them; `tagged` is None where there is no tagged section.
    """

    def __init__(self, cls: Any, plain: Sequence[c.Construct], tagged: Mapping[int, c.Construct] | None) -> None:
        super().__init__()
        self.cls, self.plain, self.tagged = cls, c.Struct(*plain), tagged

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        values = self.plain._parse(stream, context, path)
        del values["_io"]  # construct's note of the stream it read from
        if self.tagged is not None:
            values |= self.read_tagged(self.tagged, stream, context, path)
        return self.cls(**values)

    def read_tagged(self, tagged: Mapping[int, c.Construct], stream: Any, context: Any, path: str) -> dict[str, Any]:
        values, last = {}, -1
        count = UnsignedVarint._parse(stream, context, path)
        if count > TAGGED_FIELDS_MAX:
            raise Refused(f"{count} tagged fields; the limit is {TAGGED_FIELDS_MAX}", path=path)
        for _ in range(count):
            tag = UnsignedVarint._parse(stream, context, path)
            if tag <= last:
                raise Refused(f"tag {tag} after tag {last}", path=path)
            last = tag
            body = io.BytesIO(read(stream, UnsignedVarint._parse(stream, context, path), path))
            if f := tagged.get(tag):  # unknown tags are for newer peers: skipped
                values[f.name] = f._parse(body, context, path)
                if left(body):
                    raise Refused(f"{left(body)} bytes too many", path=f"{path} -> {f.name}")
        return values

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        self.plain._build({f.name: getattr(obj, f.name) for f in self.plain.subcons}, stream, context, path)
        if self.tagged is not None:
            said = [
                (tag, f)
                for tag, f in sorted(self.tagged.items())
                if getattr(obj, f.name) != self.cls.fields[f.name].make_default()
            ]
            UnsignedVarint._build(len(said), stream, context, path)
            for tag, f in said:
                body = io.BytesIO()
                f._build(getattr(obj, f.name), body, context, path)
                UnsignedVarint._build(tag, stream, context, path)
                UnsignedVarint._build(len(body.getvalue()), stream, context, path)
                stream.write(body.getvalue())
        return obj


def smallest(con: c.Construct) -> int:
    """The fewest bytes that this construct can take: what bounds a declared count by the bytes left."""
    match con:
        case c.Renamed():
            return smallest(con.subcon)
        case Sized():
            return 1 if con.compact else int(con.counter.sizeof())
        case Maybe():
            return 1
        case Message():
            return sum(smallest(f) for f in con.plain.subcons) + (con.tagged is not None)
    return int(con.sizeof())
