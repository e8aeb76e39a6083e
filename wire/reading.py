"""Writes the half of a codec that reads.

Neighbours of fixed size are read in one `struct` call, together with the first byte of the size that
follows them; nested structs are written out in place; strings become `str`, records stay views.
"""

import struct
from collections.abc import Callable, Mapping
from typing import Any

import construct as c

from trilogue.wire import runtime
from trilogue.wire.constructs import Blob, Items, Maybe, Message, RecordBlob, Sized, Text, smallest
from trilogue.wire.emit import Source, fixed_format, literal
from trilogue.wire.limits import ELEMENTS_MAX, STRING_BYTES_MAX


class Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.run: list[tuple[str, str, str]] = []  # variable, struct code, path: to be read together
        for helper in ("uvarint", "more", "short", "few", "long_string", "ragged"):
            source.names[helper] = getattr(runtime, helper)
        for helper in ("read_tag", "tag_count", "skip_tags", "unreadable", "UNREADABLE"):
            source.names[helper] = getattr(runtime, helper)

    def function(self, con: Message, title: str) -> None:
        """`decode(buf, at)` answers the message and where it ended."""
        source = self.source
        source.names["READ"] = source.places
        with source.block("def decode(buf, at):"):
            source.add("end = len(buf)")
            with source.block("try:"):
                it = self.value(con, "")
                self.flush()
                source.add(f"return {it}, at")
            with source.block("except UNREADABLE as error:"):
                source.add(f"raise unreadable(error, {title!r}, READ, locals()) from None")

    def value(self, con: c.Construct, path: str) -> str:
        """Emit what reads this construct; answer the expression that holds it."""
        code = fixed_format(con)
        if code is not None:
            variable = self.source.fresh("v")
            self.run.append((variable, code, path))
            return variable
        match con:
            case Message():
                return self.message(con, path)
            case Maybe():
                return self.maybe(con, path)
            case Items():
                return self.sized(con, path, self.items)
            case Text():
                return self.sized(con, path, self.text)
            case RecordBlob():
                return self.sized(con, path, self.view)
            case Blob():
                return self.sized(con, path, self.copy)
        raise TypeError(f"{path}: no way to read {con!r}")

    def flush(self) -> None:
        """Read the run."""
        if not self.run:
            return
        packer = struct.Struct(">" + "".join(code for _, code, _ in self.run))
        unpack = self.source.name(packer.unpack_from, "unpack")
        targets = "".join(f"{variable}, " for variable, _, _ in self.run)
        about = [(path, struct.calcsize(">" + code)) for _, code, path in self.run]
        if len(self.run) == 1 and self.run[0][1] == "B":
            self.source.add(f"{self.run[0][0]} = buf[at]", *about)
        else:
            self.source.add(f"{targets}= {unpack}(buf, at)", *about)
        self.source.add(f"at += {packer.size}")
        self.run.clear()

    # -- sizes ---------------------------------------------------------------------------------

    def sized(self, con: Sized, path: str, body: Callable[[Any, str, str, str], None]) -> str:
        """A size, null where that is allowed, and then the body of that size.

        A size below zero is found by the body, with the same comparison that finds one too large.
        """
        source, here = self.source, (path, 1)
        size, into = source.fresh("n"), source.fresh("v")
        self.run.append((size, "B" if con.compact else str(con.counter.fmtstr[1:]), path))
        self.flush()
        if con.compact:
            with source.block(f"if {size} > 127:", here):
                source.add(f"{size}, at = more(buf, at, {size})", here)
                if isinstance(con, Text):
                    source.add(f"if {size} > {STRING_BYTES_MAX + 1}: long_string({size} - 1)", here)
                if isinstance(con, Items):
                    source.add(f"if {size} > {ELEMENTS_MAX + 1}: few({size} - 1, end - at)", here)
        if con.nullable:
            with source.block(f"if not {size}:" if con.compact else f"if {size} == -1:"):
                source.add(f"{into} = None")
            with source.block("else:"):
                body(con, size, into, path)
        else:
            body(con, size, into, path)
        return into

    def stop(self, con: Sized, size: str, path: str) -> str:
        stop, count = self.source.fresh("stop"), f"{size} - 1" if con.compact else size
        self.source.add(f"{stop} = at + {count}")
        self.source.add(f"if not at <= {stop} <= end: short({count}, end - at)", (path, 0))
        return stop

    def text(self, con: Sized, size: str, into: str, path: str) -> None:
        stop = self.stop(con, size, path)
        self.source.add(f"{into} = buf[at:{stop}].tobytes().decode('utf-8', 'replace')")
        self.source.add(f"at = {stop}")

    def view(self, con: Sized, size: str, into: str, path: str) -> None:
        stop = self.stop(con, size, path)
        self.source.add(f"{into} = buf[at:{stop}]")
        self.source.add(f"at = {stop}")

    def copy(self, con: Sized, size: str, into: str, path: str) -> None:
        stop = self.stop(con, size, path)
        self.source.add(f"{into} = buf[at:{stop}].tobytes()")
        self.source.add(f"at = {stop}")

    def items(self, con: Items, size: str, into: str, path: str) -> None:
        source, each = self.source, smallest(con.subcon)
        if con.compact:
            n, needed = f"{size} - 1", f"{size} * {each} - {each}"
        else:
            n, needed = size, f"{size} * {each}"
            source.add(f"if {size} > {ELEMENTS_MAX}: few({size}, end - at)", (path, 0))
        source.add(f"if not 0 <= {needed} <= end - at: few({n}, end - at)", (path, 0))
        code = fixed_format(con.subcon)
        if code is not None:
            source.add(f"{into} = list({source.name(runtime.reads(code), 'reads')}[{n}](buf, at))", (path, 0))
            source.add(f"at += {needed}")
            return
        index = source.fresh("i")
        source.add(f"{into} = []")
        with source.block(f"for {index} in range({n}):"):
            item = self.value(con.subcon, f"{path}[{{{index}}}]")
            self.flush()
            source.add(f"{into}.append({item})")

    # -- structs -------------------------------------------------------------------------------

    def maybe(self, con: Maybe, path: str) -> str:
        there, into = self.source.fresh("n"), self.source.fresh("v")
        self.run.append((there, "B" if con.in_tag else "b", path))
        self.flush()
        if con.in_tag:
            self.source.add(f"if {there} > 127: {there}, at = more(buf, at, {there})", (path, 1))
        with self.source.block(f"if not {there}:" if con.in_tag else f"if {there} < 0:"):
            self.source.add(f"{into} = None")
        with self.source.block("else:"):
            value = self.value(con.subcon, path)
            self.flush()
            self.source.add(f"{into} = {value}")
        return into

    def message(self, con: Message, path: str) -> str:
        values = {f.name: self.value(f.subcon, dotted(path, f.name)) for f in con.plain.subcons}
        if con.tagged is not None:
            values |= self.tagged(con, con.tagged, path)
        cls = self.source.name(con.cls, "Cls")
        given = [values.get(name) or literal(spec, self.source) for name, spec in con.cls.fields.items()]
        return f"{cls}({', '.join(given)})"

    def tagged(self, con: Message, tagged: Mapping[int, c.Construct], path: str) -> dict[str, str]:
        """The tagged section: nearly always a zero, so everything else stands behind one `if`."""
        source, title = self.source, dotted(path, "tagged fields")
        here = (title, 1)
        if not tagged and not self.run:
            source.add("if buf[at]: at = skip_tags(buf, at + 1, buf[at])", here)
            source.add("else: at += 1")
            return {}
        count = source.fresh("t")
        self.run.append((count, "B", title))
        self.flush()
        if not tagged:
            source.add(f"if {count}: at = skip_tags(buf, at, {count})", here)
            return {}
        values = {f.name: source.fresh("v") for f in tagged.values()}
        for name, variable in values.items():
            source.add(f"{variable} = {literal(con.cls.fields[name], source)}")
        tag, stop = source.fresh("tag"), source.fresh("stop")
        with source.block(f"if {count}:"):
            source.add(f"{count}, at = tag_count(buf, at, {count})", here)
            source.add(f"{tag} = -1")
            with source.block(f"for _ in range({count}):"):
                source.add(f"{tag}, at, {stop} = read_tag(buf, at, {tag})", here)
                for number, f in tagged.items():
                    with source.block(f"if {tag} == {number}:"):
                        value = self.value(f.subcon, dotted(path, f.name))
                        self.flush()
                        source.add(f"{values[f.name]} = {value}")
                        source.add(f"if at != {stop}: ragged({stop} - at)", (dotted(path, f.name), 0))
                source.add(f"at = {stop}")
        return values


def dotted(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
