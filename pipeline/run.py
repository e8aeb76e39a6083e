"""Runs a pipeline: looks first, then starts its queries, watches them, and stops them cleanly.

A batch goes to all sinks in turn; what is done and what is not is for the sinks to know (`sinks.py`).
"""

import signal
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from trilogue.pipeline import metrics, sinks
from trilogue.pipeline.check import Report, examine
from trilogue.pipeline.checkpoint import DEAD_LETTERS, ROWS, Checkpoint
from trilogue.pipeline.decode import first_line
from trilogue.pipeline.errors import PipelineError
from trilogue.pipeline.files import HadoopFiles
from trilogue.pipeline.lock import alone
from trilogue.pipeline.model import Parquet, Pipeline
from trilogue.pipeline.plan import FAILED
from trilogue.pipeline.progress import Batch, Totals
from trilogue.pipeline.reading import AVAILABLE_NOW
from trilogue.pipeline.source import connection
from trilogue.pipeline.spark import session as make_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

LOOK_SECONDS = 0.3
FINISH_SECONDS = 30.0
"""How long a batch under way may take when we are asked to stop; afterwards it is broken off, and comes again."""

Say = Callable[[str], None]


def run(pipeline: Pipeline, *, say: Say, metrics_at: tuple[str, int] | None = None) -> Totals:
    """Until the topics are read (available-now), or until SIGTERM or Ctrl-C."""
    session = make_session(pipeline)
    try:
        return run_on(session, pipeline, say=say, metrics_at=metrics_at)
    finally:
        session.stop()


def run_on(
    session: "SparkSession", pipeline: Pipeline, *, say: Say, metrics_at: tuple[str, int] | None = None
) -> Totals:
    report = examine(session, pipeline)
    if report.problems:
        raise PipelineError("\n".join(report.problems))
    return Running(session, pipeline, report, say).until_the_end(metrics_at)


class Running:
    def __init__(self, session: "SparkSession", pipeline: Pipeline, report: Report, say: Say) -> None:
        self._session, self._pipeline, self._say = session, pipeline, say
        self._stop = threading.Event()
        self._totals = Totals(pipeline.name)
        self._seen: dict[str, int] = {}
        self._files = HadoopFiles(session)
        self._checkpoint = Checkpoint(self._files, pipeline.checkpoint)
        assert report.identity is not None
        assert report.plan is not None
        self._identity, self._plan, self._fits = report.identity, report.plan, report.fits
        self._writers: list[sinks.Writer] = []

    # -- queries -------------------------------------------------------------------------------

    def _start(self) -> "dict[str, StreamingQuery]":
        rows = self._plan.good.writeStream.foreachBatch(self._write).outputMode(self._pipeline.pipeline.output)
        queries = {ROWS: self._begin(rows, ROWS)}
        if self._plan.bad is not None:
            options = {**connection(self._pipeline.source), "topic": str(self._pipeline.bad_records.topic)}
            queries[DEAD_LETTERS] = self._begin(
                self._plan.bad.writeStream.format("kafka").options(**options), DEAD_LETTERS
            )
        return queries

    def _begin(self, writer: "DataStreamWriter", name: str) -> "StreamingQuery":
        said = self._pipeline.pipeline.trigger
        timed = writer.trigger(availableNow=True) if said == AVAILABLE_NOW else writer.trigger(processingTime=said)
        return (
            timed.queryName(f"{self._pipeline.name} {name}")
            .option("checkpointLocation", self._checkpoint.place(name))
            .start()
        )

    def _write(self, batch: "DataFrame", number: int) -> None:
        """Called by Spark, in a thread of its own."""
        again = self._pipeline.stateful or len(self._writers) > 1
        if again:
            # Computed once, and wholly: state is saved by computing, and a sink that knows the batch would not.
            batch.persist()
            batch.write.format("noop").mode("overwrite").save()
        try:
            for writer in self._writers:
                writer.write(batch, number)
        finally:
            if again:
                batch.unpersist()

    # -- watching ------------------------------------------------------------------------------

    def until_the_end(self, metrics_at: tuple[str, int] | None) -> Totals:
        with ExitStack() as stack:
            for sink in self._pipeline.sinks:
                if isinstance(sink, Parquet):
                    stack.enter_context(alone(self._pipeline.place(sink.path)))
            # Looked at again: another run may have begun and ended since we looked at the rest.
            known = self._checkpoint.identity()
            settled = self._identity if known is None or known.id == self._identity.id else known
            if settled != known:
                self._checkpoint.write(settled)
            self._writers = sinks.opened(self._pipeline, self._files, settled.id, self._fits, self._say)
            for writer in self._writers:
                writer.prepare(self._session)
            if metrics_at is not None:
                port = stack.enter_context(metrics.serving(*metrics_at, self._totals.text))
                self._say(f"metrics at http://{metrics_at[0]}:{port}/metrics")
            stack.callback(signal.signal, signal.SIGTERM, signal.signal(signal.SIGTERM, self._asked_to_stop))
            stack.callback(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, self._asked_to_stop))
            queries = self._start()
            try:
                self._watch(queries)
            finally:
                for query in queries.values():
                    query.stop()
        return self._totals

    def _asked_to_stop(self, *_: object) -> None:
        self._stop.set()

    def _watch(self, queries: "dict[str, StreamingQuery]") -> None:
        while any(query.isActive for query in queries.values()) and not self._stop.wait(LOOK_SECONDS):
            self._look(queries)
        if self._stop.is_set():
            self._say("stopping: the batch under way is finished first")
            deadline = time.monotonic() + FINISH_SECONDS
            while time.monotonic() < deadline and any(each.status["isTriggerActive"] for each in queries.values()):
                time.sleep(LOOK_SECONDS)
        self._look(queries)

    def _look(self, queries: "dict[str, StreamingQuery]") -> None:
        for name, query in queries.items():
            for each in query.recentProgress:
                batch = Batch.of(name, plain(each))
                if batch is not None and batch.number > self._seen.get(name, -1):
                    self._seen[name] = batch.number
                    self._totals.add(batch)
                    self._say(batch.line())
            problem = query.exception()
            if problem is not None:
                raise PipelineError(f"{name}: {reason(str(problem))}")


def plain(progress: Any) -> dict[str, Any]:
    import json

    found: dict[str, Any] = json.loads(progress.json)
    return found


def reason(text: str) -> str:
    """Of a query's obituary, the line that says something."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    for line in lines:
        if FAILED in line:
            return line[line.index(FAILED) + len("trilogue: ") :]
    for line in lines:
        if line.startswith(("Caused by:", "trilogue.", "pyspark.errors")) or "data loss" in line.lower():
            return line.removeprefix("Caused by: ")
    return first_line(Exception(text))
