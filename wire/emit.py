"""Source text in the making: lines, and what each of them is about."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import construct as c

from trilogue.wire.constructs import Uuid
from trilogue.wire.runtime import Place


class Source:
    """Lines of Python, the objects they name, and the fields they are about."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.places: dict[int, Place] = {}
        self.names: dict[str, Any] = {}
        self._depth = 0
        self._counter = 0

    def add(self, line: str, *about: tuple[str, int]) -> None:
        """One line; `about` are the paths it reads or writes, each with its size in bytes."""
        self.lines.append(" " * self._depth + line)
        self.places[len(self.lines)] = Place(about or (("", 0),))

    @contextmanager
    def block(self, head: str, *about: tuple[str, int]) -> Iterator[None]:
        self.add(head, *about)
        self._depth += 1
        yield
        self._depth -= 1

    def fresh(self, hint: str) -> str:
        """A variable name that nothing else has."""
        self._counter += 1
        return f"{hint}{self._counter}"

    def name(self, value: Any, hint: str) -> str:
        """A name under which the generated code finds this object."""
        for name, known in self.names.items():
            if known is value:
                return name
        name = self.fresh(hint)
        self.names[name] = value
        return name

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def fixed_format(con: c.Construct) -> str | None:
    """The `struct` code of a construct of fixed size, or None."""
    if isinstance(con, c.FormatField):
        return str(con.fmtstr[1:])
    if con is c.Flag:
        return "?"
    return "16s" if con is Uuid else None


def literal(spec: Any, source: Source) -> str:
    """An expression for the default of a field, fresh where it can be changed."""
    value = spec.make_default()
    if value is None or isinstance(value, int | float | str | bytes):
        return repr(value)
    return "[]" if value == [] else f"{source.name(type(value), 'Cls')}()"
