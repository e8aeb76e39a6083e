"""Look into the files of a log, Kafka's or ours: they are the same.  No broker is needed, and none is disturbed.

trilogue log dump data/orders-0                    everything in the folder of a partition
trilogue log dump data/orders-0/*.log              batches
trilogue log dump --records data/orders-0/*.log    and the records in them
trilogue log dump --json data/orders-0/*.timeindex
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trilogue.cli import formats
from trilogue.cli.failed import Failed
from trilogue.cli.output import show_json, show_rows

if TYPE_CHECKING:
    from trilogue.wire.records import Batch

Row = dict[str, Any]
Dump = Callable[[Path, argparse.Namespace], Iterator[Row]]


def add_to(command: argparse.ArgumentParser) -> None:
    verbs = command.add_subparsers(metavar="VERB")
    dump = verbs.add_parser("dump", help="what is in files or folders", description="What is in files or folders.")
    dump.add_argument("path", nargs="+", type=Path, help="a file of a log, or the folder of a partition")
    dump.add_argument("--records", action="store_true", help="the records of batches too")
    dump.add_argument("--format", choices=formats.FORMATS, default="text", help="how values are written (text)")
    dump.add_argument("--key-format", choices=formats.FORMATS, default="text", help="how keys are written (text)")
    dump.add_argument("--json", action="store_true", help="for programs: JSON, one line to each file")
    dump.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    damages: list[str] = []
    paths = [each for path in options.path for each in files(path)]
    for path in paths:
        rows = sound(path, dumper(path)(path, options), damages)
        if options.json:
            show_json({"file": str(path), "entries": list(rows)})
            continue
        if len(paths) > 1 and sys.stdout.isatty():
            print(f"\n{path}")
        elif len(paths) > 1:
            rows = ({"file": str(path), **row} for row in rows)
        if (first := next(rows, None)) is not None:
            show_rows(tuple(first), (tuple(row.values()) for row in chain([first], rows)))
    if damages:
        raise Failed("; ".join(damages))


class Damage(Exception):
    """The file does not make sense from somewhere on."""


def sound(path: Path, rows: Iterator[Row], damages: list[str]) -> Iterator[Row]:
    """Everything up to where it stops making sense, which is noted."""
    try:
        yield from rows
    except Damage as damage:
        damages.append(f"{path}: {damage}")
    except OSError as error:
        raise Failed(f"{path} cannot be read: {error.strerror}") from None


def files(path: Path) -> list[Path]:
    """A file, or those of a folder that can be shown."""
    if not path.is_dir():
        return [path]
    found = sorted(each for each in path.iterdir() if each.is_file() and kind(each) in KINDS)
    if not found:
        raise Failed(f"{path} has no files of a log in it: name the folder of a partition, such as {path}/orders-0")
    return found


def kind(path: Path) -> str:
    """What sort of file it is, by its name; a file that was deleted or compacted is what it was before."""
    name = path.name
    for ending in (".deleted", ".cleaned", ".swap"):
        name = name.removesuffix(ending)
    return os.path.splitext(name)[1] or name


def dumper(path: Path) -> Dump:
    found = KINDS.get(kind(path))
    if found is None:
        endings = ", ".join(name for name in KINDS if name.startswith("."))
        raise Failed(f"{path}: not a file of a log; those end in {endings}, or are called {CHECKPOINT}")
    return found


# -- one sort of file each -------------------------------------------------------------------------


def dump_log(path: Path, options: argparse.Namespace) -> Iterator[Row]:
    from trilogue.storage.files import open_to_read
    from trilogue.storage.scan import Damaged, batches
    from trilogue.wire.errors import MalformedMessage

    handle = open_to_read(str(path))
    try:
        for position, batch in batches(handle, 0, path.stat().st_size):
            row = batch_row(position, batch)
            if not options.records:
                yield row
            elif options.json:
                yield {**row, "records": [record_row(each, options) for each in batch.records()]}
            else:
                yield from ({"position": position, **record_row(each, options)} for each in batch.records())
    except (Damaged, MalformedMessage) as damage:
        raise Damage(str(damage)) from None


def batch_row(position: int, batch: "Batch") -> Row:
    header = batch.header
    flags = {"transactional": header.transactional, "control": header.control, "append-time": header.log_append_time}
    return {
        "position": position,
        "size": header.size,
        "first_offset": header.base_offset,
        "last_offset": header.last_offset,
        "records": header.count,
        "timestamp": header.max_timestamp,
        "codec": header.codec.name.lower(),
        "epoch": header.partition_leader_epoch,
        "producer": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "sequence": header.base_sequence,
        "flags": [name for name, there in flags.items() if there],
        "crc_ok": batch.crc_ok(),
    }


def record_row(record: Any, options: argparse.Namespace) -> Row:
    def shown(data: formats.Bytes | None, form: str) -> Any:
        if options.json or data is None:
            return formats.as_json(data, form)
        text = formats.write(data, form).decode("utf-8", "backslashreplace")
        return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)

    headers = [[name, shown(value, "text")] for name, value in record.headers]
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": shown(record.key, options.key_format),
        "value": shown(record.value, options.format),
        "headers": headers if options.json else [f"{name}={value}" for name, value in headers],
    }


def dump_index(path: Path, _: argparse.Namespace) -> Iterator[Row]:
    from trilogue.storage.index import OFFSET_ENTRY

    base = base_offset(path)
    for offset, position in entries(path, OFFSET_ENTRY):
        yield {"offset": base + offset, "position": position}


def dump_timeindex(path: Path, _: argparse.Namespace) -> Iterator[Row]:
    from trilogue.storage.index import TIME_ENTRY

    base = base_offset(path)
    for timestamp, offset in entries(path, TIME_ENTRY):
        yield {"timestamp": timestamp, "offset": base + offset}


def entries(path: Path, entry: Any) -> Iterator[tuple[int, int]]:
    """All but the zeros that a running Kafka keeps behind them."""
    data = path.read_bytes()
    whole = len(data) - len(data) % entry.size
    while whole and not any(data[whole - entry.size : whole]):
        whole -= entry.size
    return iter(entry.iter_unpack(data[:whole]))


def base_offset(path: Path) -> int:
    from trilogue.storage.names import offset_of

    found = offset_of(path.name)
    if found is None:
        raise Failed(f"{path}: its name should be twenty digits, the segment's first offset")
    return found


def dump_txnindex(path: Path, _: argparse.Namespace) -> Iterator[Row]:
    from trilogue.storage.aborted import AbortedIndex
    from trilogue.storage.files import OpenFiles

    index = AbortedIndex(str(path), OpenFiles(), path.stat().st_size)
    for each in index.entries():
        yield each._asdict()


def dump_snapshot(path: Path, _: argparse.Namespace) -> Iterator[Row]:
    from trilogue.storage.checkpoint import DamagedFile
    from trilogue.storage.snapshot import parse

    try:
        producers = parse(path.read_bytes())
    except DamagedFile as damage:
        raise Damage(str(damage)) from None
    for each in producers:
        yield {
            "producer": each.id,
            "producer_epoch": each.epoch,
            "last_sequence": each.last_sequence,
            "last_offset": each.last_offset,
            "timestamp": each.last_timestamp,
            "coordinator_epoch": each.coordinator_epoch,
            "transaction_start": each.transaction_start,
        }


def dump_epochs(path: Path, _: argparse.Namespace) -> Iterator[Row]:
    from trilogue.storage.checkpoint import DamagedFile
    from trilogue.storage.epochs import Epochs

    try:
        for epoch, start in Epochs.load(str(path)).entries:
            yield {"epoch": epoch, "start_offset": start}
    except DamagedFile as damage:
        raise Damage(str(damage)) from None


CHECKPOINT = "leader-epoch-checkpoint"
KINDS: dict[str, Dump] = {
    ".log": dump_log,
    ".index": dump_index,
    ".timeindex": dump_timeindex,
    ".txnindex": dump_txnindex,
    ".snapshot": dump_snapshot,
    CHECKPOINT: dump_epochs,
}
