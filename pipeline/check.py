"""What can be known before anything is written: are the topics there, do records fit, is what we wanted to read gone?

`examine` looks at everything and gathers problems; `run` refuses to begin with one, `check` prints them all.
"""

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trilogue.pipeline import decode, plan, source, tables
from trilogue.pipeline.checkpoint import DEAD_LETTERS, ROWS, Checkpoint, Identity, Offsets, settle
from trilogue.pipeline.cluster import Cluster
from trilogue.pipeline.errors import PipelineError
from trilogue.pipeline.files import Files, HadoopFiles, hidden
from trilogue.pipeline.model import Delta, Parquet, Pipeline, Topic
from trilogue.pipeline.plan import Plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAMPLE_RECORDS = 200
"""The newest of each partition: enough to see that a schema does not fit, and read in a moment."""

Ranges = dict[str, dict[int, tuple[int, int]]]


@dataclass
class Report:
    problems: list[str] = field(default_factory=list)
    facts: list[tuple[str, str]] = field(default_factory=list)
    """What would run: a word and what there is to say about it."""
    identity: Identity | None = None
    plan: Plan | None = None
    fits: tables.Fits = field(default_factory=dict)
    """How rows are written to the tables that are there."""

    def say(self, word: str, text: str) -> None:
        self.facts.append((word, text))


def examine(session: "SparkSession", pipeline: Pipeline) -> Report:
    report = Report()
    files = HadoopFiles(session)
    checkpoint = Checkpoint(files, pipeline.checkpoint)
    cluster = Cluster(session, pipeline.source)
    try:
        there = cluster.topics()
        own = source_topics(pipeline, there, report)
        topics = present_topics(pipeline, own, there, report)
        partitions = cluster.partitions(topics)
        first, last = cluster.earliest(partitions), cluster.latest(partitions)
    finally:
        cluster.close()
    try:
        report.identity = settle(checkpoint, pipeline)
    except PipelineError as error:
        report.problems.append(str(error))
    look_for_loss(pipeline, checkpoint, first, last, report)
    say_lag(checkpoint, pipeline, first, last, report)
    look_at_tables(pipeline, checkpoint, files, report)
    if not report.problems:
        newest = tails(first, last)
        report.identity = with_schemas(session, pipeline, own, newest, report)
        report.plan = plan.build(session, pipeline, report.identity.schemas)
        report.fits, unfit = tables.fits(session, pipeline, files, report.plan.good)
        report.problems += unfit
        report.facts += [("tables", line) for line in tables.in_words(report.fits)]
        look_at_sample(session, pipeline, {topic: newest[topic] for topic in own}, report)
    explain(pipeline, report)
    return report


def source_topics(pipeline: Pipeline, there: set[str], report: Report) -> list[str]:
    """Those that [source] names."""
    found = pipeline.source
    if not found.pattern:
        return list(found.topics)
    try:
        named = sorted(name for name in there if re.fullmatch(found.pattern, name))
    except re.error as error:
        raise PipelineError(f"[source]: `pattern`: {error}") from None
    if not named:
        report.problems.append(f"[source]: `pattern`: no topic is named like {found.pattern}")
    return named


def present_topics(pipeline: Pipeline, own: list[str], there: set[str], report: Report) -> list[str]:
    """Those to read from that exist; one that does not, or one to write to, is a problem."""
    reads = [("[source]: `topics`", name) for name in own]
    reads += [(f"[[inputs]] {each.name}: `topics`", name) for each in pipeline.inputs for name in each.topics]
    writes = [("[[sinks]]: `topic`", sink.topic) for sink in pipeline.sinks if isinstance(sink, Topic)]
    if pipeline.bad_records.topic:
        writes.append(("[bad_records]: `topic`", pipeline.bad_records.topic))
    for where, name in reads + writes:
        if name not in there:
            report.problems.append(f"{where}: there is no topic {name} at {source.bootstrap(pipeline.source)}")
    return [name for _, name in reads if name in there]


# -- the checkpoint and the tables -----------------------------------------------------------------


def lost(wanted: Offsets, first: Offsets, last: Offsets) -> list[str]:
    """What a checkpoint wants to read and nobody has any more."""
    found = []
    for topic, partitions in wanted.items():
        for index, offset in sorted(partitions.items()):
            begin, end = first.get(topic, {}).get(index), last.get(topic, {}).get(index)
            if begin is None or end is None:
                found.append(f"{topic}-{index} is gone; the checkpoint was to go on at offset {offset}")
            elif offset < begin:
                found.append(f"{topic}-{index}: offsets {offset} to {begin - 1} are gone")
            elif offset > end:
                found.append(f"{topic}-{index} ends at {end}, before the checkpoint's {offset}: was it made anew?")
    return found


def look_for_loss(pipeline: Pipeline, checkpoint: Checkpoint, first: Offsets, last: Offsets, report: Report) -> None:
    queries = [ROWS, DEAD_LETTERS] if pipeline.bad_records.topic else [ROWS]
    found = [each for query in queries for each in lost(checkpoint.resumes_at(query), first, last)]
    for each in dict.fromkeys(found):
        if pipeline.source.allow_data_loss:
            report.say("data loss", f"{each} (allow_data_loss)")
        else:
            report.problems.append(f"data loss: {each}; [source] allow_data_loss = true goes on without them")


def say_lag(checkpoint: Checkpoint, pipeline: Pipeline, first: Offsets, last: Offsets, report: Report) -> None:
    wanted = checkpoint.resumes_at(ROWS)
    for topic, ends in sorted(last.items()):
        begins = {index: wanted.get(topic, {}).get(index, first[topic][index]) for index in ends}
        if not wanted and pipeline.source.start == "latest":
            begins = ends
        behind = sum(max(0, end - begins[index]) for index, end in ends.items())
        how = "from the checkpoint" if wanted else f"from {pipeline.source.start}"
        report.say("source", f"{topic}: {len(ends)} partitions, {behind:,} offsets to read, {how}")


def look_at_tables(pipeline: Pipeline, checkpoint: Checkpoint, files: Files, report: Report) -> None:
    """A new checkpoint reads everything again: into a table that has it already, everything would come twice."""
    if checkpoint.identity() is not None:
        return
    for sink in pipeline.sinks:
        if isinstance(sink, Parquet | Delta) and not sink.append_to_existing:
            path = pipeline.place(sink.path)
            upserts = isinstance(sink, Delta) and bool(sink.key)
            if not upserts and not all(map(hidden, files.names(path))):
                report.problems.append(
                    f"{path}: there is a table already, and the checkpoint {checkpoint.path} is new: rows would be "
                    "there twice; remove the table, bring the checkpoint back, or say append_to_existing = true"
                )


# -- schemas and a sample --------------------------------------------------------------------------


def tails(first: Offsets, last: Offsets) -> Ranges:
    return {
        topic: {index: (max(first[topic][index], end - SAMPLE_RECORDS), end) for index, end in ends.items()}
        for topic, ends in last.items()
    }


def with_schemas(
    session: "SparkSession", pipeline: Pipeline, own: list[str], newest: Ranges, report: Report
) -> Identity:
    """Infers what is not given, once: the checkpoint keeps it."""
    assert report.identity is not None
    schemas = dict(report.identity.schemas)
    reads = [("", pipeline.decode, own)]
    reads += [(each.name, each.decode, each.topics) for each in pipeline.inputs if each.topics]
    for name, found, topics in reads:
        if found.format == "json" and decode.schema_text(pipeline, found) is None and name not in schemas:
            sample = source.batch(session, pipeline.source, {topic: newest[topic] for topic in topics})
            schemas[name] = decode.inferred(session, sample)
            report.say("inferred", f"{name or 'the schema'}: {schemas[name]}")
    return Identity(report.identity.id, report.identity.shape, schemas)


def look_at_sample(session: "SparkSession", pipeline: Pipeline, newest: Ranges, report: Report) -> None:
    assert report.identity is not None
    if not any(end > begin for parts in newest.values() for begin, end in parts.values()):
        return
    records = source.batch(session, pipeline.source, newest)
    marked = plan.judged(records, pipeline, report.identity.schemas)
    counts = {row["__error"]: row["count"] for row in marked.groupBy("__error").count().collect()}
    good = counts.pop(None, 0)
    total = good + sum(counts.values())
    report.say("sample", f"{total:,} of the newest records: {good:,} good")
    for error, count in counts.items():
        report.say("", f"{count:,} bad: {error}")
    undecodable = sum(count for error, count in counts.items() if error.startswith("decode: "))
    if counts and pipeline.bad_records.action == "fail":
        worst = max(counts, key=lambda each: counts[each])
        report.problems.append(
            f"schema mismatch: {total - good:,} of the newest {total:,} records are bad ({worst}), "
            "and [bad_records] action is fail"
        )
    elif total and undecodable == total:
        worst = max(counts, key=lambda each: counts[each])
        report.problems.append(f"schema mismatch: none of the newest {total:,} records can be decoded ({worst})")


# -- in words --------------------------------------------------------------------------------------


def explain(pipeline: Pipeline, report: Report) -> None:
    import msgspec

    found = pipeline.decode
    report.say("decode", f"{found.format}{', framed as Confluent does it' if found.framing != 'none' else ''}")
    for number, step in enumerate(pipeline.steps, 1):
        said = msgspec.to_builtins(step)
        words = ", ".join(f"{key} = {value}" for key, value in said.items() if key != "type" and value)
        report.say("steps" if number == 1 else "", f"{number} {said['type']}: {words}")
    for number, sink in enumerate(pipeline.sinks):
        report.say("" if number else "sinks", in_words(pipeline, sink))
    action = pipeline.bad_records.action
    bad = {"fail": "stop the pipeline", "drop": "are dropped"}.get(action, f"go to {pipeline.bad_records.topic}")
    report.say("bad records", bad)
    report.say("checkpoint", f"{pipeline.checkpoint} ({pipeline.pipeline.trigger}, {pipeline.pipeline.output})")
    if report.plan is not None:
        names = [name for name in report.plan.good.columns if not name.startswith("_")]
        types = dict(report.plan.good.dtypes)
        report.say("rows", ", ".join(f"{name} {types[name]}" for name in names))


def in_words(pipeline: Pipeline, sink: object) -> str:
    if isinstance(sink, Parquet | Delta):
        kind = "Parquet" if isinstance(sink, Parquet) else "Delta"
        by = f", partitioned by {', '.join(sink.partition_by)}" if sink.partition_by else ""
        key = f", newest row of each {', '.join(sink.key)}" if isinstance(sink, Delta) and sink.key else ""
        return f"{kind} at {pipeline.place(sink.path)}{by}{key}: exactly once"
    return f"topic {sink.topic}: at least once" if isinstance(sink, Topic) else "console"
