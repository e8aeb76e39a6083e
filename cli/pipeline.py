"""Topics as tables: pipelines on Spark's Structured Streaming, described by a TOML file (docs/pipeline.md).

trilogue pipeline check orders.toml                 what would run, and what is in its way
trilogue pipeline run orders.toml                   read what there is, or go on forever, as `trigger` says
trilogue pipeline run orders.toml --master spark://host:7077 --metrics 9400
trilogue pipeline redrive orders.toml               put dead letters back, after a fix

Needs PySpark (pip install 'trilogue[pipeline]') and Java 17; redrive needs neither.
"""

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from trilogue.cli import connecting
from trilogue.cli.failed import Failed
from trilogue.cli.output import show_json

if TYPE_CHECKING:
    from trilogue.client.client import Client
    from trilogue.pipeline.model import Pipeline

LOOPBACK = "127.0.0.1"


def add_to(command: argparse.ArgumentParser) -> None:
    verbs = command.add_subparsers(metavar="VERB")

    def verb(name: str, purpose: str, run: Callable[[argparse.Namespace], None]) -> argparse.ArgumentParser:
        made = verbs.add_parser(name, help=purpose, description=f"{purpose[0].upper()}{purpose[1:]}.")
        made.add_argument("file", type=Path, help="the pipeline, as TOML")
        said = f"a broker ([source] bootstrap, ${connecting.VARIABLE}, or {connecting.DEFAULT_BOOTSTRAP})"
        made.add_argument("--bootstrap", metavar="HOST:PORT", help=said)
        made.set_defaults(run=run)
        return made

    def on_spark(made: argparse.ArgumentParser) -> None:
        made.add_argument("--master", metavar="URL", help="which Spark (the file's, or all cores of this machine)")
        made.add_argument("--jars", metavar="DIR", help="take the connectors' jars from there, not from Maven Central")

    run = verb("run", "run a pipeline", run_run)
    on_spark(run)
    run.add_argument("--metrics", metavar="[HOST:]PORT", type=listening, help="a page for Prometheus (on 127.0.0.1)")
    run.add_argument("--trigger", metavar="INTERVAL", help="`10 seconds` or available-now; stronger than the file")
    run.add_argument("--quiet", action="store_true", help="say nothing of progress")

    on_spark(verb("check", "explain what would run, and look for what is in its way", run_check))

    redrive = verb("redrive", "put dead letters back into their topics, each once", run_redrive)
    redrive.add_argument("--to", metavar="TOPIC", help="there, instead of the topics they came from")
    redrive.add_argument("--limit", metavar="N", type=int, help="at most so many")
    redrive.add_argument("--dry-run", action="store_true", help="only count them")
    redrive.set_defaults(timeout=connecting.TIMEOUT_SECONDS)
    redrive.add_argument("--json", action="store_true", help="for programs: JSON")


def listening(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"write PORT or HOST:PORT, not {text!r}")
    return host or LOOPBACK, int(port)


def read(options: argparse.Namespace) -> "Pipeline":
    """The file, with what the command line says instead."""
    from msgspec.structs import replace

    from trilogue.pipeline import reading

    found = reading.read(options.file)
    address = options.bootstrap or found.source.bootstrap or os.environ.get(connecting.VARIABLE)
    source = replace(found.source, bootstrap=address or connecting.DEFAULT_BOOTSTRAP)
    spark = found.spark
    if getattr(options, "master", None):
        spark = replace(spark, master=options.master)
    if getattr(options, "jars", None):
        spark = replace(spark, jars=str(Path(options.jars).resolve()))
    about = found.pipeline
    if getattr(options, "trigger", None):
        about = replace(about, trigger=options.trigger)
    return reading.agreed(replace(found, source=source, spark=spark, pipeline=about))


def tell(text: str) -> None:
    """Pipelines run for days and unwatched: what they say goes to stderr whoever is there."""
    print(text, file=sys.stderr, flush=True)


def run_run(options: argparse.Namespace) -> None:
    from trilogue.pipeline.errors import PipelineError
    from trilogue.pipeline.run import run

    try:
        totals = run(read(options), say=(lambda _: None) if options.quiet else tell, metrics_at=options.metrics)
    except PipelineError as error:
        raise Failed(str(error)) from None
    tell(f"{totals.pipeline}: {totals.rows.get('rows', 0):,} rows in {totals.batches.get('rows', 0)} batches")


def run_check(options: argparse.Namespace) -> None:
    from trilogue.pipeline.check import examine
    from trilogue.pipeline.errors import PipelineError
    from trilogue.pipeline.spark import session

    try:
        pipeline = read(options)
        spark = session(pipeline)
        try:
            report = examine(spark, pipeline)
        finally:
            spark.stop()
    except PipelineError as error:
        raise Failed(str(error)) from None
    print(f"{pipeline.name} ({options.file})")
    for word, text in report.facts:
        print(f"  {word:<12}{text}")
    if report.problems:
        raise Failed("\n".join(report.problems))
    print("  ready")


def run_redrive(options: argparse.Namespace) -> None:
    from trilogue.pipeline.errors import PipelineError
    from trilogue.pipeline.redrive import Redrive

    async def work(client: "Client") -> None:
        found = await Redrive(client, pipeline, to=options.to, limit=options.limit).run(dry=options.dry_run)
        if options.json:
            show_json({"redriven": found.redriven, "repeated": found.repeated, "strange": found.strange})
            return
        verb = "would go" if options.dry_run else "went"
        for topic, count in sorted(found.redriven.items()):
            print(f"{count:,} dead letters {verb} back to {topic}")
        if not found.redriven:
            print("no dead letters to redrive")

    try:
        pipeline = read(options)
        options.bootstrap = pipeline.source.bootstrap
        connecting.talk(options, work)
    except PipelineError as error:
        raise Failed(str(error)) from None
