"""Writes the half of a codec that builds.

The mirror of `reading.py`: neighbours of fixed size go out in one `struct` call, together with the size
that follows them while that fits into one byte; a section without tagged fields is one zero byte of it.
"""

import struct
from collections.abc import Mapping

import construct as c

from trilogue.wire import runtime
from trilogue.wire.constructs import Blob, Items, Maybe, Message, RecordBlob, Sized, Text
from trilogue.wire.emit import Source, fixed_format, literal
from trilogue.wire.reading import dotted

HELPERS = ("put_uvarint", "put_string_size", "put_tags", "sixteen", "unwritable", "UNWRITABLE", "BUFFERS")


class Writer:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.out = "out"
        self.run: list[tuple[str, str, str]] = []  # struct code, expression ("" for a zero byte), path
        for helper in HELPERS:
            source.names[helper] = getattr(runtime, helper)

    def function(self, con: Message, title: str) -> None:
        """`encode(it, out, parts)` adds the message to `out`.

        Large records, and those that are not a buffer, are not copied: `parts` hears where they belong.
        """
        source = self.source
        source.names["WRITTEN"] = source.places
        with source.block("def encode(it, out, parts):"):
            with source.block("try:"):
                self.value("it", con, "")
                self.flush()
            with source.block("except UNWRITABLE as error:"):
                source.add(f"raise unwritable(error, {title!r}, WRITTEN, locals()) from error")

    def value(self, it: str, con: c.Construct, path: str) -> None:
        """Emit what writes the value of the expression `it`."""
        code = fixed_format(con)
        if code is not None:
            self.run.append((code, f"sixteen({it})" if code == "16s" else it, path))
            return
        match con:
            case Message():
                self.message(it, con, path)
            case Maybe():
                self.maybe(it, con, path)
            case Items():
                self.items(it, con, path)
            case Text():
                raw, size = self.measure(it, con, path, ".encode()")
                self.size(size, con, path)
                self.source.add(f"{self.out} += {raw}", (path, 0))
            case RecordBlob():
                raw, size = self.measure(it, con, path)
                self.size(size, con, path)
                with self.source.block(f"if {size} > {runtime.COPIED_MAX} or not isinstance({raw}, BUFFERS):"):
                    self.source.add(f"parts.append((len({self.out}), {raw}))", (path, 0))
                with self.source.block("else:"):
                    self.source.add(f"{self.out} += {raw}", (path, 0))
            case Blob():
                raw, size = self.measure(it, con, path)
                self.size(size, con, path)
                self.source.add(f"{self.out} += {raw}", (path, 0))
            case _:
                raise TypeError(f"{path}: no way to write {con!r}")

    def flush(self, big: str = "", put: str = "put_uvarint") -> None:
        """Write the run; where its last is a varint that may need more than a byte, in two ways."""
        if not self.run:
            return
        if [code for code, _, _ in self.run] == ["x"]:
            self.source.add(f"{self.out}.append(0)")
            self.run.clear()
            return
        pack = self.pack(self.run)
        if not big:
            self.source.add(f"{self.out} += {pack}", *self.about(self.run))
        else:
            with self.source.block(f"if {big} < 128:"):
                alone = f"{self.out}.append({big})"
                self.source.add(alone if len(self.run) == 1 else f"{self.out} += {pack}", *self.about(self.run))
            with self.source.block("else:"):
                if self.run[:-1]:
                    rest = self.pack(self.run[:-1])
                    self.source.add(f"{self.out} += {rest}", *self.about(self.run[:-1]))
                self.source.add(f"{put}({big}, {self.out})", *self.about(self.run[-1:]))
        self.run.clear()

    def pack(self, run: list[tuple[str, str, str]]) -> str:
        packer = struct.Struct(">" + "".join(code for code, _, _ in run))
        arguments = [expression for _, expression, _ in run if expression]
        if not arguments:
            return repr(bytes(packer.size))
        return f"{self.source.name(packer.pack, 'pack')}({', '.join(arguments)})"

    def about(self, run: list[tuple[str, str, str]]) -> list[tuple[str, int]]:
        return [(path, 0) for _, expression, path in run if expression] or [("", 0)]

    # -- sizes ---------------------------------------------------------------------------------

    def measure(self, it: str, con: Sized, path: str, made: str = "") -> tuple[str, str]:
        """The value in a variable of its own, and what is written as its size, in another."""
        source, here = self.source, (path, 0)
        number = source.fresh("")
        raw, size = f"list{number}", f"n{number}"
        length = f"len({raw}) + 1" if con.compact else f"len({raw})"
        if not con.nullable:
            source.add(f"{raw} = {it}{made}", here)
            source.add(f"{size} = {length}", here)
            return raw, size
        source.add(f"{raw} = {it}", here)
        with source.block(f"if {raw} is None:"):
            source.add(f"{raw} = b''")
            source.add(f"{size} = {0 if con.compact else -1}")
        with source.block("else:"):
            if made:
                source.add(f"{raw} = {raw}{made}", here)
            source.add(f"{size} = {length}", here)
        return raw, size

    def size(self, size: str, con: Sized, path: str) -> None:
        if con.compact:
            self.run.append(("B", size, path))
            self.flush(big=size, put="put_string_size" if isinstance(con, Text) else "put_uvarint")
        else:
            self.run.append((str(con.counter.fmtstr[1:]), size, path))
            self.flush()

    def items(self, it: str, con: Items, path: str) -> None:
        source = self.source
        raw, size = self.measure(it, con, path)
        self.size(size, con, path)
        code = fixed_format(con.subcon)
        if code is not None:
            pack = f"{source.name(runtime.writes(code), 'writes')}[len({raw})]"
            each = f"map(sixteen, {raw})" if code == "16s" else raw
            source.add(f"{self.out} += {pack}(*{each})", (path, 0))
            return
        number = raw.removeprefix("list")
        with source.block(f"for item{number} in {raw}:", (path, 0)):
            self.value(f"item{number}", con.subcon, f"{path}[{{i{number}}}]")
            self.flush()

    # -- structs -------------------------------------------------------------------------------

    def maybe(self, it: str, con: Maybe, path: str) -> None:
        struct_ = self.source.fresh("v")
        self.flush()
        self.source.add(f"{struct_} = {it}", (path, 0))
        with self.source.block(f"if {struct_} is None:"):
            self.source.add(f"{self.out}.append({0 if con.in_tag else 255})")
        with self.source.block("else:"):
            self.source.add(f"{self.out}.append(1)")
            self.value(struct_, con.subcon, path)
            self.flush()

    def message(self, it: str, con: Message, path: str) -> None:
        if "." in it:
            nested = self.source.fresh("v")
            self.source.add(f"{nested} = {it}", (path, 0))
            it = nested
        for f in con.plain.subcons:
            self.value(f"{it}.{f.name}", f.subcon, dotted(path, f.name))
        if con.tagged == {}:
            self.run.append(("x", "", path))
        elif con.tagged:
            self.tagged(it, con, con.tagged, path)
        if not self.source.lines[-1].strip().endswith(":"):
            return
        self.source.add("pass")  # a struct with nothing in this version

    def tagged(self, it: str, con: Message, tagged: Mapping[int, c.Construct], path: str) -> None:
        """The tagged section.  Usually everything is at its default, which is one zero byte."""
        source = self.source
        self.flush()
        here = dotted(path, "tagged fields")
        said = [(tag, f, self.differs(f"{it}.{f.name}", con, f)) for tag, f in sorted(tagged.items())]
        with source.block(f"if {' or '.join(condition for _, _, condition in said)}:", (here, 0)):
            bodies, outside = source.fresh("tags"), self.out
            source.add(f"{bodies} = []")
            for tag, f, condition in said:
                with source.block(f"if {condition}:", (dotted(path, f.name), 0)):
                    self.out = source.fresh("out")
                    source.add(f"{self.out} = bytearray()")
                    self.value(f"{it}.{f.name}", f.subcon, dotted(path, f.name))
                    self.flush()
                    source.add(f"{bodies}.append(({tag}, {self.out}))")
                    self.out = outside
            source.add(f"put_tags({bodies}, {self.out})", (here, 0))
        with source.block("else:"):
            source.add(f"{self.out}.append(0)")

    def differs(self, value: str, con: Message, f: c.Construct) -> str:
        """The condition that this value is not its default."""
        default = con.cls.fields[f.name].make_default()
        if default is None:
            return f"{value} is not None"
        if default == []:
            return f"{value} != []"
        if isinstance(default, int | float | str | bytes):
            return f"{value} != {literal(con.cls.fields[f.name], self.source)}"
        return f"{value} != {self.source.name(default, 'DEFAULT')}"
