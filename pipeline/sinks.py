"""Where rows go.  Each sink is told a batch and its number; those of files take a number only once.

A batch that failed half-way comes again with the same number and the same records (Spark's checkpoint sees to that), so
files hold every row exactly once.  A topic and the console have no memory: they may see a batch again.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from trilogue.pipeline.evolution import Fit
from trilogue.pipeline.files import Files
from trilogue.pipeline.model import AnySink, Compaction, Console, Delta, Parquet, Pipeline, Topic
from trilogue.pipeline.source import connection
from trilogue.pipeline.table import ParquetTable
from trilogue.pipeline.tables import Fits, change_delta, fitting, parquet_as, visible

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Writer(Protocol):
    def prepare(self, session: "SparkSession") -> None:
        """Before the first batch: make what is there fit for what comes."""

    def write(self, batch: "DataFrame", number: int) -> None: ...


def opened(pipeline: Pipeline, files: Files, owner: str, fits: Fits, say: Callable[[str], None]) -> list[Writer]:
    """Writers of all sinks.  Tables finish what their last writer had decided."""
    return [writer(pipeline, sink, files, owner, fits, say) for sink in pipeline.sinks]


def writer(
    pipeline: Pipeline, sink: AnySink, files: Files, owner: str, fits: Fits, say: Callable[[str], None]
) -> Writer:
    if isinstance(sink, Parquet):
        path = pipeline.place(sink.path)
        return ParquetWriter(sink, path, files, owner, fits.get(path), say)
    if isinstance(sink, Delta):
        path = pipeline.place(sink.path)
        return (UpsertWriter if sink.key else DeltaWriter)(sink, path, owner, fits.get(path))
    if isinstance(sink, Topic):
        return TopicWriter(sink, connection(pipeline.source))
    return ConsoleWriter(sink)


class ParquetWriter:
    def __init__(
        self, sink: Parquet, path: str, files: Files, owner: str, fit: Fit | None, say: Callable[[str], None]
    ) -> None:
        self._sink, self._path, self._fit, self._say = sink, path, fit, say
        self._table = ParquetTable(files, path, owner, fit.schema if fit else None)
        self._table.open()

    def prepare(self, session: "SparkSession") -> None:
        if self._fit is None or not self._fit.widened:
            return
        widened, partition_by = self._fit.widened, self._sink.partition_by

        def stage(folder: str) -> None:
            parquet_as(session, self._path, widened).write.partitionBy(*partition_by).parquet(folder)

        self._say(f"{self._path}: all files are written anew, for {', '.join(widened)}")
        self._table.write_anew(stage)

    def write(self, batch: "DataFrame", number: int) -> None:
        def stage(folder: str) -> None:
            fitting(batch, self._fit).write.partitionBy(*self._sink.partition_by).parquet(folder)

        touched = self._table.add(number, stage) or set()
        if isinstance(self._sink.compact, Compaction):
            for folder in sorted(touched):
                self._compact(batch, folder, self._sink.compact)

    def _compact(self, batch: "DataFrame", folder: str, wanted: Compaction) -> None:
        target = wanted.target_mb << 20
        small = self._table.small_files(folder, target // 2)
        if len(small) < wanted.files:
            return
        count = math.ceil(sum(small.values()) / target)

        def stage(staged: str) -> None:
            paths = [f"{self._path}/{name}" for name in small]
            found = batch.sparkSession.read.option("mergeSchema", "true").parquet(*paths)
            found.coalesce(count).write.parquet(staged)

        self._table.compact(folder, small, stage)
        self._say(f"{self._path}/{folder}: {len(small)} small files are {count} now")


class DeltaWriter:
    """Delta Lake remembers which batches of which writer it has, and passes over those."""

    def __init__(self, sink: Delta, path: str, owner: str, fit: Fit | None) -> None:
        self._sink, self._path, self._owner, self._fit = sink, path, owner, fit

    def prepare(self, session: "SparkSession") -> None:
        if self._fit is not None:
            change_delta(session, self._path, self._fit, self._sink.partition_by)

    def write(self, batch: "DataFrame", number: int) -> None:
        rows = fitting(batch, self._fit).write.format("delta").mode("append").partitionBy(*self._sink.partition_by)
        rows.option("txnAppId", self._owner).option("txnVersion", number).save(self._path)


class UpsertWriter(DeltaWriter):
    """The newest row of each key.  In a batch that is the one with the highest offset: a key has one partition."""

    def write(self, batch: "DataFrame", number: int) -> None:
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        session = batch.sparkSession
        gone = F.coalesce(F.expr(self._sink.delete_when), F.lit(False)) if self._sink.delete_when else F.lit(False)
        rows = batch.withColumn("__gone", gone)
        if "_offset" in batch.columns:
            newest = Window.partitionBy(*self._sink.key).orderBy(F.desc("_offset"))
            rows = rows.withColumn("__rank", F.row_number().over(newest)).where("__rank = 1")
        rows = fitting(rows, self._fit, "__gone")
        columns = visible(rows)
        empty = rows.select(*columns).limit(0).write.format("delta").mode("ignore")
        empty.partitionBy(*self._sink.partition_by).save(self._path)
        rows.createOrReplaceTempView("trilogue_batch")
        session.conf.set("spark.databricks.delta.write.txnAppId", self._owner)
        session.conf.set("spark.databricks.delta.write.txnVersion", str(number))
        try:
            session.sql(merge(self._path, columns, self._sink.key))
        finally:
            session.conf.unset("spark.databricks.delta.write.txnAppId")
            session.conf.unset("spark.databricks.delta.write.txnVersion")


def merge(path: str, columns: list[str], key: list[str]) -> str:
    same = " AND ".join(f"old.`{name}` <=> new.`{name}`" for name in key)
    changes = ", ".join(f"old.`{name}` = new.`{name}`" for name in columns)
    names = ", ".join(f"`{name}`" for name in columns)
    values = ", ".join(f"new.`{name}`" for name in columns)
    return (
        f"MERGE INTO delta.`{path}` AS old USING trilogue_batch AS new ON {same} "
        f"WHEN MATCHED AND new.__gone THEN DELETE WHEN MATCHED THEN UPDATE SET {changes} "
        f"WHEN NOT MATCHED AND NOT new.__gone THEN INSERT ({names}) VALUES ({values})"
    )


class TopicWriter:
    """At least once: Spark's own sink has no transactions."""

    def __init__(self, sink: Topic, connection: dict[str, str]) -> None:
        self._sink, self._connection = sink, connection

    def prepare(self, session: "SparkSession") -> None:
        pass

    def write(self, batch: "DataFrame", number: int) -> None:
        from pyspark.sql import functions as F

        value = F.expr(self._sink.value) if self._sink.value else F.to_json(F.struct(*visible(batch)))
        columns = [value.cast("binary").alias("value")]
        if self._sink.key:
            columns.append(F.expr(self._sink.key).cast("string").cast("binary").alias("key"))
        options = {**self._connection, **self._sink.options, "topic": self._sink.topic}
        batch.select(*columns).write.format("kafka").options(**options).save()


class ConsoleWriter:
    def __init__(self, sink: Console) -> None:
        self._sink = sink

    def prepare(self, session: "SparkSession") -> None:
        pass

    def write(self, batch: "DataFrame", number: int) -> None:
        print(f"batch {number}", flush=True)
        batch.select(*visible(batch)).show(self._sink.rows, truncate=False)
