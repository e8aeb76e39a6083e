"""Tables that are there, as Spark sees them: their columns, and how rows are made to fit (`evolution.py` decides)."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from trilogue.pipeline.decode import first_line
from trilogue.pipeline.evolution import Columns, Fit, Type, fit, in_sql, other_folders, partition_columns
from trilogue.pipeline.files import Files
from trilogue.pipeline.model import Delta, Parquet, Pipeline
from trilogue.pipeline.table import ParquetTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Fits = dict[str, Fit]
"""By the path of a table."""

INFERENCE = "spark.sql.sources.partitionColumnTypeInference.enabled"


def visible(batch: "DataFrame") -> list[str]:
    """The columns that are written: all but those that begin with an underscore."""
    return [name for name in batch.columns if not name.startswith("_")]


def fits(session: "SparkSession", pipeline: Pipeline, files: Files, rows: "DataFrame") -> tuple[Fits, list[str]]:
    """How rows are written to every table, and what stands against it; nothing is written."""
    coming = {name: kind for name, kind in columns(rows).items() if name in visible(rows)}
    found: Fits = {}
    problems: list[str] = []
    for sink in pipeline.sinks:
        if not isinstance(sink, Parquet | Delta):
            continue
        path = pipeline.place(sink.path)
        try:
            there, folders = standing(session, files, sink, path)
        except UnreadableTable as error:
            problems.append(str(error))
            continue
        if (wrong := other_folders(folders, sink.partition_by)) is not None:
            problems.append(f"{path}: {wrong}")
        found[path], unfit = fit(there, {name: coming[name] for name in coming if name not in folder_names(sink)})
        problems += [f"{path}: {each}" for each in unfit]
    return found, problems


def folder_names(sink: Parquet | Delta) -> Sequence[str]:
    """Columns that are nothing but text in the names of folders: their type is the reader's affair."""
    return sink.partition_by if isinstance(sink, Parquet) else ()


def in_words(found: Fits) -> list[str]:
    """What changes in tables that are there."""
    said = []
    for path, each in found.items():
        if len(each.added) < len(each.schema):
            said += [f"{path}: {name} {in_sql(kind)} is new" for name, kind in each.added.items()]
        said += [f"{path}: {name} becomes {in_sql(kind)}" for name, kind in each.grown.items()]
        said += [f"{path}: {name} becomes {in_sql(kind)}: written anew" for name, kind in each.widened.items()]
    return said


# -- what is there ---------------------------------------------------------------------------------


class UnreadableTable(Exception):
    """The message says which, and why."""


def columns(rows: "DataFrame") -> Columns:
    return {each["name"]: each["type"] for each in rows.schema.jsonValue()["fields"]}


def standing(
    session: "SparkSession", files: Files, sink: Parquet | Delta, path: str
) -> tuple[Columns, Sequence[str] | None]:
    """Its columns, and those of them that are folders; no columns and None if there is no table."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        if isinstance(sink, Delta):
            if not files.exists(f"{path}/_delta_log"):
                return {}, None
            detail = session.sql(f"DESCRIBE DETAIL delta.`{path}`").collect()[0]
            return columns(session.read.format("delta").load(path)), list(detail["partitionColumns"])
        there = files.walk(path)
        folders = partition_columns(there)
        if folders is None:
            return {}, None
        # To put all files' schemas together takes long where there are many: the notes know what it came to.
        known = ParquetTable(files, path, "").columns
        found = known or columns(session.read.option("mergeSchema", "true").parquet(path))
        return {name: kind for name, kind in found.items() if name not in folders}, folders
    except (PySparkException, Py4JJavaError) as error:
        raise UnreadableTable(
            f"{path}: what is there cannot be read as one table: {first_line(error)}; write to a new table"
        ) from None


# -- rows that fit ---------------------------------------------------------------------------------


def fitting(rows: "DataFrame", found: Fit | None, *more: str) -> "DataFrame":
    """The rows' visible columns as the table has them, and `more` of the others."""
    names = visible(rows)
    if found is None:
        return rows.select(*names, *more)
    return rows.select(*(as_there(rows, name, found) for name in names), *more)


def as_there(rows: "DataFrame", name: str, found: Fit) -> Any:
    have = rows.schema[name].dataType.jsonValue()
    known, want = found.columns.get(name, (name, have))
    return shaped(rows[f"`{name}`"], have, want).alias(known)


def shaped(column: Any, have: Type, want: Type) -> Any:
    """The column with another type that holds its own: wider, or with more inside, which is null."""
    from pyspark.sql import functions as F

    if have == want:
        return column
    if isinstance(have, str) or isinstance(want, str):
        return column.cast(data_type(want))
    if want["type"] == "struct":
        theirs = {each["name"].casefold(): each for each in have["fields"]}
        parts = []
        for each in want["fields"]:
            other = theirs.get(each["name"].casefold())
            part = F.lit(None).cast(data_type(each["type"]))
            if other is not None:
                part = shaped(column.getField(other["name"]), other["type"], each["type"])
            parts.append(part.alias(each["name"]))
        return F.when(column.isNotNull(), F.struct(*parts))
    if want["type"] == "array":
        return F.transform(column, lambda each: shaped(each, have["elementType"], want["elementType"]))
    values = F.transform_values(column, lambda _, value: shaped(value, have["valueType"], want["valueType"]))
    return F.transform_keys(values, lambda key, _: shaped(key, have["keyType"], want["keyType"]))


def data_type(kind: Type) -> Any:
    return schema_of({"": kind}).fields[0].dataType


def schema_of(types: Columns) -> Any:
    from pyspark.sql.types import StructType

    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in types.items()]
    return StructType.fromJson({"type": "struct", "fields": fields})


def widened(rows: "DataFrame", types: Mapping[str, Type]) -> "DataFrame":
    return rows.withColumns({name: rows[f"`{name}`"].cast(data_type(kind)) for name, kind in types.items()})


def parquet_as(session: "SparkSession", path: str, types: Mapping[str, Type]) -> "DataFrame":
    """A whole table, these columns of other types."""
    with folders_as_text(session):
        return widened(session.read.option("mergeSchema", "true").parquet(path), types)


@contextmanager
def folders_as_text(session: "SparkSession") -> Iterator[None]:
    """What looks like a number in the name of a folder need not be one: `007` would come back as `7`."""
    before = session.conf.get(INFERENCE)
    session.conf.set(INFERENCE, "false")
    try:
        yield
    finally:
        session.conf.set(INFERENCE, str(before))


def change_delta(session: "SparkSession", path: str, found: Fit, partition_by: Sequence[str]) -> None:
    """A commit of Delta Lake's own for each: readers have the table as it was, or as it is to be."""
    is_there = len(found.added) < len(found.schema)
    if found.widened:
        rows = widened(session.read.format("delta").load(path), found.widened)
        writer = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
        writer.partitionBy(*partition_by).save(path)
    if is_there and (found.added or found.grown):
        nothing = session.createDataFrame([], schema_of(found.schema))
        nothing.write.format("delta").mode("append").option("mergeSchema", "true").save(path)
