"""A pipeline as Spark's plans: the good rows, and the bad records."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trilogue.pipeline import decode, source, steps
from trilogue.pipeline.errors import PipelineError
from trilogue.pipeline.model import Input, Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FAILED = "trilogue: bad record at "


@dataclass(frozen=True)
class Plan:
    good: "DataFrame"
    bad: "DataFrame | None"
    """Records for the dead letters' topic, if there is one."""


def build(session: "SparkSession", pipeline: Pipeline, schemas: Mapping[str, str]) -> Plan:
    """`schemas` are those that were inferred, as a checkpoint keeps them."""
    inputs = {each.name: joined(session, pipeline, each, schemas) for each in pipeline.inputs}
    marked = judged(source.stream(session, pipeline), pipeline, schemas)
    good = steps.shaped(only_good(marked, pipeline.bad_records.action), pipeline.steps, inputs)
    bad = None
    if pipeline.bad_records.action == "dead-letter":
        bad = dead_letters(judged(source.stream(session, pipeline), pipeline, schemas), pipeline.name)
    return Plan(good, bad)


def judged(records: "DataFrame", pipeline: Pipeline, schemas: Mapping[str, str]) -> "DataFrame":
    schema = decode.schema_text(pipeline, pipeline.decode) or schemas.get("")
    return steps.judged(decode.rows(records, pipeline.decode, schema), pipeline.steps)


def only_good(marked: "DataFrame", action: str) -> "DataFrame":
    from pyspark.sql import functions as F

    if action != "fail":
        return marked.where(steps.GOOD).drop("__error", "__record")
    where = F.concat_ws("-", "_topic", "_partition")
    said = F.concat(F.lit(FAILED), where, F.lit(", offset "), F.col("_offset"), F.lit(": "), F.col("__error"))
    checked = marked.where(F.when(F.expr(steps.GOOD), F.lit(True)).otherwise(F.raise_error(said).cast("boolean")))
    return checked.drop("__error", "__record")


def joined(session: "SparkSession", pipeline: Pipeline, found: Input, schemas: Mapping[str, str]) -> "DataFrame":
    """What a join step joins with.  Records of an input that cannot be decoded are left out."""
    from pyspark.errors import AnalysisException

    if found.topics:
        schema = decode.schema_text(pipeline, found.decode) or schemas.get(found.name)
        rows = decode.rows(source.input_stream(session, pipeline, found), found.decode, schema)
        rows = only_good(rows, "drop")
        return rows.withWatermark(found.watermark.column, found.watermark.delay) if found.watermark else rows
    assert found.path is not None
    reader = session.read.format(found.format)
    if found.format == "csv":
        reader = reader.option("header", "true")
    if found.schema:
        reader = reader.schema(found.schema)
    elif found.format == "csv":
        reader = reader.option("inferSchema", "true")
    try:
        return reader.load(pipeline.place(found.path))
    except AnalysisException as error:
        raise PipelineError(f"[[inputs]] {found.name}: {decode.first_line(error)}") from None


# -- dead letters ----------------------------------------------------------------------------------

PREFIX = "trilogue."
"""What our headers begin with."""


def dead_letters(marked: "DataFrame", name: str) -> "DataFrame":
    """The record as it came, with headers that say what is wrong with it and where it came from."""
    from pyspark.sql import functions as F

    bad = marked.where(f"NOT ({steps.GOOD})")
    said = {
        "error": F.col("__error"),
        "pipeline": F.lit(name),
        "source.topic": F.col("__record.topic"),
        "source.partition": F.col("__record.partition"),
        "source.offset": F.col("__record.offset"),
        "source.timestamp": F.unix_millis("__record.timestamp"),
    }
    ours = F.array(
        *(
            F.struct(F.lit(PREFIX + key).alias("key"), text.cast("string").cast("binary").alias("value"))
            for key, text in said.items()
        )
    )
    theirs = F.coalesce(F.col("__record.headers"), F.expr("CAST(array() AS array<struct<key:string,value:binary>>)"))
    # Redriven and bad again: what we said the last time is not said twice.
    kept = F.filter(theirs, lambda header: ~header["key"].startswith(PREFIX))
    return bad.select(
        F.col("__record.key").alias("key"),
        F.col("__record.value").alias("value"),
        F.concat(kept, ours).alias("headers"),
    )
