"""Showing things: tables for people, tab-separated lines for pipes, JSON for programs."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def show_rows(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, as_json: bool = False) -> None:
    """A table.  To people with a head and in columns; to a pipe without; to a program a list of objects."""
    if as_json:
        show_json([dict(zip(columns, row, strict=True)) for row in rows])
    elif sys.stdout.isatty():
        for line in table(columns, [[cell(each) for each in row] for row in rows]):
            print(line)
    else:
        for row in rows:
            print("\t".join(cell(each) for each in row))


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterable[str]:
    """Numbers to the right, the rest to the left."""
    head = [name.upper().replace("_", " ") for name in columns]
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(columns))]
    right = [bool(rows) and all(row[i].lstrip("-").isdigit() or row[i] == "" for row in rows) for i in range(len(head))]
    for row in [head, *rows]:
        cells = (
            each.rjust(width) if r else each.ljust(width) for each, width, r in zip(row, widths, right, strict=True)
        )
        yield "  ".join(cells).rstrip()


def cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)


def show_json(value: Any) -> None:
    import json

    print(json.dumps(value, indent=2 if sys.stdout.isatty() else None, ensure_ascii=False))


def show_facts(facts: Mapping[str, Any]) -> None:
    """Names and values, one to a line."""
    width = max(len(name) for name in facts) if sys.stdout.isatty() else 0
    for name, value in facts.items():
        print(f"{name.replace('_', ' '):{width}}  {cell(value)}" if width else f"{name}\t{cell(value)}")


def say(text: str) -> None:
    """To a person who may be watching; not into a pipe, and not in the way of what is on stdout."""
    if sys.stderr.isatty():
        print(text, file=sys.stderr)


class Progress:
    """A line on stderr that counts, if somebody is there to see it."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._shown = sys.stderr.isatty()

    def at(self, count: int, size: int) -> None:
        if self._shown:
            print(f"\r{count:,} {self._what}, {size / 1e6:,.1f} MB", end="", file=sys.stderr, flush=True)

    def done(self) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
