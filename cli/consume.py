r"""Read records, one to a line of stdout.

trilogue consume orders                                 all there are, then end
trilogue consume orders --follow                        what comes from now on, until Ctrl-C
trilogue consume orders --from -10                      the last ten of each partition
trilogue consume orders --from 42 --partition 0 -n 1    the record at offset 42 of partition 0
trilogue consume orders --from 2026-01-31T12:00 --json  everything since then, with all that is known of it
"""

import argparse
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from trilogue.cli import connecting, formats
from trilogue.cli.failed import Failed
from trilogue.cli.output import Progress

if TYPE_CHECKING:
    from trilogue.client.client import Client
    from trilogue.client.reader import Found, Reader

WAIT_SECONDS = 1.0
"""For one poll.  Short enough that Ctrl-C and a new leader are noticed soon, long enough to cost nothing."""


class From(NamedTuple):
    """Where to begin: one of these is not None, or it is the beginning or the end."""

    text: str
    offset: int | None = None
    timestamp: int | None = None


def add_to(command: argparse.ArgumentParser) -> None:
    command.add_argument("topic")
    command.add_argument(
        "--from",
        dest="start",
        metavar="WHERE",
        type=where,
        help="beginning, end, an offset, -N for the last N, a time like 2026-01-31T12:00, or @MS "
        "(beginning; with --follow, end)",
    )
    command.add_argument("--partition", metavar="N", type=int, action="append", help="only this one; may be repeated")
    command.add_argument("-n", "--count", metavar="N", type=int, help="end after so many records")
    command.add_argument("-f", "--follow", action="store_true", help="do not end at the end: wait for more")
    command.add_argument(
        "--key-separator", metavar="TEXT", type=formats.separator, help="show keys, and this after them"
    )
    command.add_argument("--headers", action="store_true", help="show headers first, as NAME=VALUE,... and a tab")
    command.add_argument("--format", choices=formats.FORMATS, default="text", help="how values are written (text)")
    command.add_argument("--key-format", choices=formats.FORMATS, default="text", help="how keys are written (text)")
    command.add_argument("--null", metavar="TEXT", default="null", help="what stands for no key or value (null)")
    command.add_argument("--uncommitted", action="store_true", help="also what transactions have not committed")
    connecting.add_options(command)
    command.set_defaults(run=run)


def where(text: str) -> From:
    if text in ("beginning", "end"):
        return From(text)
    if text.lstrip("-").isdecimal():
        return From(text, offset=int(text))
    if text.startswith("@") and text[1:].isdecimal():
        return From(text, timestamp=int(text[1:]))
    from datetime import datetime

    try:
        return From(text, timestamp=int(datetime.fromisoformat(text).timestamp() * 1000))
    except ValueError:
        problem = f"{text!r}: write beginning, end, an offset, -N, a time like 2026-01-31T12:00, or @MS"
        raise argparse.ArgumentTypeError(problem) from None


def run(options: argparse.Namespace) -> None:
    async def work(client: "Client") -> None:
        from trilogue.client.offsets import LATEST, offsets
        from trilogue.client.reader import Reader

        partitions = await wanted(client, options)
        ends = await offsets(client, options.topic, partitions, LATEST, committed_only=not options.uncommitted)
        starts = await begin(client, options, partitions, ends)
        reader = Reader(client, options.topic, starts, committed_only=not options.uncommitted)
        await read(reader, options, ends)

    connecting.talk(options, work)


async def wanted(client: "Client", options: argparse.Namespace) -> list[int]:
    from trilogue.cli.topic import existing

    there = sorted(each.partition_index for each in (await existing(client, options.topic)).partitions)
    for each in options.partition or ():
        if each not in there:
            raise Failed(f"--partition {each}: {options.topic} has partitions 0 to {there[-1]}")
    return sorted(set(options.partition)) if options.partition else there


async def begin(
    client: "Client", options: argparse.Namespace, partitions: list[int], ends: dict[int, int]
) -> dict[int, int]:
    """The first offset to read, by partition.  What lies before the log's start begins at its start."""
    from trilogue.client.offsets import EARLIEST, offsets

    start: From = options.start or From("end" if options.follow else "beginning")
    if start.text == "end":
        return ends
    if start.timestamp is not None:
        found = await offsets(client, options.topic, partitions, start.timestamp)
        return {each: ends[each] if offset < 0 else offset for each, offset in found.items()}
    first = await offsets(client, options.topic, partitions, EARLIEST)
    if start.offset is None:
        return first
    asked = {each: start.offset if start.offset >= 0 else ends[each] + start.offset for each in partitions}
    return {each: max(first[each], asked[each]) for each in partitions}


async def read(reader: "Reader", options: argparse.Namespace, ends: dict[int, int]) -> None:
    show = shower(options)
    left = options.count
    progress, count, size = Progress("records"), 0, 0
    while left is None or left > 0:
        unfinished = [each for each, offset in reader.positions.items() if options.follow or offset < ends[each]]
        if not unfinished:
            break
        found: Iterable[Found] = await reader.poll(WAIT_SECONDS, unfinished)
        if not options.follow:
            found = [each for each in found if each.record.offset < ends[each.partition]]
        found = list(found)[:left]
        out = b"".join(map(show, found))
        sys.stdout.buffer.write(out)
        sys.stdout.buffer.flush()
        left = None if left is None else left - len(found)
        count, size = count + len(found), size + len(out)
        if not sys.stdout.isatty():
            progress.at(count, size)
    progress.done()


def shower(options: argparse.Namespace) -> "Callable[[Found], bytes]":
    """What makes a line of a record."""
    null = options.null.encode()

    def text(data: formats.Bytes | None, form: str) -> bytes:
        return null if data is None else formats.write(data, form)

    def line(found: "Found") -> bytes:
        record = found.record
        out = b""
        if options.headers:
            named = (
                name.encode("utf-8", "surrogateescape") + b"=" + text(value, "text") for name, value in record.headers
            )
            out += b",".join(named) + b"\t"
        if options.key_separator is not None:
            out += text(record.key, options.key_format) + options.key_separator
        return out + text(record.value, options.format) + b"\n"

    def as_json(found: "Found") -> bytes:
        import json

        partition, record = found
        shown: dict[str, Any] = {
            "partition": partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "key": formats.as_json(record.key, options.key_format),
            "value": formats.as_json(record.value, options.format),
            "headers": [[name, formats.as_json(value, "text")] for name, value in record.headers],
        }
        return json.dumps(shown, ensure_ascii=False).encode("utf-8", "surrogateescape") + b"\n"

    return as_json if options.json else line
