r"""Write records, one for each line of stdin.

echo hello | trilogue produce greetings
trilogue produce orders --key-separator : < orders.txt           KEY:VALUE on each line
trilogue produce orders --json < records.jsonl                   as `trilogue consume --json` prints them
trilogue produce users --key-separator '\t' --null NULL          a value NULL is a tombstone

Without a key, records of a batch go to one partition; with a key, to the partition that Kafka's clients choose for it.
Returns when everything is acknowledged.
"""

import argparse
import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from trilogue.cli import connecting, formats
from trilogue.cli.failed import Failed
from trilogue.cli.output import Progress, say, show_json

if TYPE_CHECKING:
    from trilogue.client.client import Client
    from trilogue.client.writer import Draft, Written

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
CHUNK_BYTES = 1 << 20
"""What is sent at once when input comes faster than we send; a person's line goes out as soon as it is typed."""

CAN_ASK = hasattr(select, "poll")
"""Whether `select` can say that more input is there.  A system without `poll` has one that takes sockets only."""


def add_to(command: argparse.ArgumentParser) -> None:
    command.add_argument("topic")
    command.add_argument("--key-separator", metavar="TEXT", type=formats.separator, help="what ends the key in a line")
    command.add_argument("--key", metavar="KEY", type=os.fsencode, help="the key of all records")
    command.add_argument(
        "--header", metavar="NAME=VALUE", type=header, action="append", default=[], help="of all records"
    )
    command.add_argument("--format", choices=formats.FORMATS, default="text", help="how values are written (text)")
    command.add_argument("--key-format", choices=formats.FORMATS, default="text", help="how keys are written (text)")
    command.add_argument("--null", metavar="TEXT", type=os.fsencode, help="a key or value that reads so is none at all")
    command.add_argument("--partition", metavar="N", type=int, help="all records go there")
    command.add_argument("--timestamp", metavar="MS", type=int, help="of all records, in ms since 1970 (now)")
    command.add_argument("--compression", choices=CODECS, default="none", help="of batches (none)")
    command.add_argument("--acks", choices=("all", "1"), default="all", help="who must have it (all replicas in sync)")
    connecting.add_options(command)
    command.set_defaults(run=run)


def header(text: str) -> tuple[str, bytes]:
    name, mark, value = text.partition("=")
    if not mark:
        raise argparse.ArgumentTypeError(f"write NAME=VALUE, not {text!r}")
    return name, os.fsencode(value)


def run(options: argparse.Namespace) -> None:
    async def work(client: "Client") -> None:
        from trilogue.client.writer import ALL, Writer
        from trilogue.wire.compression import Codec

        partitions = len((await client.persist(lambda: client.topic(options.topic, create=True))).partitions)
        if options.partition is not None and not 0 <= options.partition < partitions:
            raise Failed(f"--partition {options.partition}: {options.topic} has partitions 0 to {partitions - 1}")
        codec = Codec[options.compression.upper()]
        writer = Writer(client, options.topic, partitions, codec=codec, acks=ALL if options.acks == "all" else 1)
        tally, progress = Tally(), Progress("records")
        draft = drafter(options)
        try:
            for lines in chunks(sys.stdin.fileno()):
                tally.add(await writer.write([draft(line) for line in lines]), sum(map(len, lines)))
                if not sys.stdin.isatty():
                    progress.at(tally.count, tally.size)
        finally:
            progress.done()
            if options.json:
                show_json({"topic": options.topic, "records": tally.count, "partitions": tally.ranges})
            else:
                say(f"{tally.count:,} records written to {options.topic}")

    connecting.talk(options, work)


class Tally:
    """What was acknowledged so far."""

    def __init__(self) -> None:
        self.count = self.size = 0
        self.ranges: dict[int, dict[str, int]] = {}

    def add(self, written: "list[Written]", size: int) -> None:
        self.size += size
        for partition, base_offset, count in written:
            self.count += count
            known = self.ranges.setdefault(partition, {"first_offset": base_offset, "last_offset": 0})
            known["last_offset"] = base_offset + count - 1


def drafter(options: argparse.Namespace) -> "Callable[[bytes], Draft]":
    """What makes a record of a line."""
    from trilogue.client.writer import Draft

    def stamp(said: int | None = None) -> int:
        return said if said is not None else options.timestamp if options.timestamp is not None else now_ms()

    def from_text(line: bytes) -> Draft:
        key: bytes | None = options.key
        if options.key_separator is not None:
            key, mark, line = line.partition(options.key_separator)
            if not mark:
                raise Failed(
                    f"{formats.shortened(key)} has no {options.key_separator.decode()!r} between key and value"
                )
        if key is not None:
            key = None if key == options.null else formats.read(key, options.key_format)
        value = None if line == options.null else formats.read(line, options.format)
        return Draft(key, value, options.header, stamp(), options.partition)

    def from_json(line: bytes) -> Draft:
        said = formats.record_from_json(line, options.format, options.key_format)
        key = options.key if said["key"] is None else said["key"]
        headers = [*said["headers"], *options.header]
        return Draft(key, said["value"], headers, stamp(said["timestamp"]), options.partition)

    return from_json if options.json else from_text


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def chunks(fd: int) -> Iterator[list[bytes]]:
    """Lines, in lists of those that have come by now: one when a person types, a megabyte's when a file is piped in."""
    rest = b""
    while data := available(fd):
        *lines, rest = (rest + data).split(b"\n")
        if lines:
            yield [line.removesuffix(b"\r") for line in lines]
    if rest:
        yield [rest]


def available(fd: int) -> bytes:
    """At least one byte, and then what can be had without waiting; what one read brings, where we cannot ask.  None at
    the end."""
    parts = [os.read(fd, CHUNK_BYTES)]
    size = len(parts[0])
    while CAN_ASK and parts[-1] and size < CHUNK_BYTES and select.select([fd], [], [], 0)[0]:
        parts.append(os.read(fd, CHUNK_BYTES))
        size += len(parts[-1])
    return b"".join(parts)
