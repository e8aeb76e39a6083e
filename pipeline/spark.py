"""Spark's session, with the connectors that a pipeline needs and settings that suit one machine."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from trilogue.pipeline import jars
from trilogue.pipeline.errors import PipelineError
from trilogue.pipeline.model import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INSTALL = "`trilogue pipeline` needs PySpark: pip install 'trilogue[pipeline]'"

LOCAL = {
    # Spark's default of two hundred partitions takes ten seconds a batch on two cores.  State keeps the first number.
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
}
ALWAYS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "ERROR",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.streaming.stopTimeout": "60s",
    # Progress is looked at several times a second: more reports than can come between two looks are only carried about.
    "spark.sql.streaming.numRecentProgressUpdates": "8",
    # A checkpoint keeps so many batches: enough to look back, and a start lists them all.
    "spark.sql.streaming.minBatchesToRetain": "20",
}
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",
}


def version() -> str:
    """Of PySpark; says how to install it where it is missing."""
    try:
        import pyspark
    except ModuleNotFoundError:
        raise PipelineError(INSTALL) from None
    return str(pyspark.__version__)


def settings(pipeline: Pipeline, paths: list[str]) -> dict[str, str]:
    """All that the session is told; the file's own [spark.conf] has the last word."""
    local = pipeline.spark.master.startswith("local")
    return {
        **ALWAYS,
        **(LOCAL if local else {}),
        **(DELTA if jars.uses_delta(pipeline) else {}),
        "spark.jars": ",".join(paths),
        **pipeline.spark.conf,
    }


def session(pipeline: Pipeline) -> "SparkSession":
    found = version()
    jars.demand_java()
    if pipeline.spark.jars:
        paths = jars.from_folder(Path(pipeline.place(pipeline.spark.jars)))
    else:
        paths = jars.resolve(jars.coordinates(pipeline, found), pipeline.spark.conf.get("spark.jars.repositories", ""))
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if pipeline.spark.master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # or Spark looks for another address, and talks about it
    builder = SparkSession.builder.appName(f"trilogue {pipeline.name}").master(pipeline.spark.master)
    for name, value in settings(pipeline, paths).items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except PySparkRuntimeError as error:
        raise PipelineError(f"Spark does not start: {error.getMessage()}") from None
