"""Structured Streaming from and to topics: triggers, limits, lost data, transactions, restarts from a checkpoint."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from compat_tests.records import (
    Record,
    add_partitions,
    forget_before,
    make_topic,
    new_name,
    new_topic,
    numbered,
    producer,
    read,
    send,
    values,
    wait_until,
    write,
)
from compat_tests.spark import CLIENT
from compat_tests.spark_copy import A_BATCH

pytestmark = [pytest.mark.java, pytest.mark.slow]

ROOT = Path(__file__).parents[1]
START_SECONDS = 120


def stream(spark: SparkSession, bootstrap: str, **options: object) -> DataFrame:
    given = {"startingOffsets": "earliest", **{name: str(value) for name, value in options.items()}}
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap).options(**given)
    headers = ["headers"] if "includeHeaders" in given else []
    return source.load().selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)", *headers)


class Sink:
    """A table in the driver's memory."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark, self._name = spark, new_name("sink").replace("-", "_")

    def writer(self, frame: DataFrame) -> DataStreamWriter:
        return frame.writeStream.format("memory").queryName(self._name)

    def values(self) -> list[str]:
        return sorted(row.value for row in self._spark.table(self._name).select("value").collect())


@contextmanager
def running(writer: DataStreamWriter) -> Iterator[StreamingQuery]:
    query = writer.start()
    try:
        yield query
    finally:
        query.stop()


def run_once(writer: DataStreamWriter) -> StreamingQuery:
    """All that is there now, and then an end."""
    query = writer.trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(START_SECONDS), "the query does not end"
    finally:
        query.stop()
    return query


def to_topic(frame: DataFrame, bootstrap: str, topic: str, folder: Path) -> DataStreamWriter:
    writer = frame.writeStream.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("topic", topic)
    return writer.option("checkpointLocation", str(folder / f"checkpoint-{topic}"))


@pytest.fixture
def sink(spark: SparkSession) -> Sink:
    return Sink(spark)


@pytest.mark.feature(CLIENT, "readStream with availableNow and maxOffsetsPerTrigger")
def test_available_now_reads_what_is_there_in_limited_batches(spark: SparkSession, bootstrap: str, sink: Sink) -> None:
    topic = new_topic(bootstrap, "stream-now")
    given = numbered(0, 0, 100) + numbered(1, 0, 100)
    write(bootstrap, topic, given)

    query = run_once(sink.writer(stream(spark, bootstrap, subscribe=topic, maxOffsetsPerTrigger=60)))

    assert sink.values() == values(given)
    batches = [batch["numInputRows"] for batch in query.recentProgress if batch["numInputRows"]]
    assert batches == [60, 60, 60, 20]


@pytest.mark.feature(CLIENT, "readStream in micro-batches")
def test_a_stream_sees_records_partitions_and_topics_as_they_come(
    spark: SparkSession, bootstrap: str, sink: Sink
) -> None:
    name = new_name("stream-live")
    topic = make_topic(bootstrap, f"{name}.one")
    options = {"subscribePattern": rf"^{name}\..*", "kafka.metadata.max.age.ms": 500, "minPartitions": 4}
    with running(sink.writer(stream(spark, bootstrap, **options)).trigger(processingTime="200 milliseconds")) as query:
        expected: list[str] = []

        def arrives(to: str, *records: Record) -> None:
            write(bootstrap, to, records)
            expected.extend(values(records))
            wait_until(f"{records} arrive", lambda: sink.values() == sorted(expected))

        for number in range(3):
            arrives(topic, *numbered(0, number, number + 1), *numbered(1, number, number + 1))
        add_partitions(bootstrap, topic, 3)
        arrives(topic, Record("in the new partition", partition=2))
        arrives(make_topic(bootstrap, f"{name}.two"), Record("in the new topic"))
        assert query.exception() is None


@pytest.mark.feature(CLIENT, "continuous trigger (experimental)")
def test_the_continuous_trigger_reads_without_batches(spark: SparkSession, bootstrap: str, tmp_path: Path) -> None:
    source, target = new_topic(bootstrap, "stream-continuous"), new_topic(bootstrap, "stream-continued")
    first, then = ([*numbered(0, *span), *numbered(1, *span)] for span in ((0, 20), (20, 40)))
    write(bootstrap, source, first)
    frame = stream(spark, bootstrap, subscribe=source).select("value")
    with running(to_topic(frame, bootstrap, target, tmp_path).trigger(continuous="500 milliseconds")) as query:
        wait_until("what was there", lambda: in_topic(bootstrap, target) == values(first))
        write(bootstrap, source, then)
        wait_until("what came", lambda: in_topic(bootstrap, target) == sorted(values(first + then)))
        assert query.exception() is None


def in_topic(bootstrap: str, topic: str) -> list[str]:
    return sorted(values(read(bootstrap, topic)))


@pytest.mark.feature(CLIENT, "writeStream")
def test_write_stream_copies_a_topic_and_goes_on_after_a_stop(
    spark: SparkSession, bootstrap: str, tmp_path: Path
) -> None:
    source, target = new_topic(bootstrap, "stream-in"), new_topic(bootstrap, "stream-out")
    headers = (("trace", b"\x01\x02"),)
    given = [Record(f"v{number:03}", f"k{number}", number % 2, headers) for number in range(300)]
    for start in (0, 100, 200):
        write(bootstrap, source, given[start : start + 100])
        frame = stream(spark, bootstrap, subscribe=source, includeHeaders=True, maxOffsetsPerTrigger=40)
        run_once(to_topic(frame, bootstrap, target, tmp_path).option("includeHeaders", "true"))

    copied = sorted((each.value, each.key, each.headers) for each in read(bootstrap, target))
    assert copied == [(each.value, each.key, headers) for each in given]


@pytest.mark.feature(CLIENT, "failOnDataLoss")
def test_what_was_deleted_between_two_runs_fails_the_stream_or_is_passed_over(
    spark: SparkSession, bootstrap: str, tmp_path: Path
) -> None:
    source, target = new_topic(bootstrap, "stream-loss", 1), new_topic(bootstrap, "stream-left", 1)

    def run(**options: object) -> list[str]:
        run_once(to_topic(stream(spark, bootstrap, subscribe=source, **options), bootstrap, target, tmp_path))
        return values(read(bootstrap, target, 1))

    write(bootstrap, source, numbered(0, 0, 50))
    assert run() == values(numbered(0, 0, 50))
    write(bootstrap, source, numbered(0, 50, 100))
    forget_before(bootstrap, source, 0, 70)

    with pytest.raises(StreamingQueryException, match="Some data may have been lost"):
        run()
    assert values(read(bootstrap, target, 1)) == values(numbered(0, 0, 50))
    assert run(failOnDataLoss=False) == values(numbered(0, 0, 50) + numbered(0, 70, 100))


@pytest.mark.feature(CLIENT, "read_committed")
def test_a_stream_of_committed_records_passes_over_the_rest(spark: SparkSession, bootstrap: str, sink: Sink) -> None:
    topic = new_topic(bootstrap, "stream-committed")
    transactional = producer(bootstrap, transactional_id=new_name("stream"))
    transactional.init_transactions(30)

    def transact(start: int, end: Callable[[float], None] | None) -> list[str]:
        records = numbered(0, start, start + 10) + numbered(1, start, start + 10)
        transactional.begin_transaction()
        send(transactional, topic, records)
        if end:
            end(30)
        return values(records)

    options = {"subscribe": topic, "kafka.isolation.level": "read_committed", "maxOffsetsPerTrigger": 7}
    with running(sink.writer(stream(spark, bootstrap, **options))) as query:
        expected = transact(0, transactional.commit_transaction)
        transact(10, transactional.abort_transaction)
        query.processAllAvailable()
        assert sink.values() == sorted(expected)
        held_back = transact(20, None)
        query.processAllAvailable()
        assert sink.values() == sorted(expected)
        transactional.commit_transaction(30)
        query.processAllAvailable()
        assert sink.values() == sorted(expected + held_back)


@pytest.mark.feature(CLIENT, "restart from a checkpoint after kill -9")
def test_a_killed_driver_goes_on_from_its_checkpoint_without_loss_or_repetition(
    spark: SparkSession, bootstrap: str, tmp_path: Path
) -> None:
    topic = new_topic(bootstrap, "stream-killed")
    given = numbered(0, 0, 1000) + numbered(1, 0, 1000)
    write(bootstrap, topic, given)
    committed, planned = (tmp_path / "checkpoint" / name for name in ("commits", "offsets"))
    cut_short = 0
    for wanted in (2, 6):
        with driver(bootstrap, topic, tmp_path, "forever") as process:
            wait_until(
                f"batch {wanted} is done and the next one under way",
                lambda process=process, wanted=wanted: (
                    alive(process) and batches(planned) > batches(committed) >= wanted
                ),
                START_SECONDS,
            )
        cut_short += batches(planned) > batches(committed)
        assert batches(committed) * A_BATCH < len(given), "the kill came too late: all is copied"
    with driver(bootstrap, topic, tmp_path, "once") as process:
        assert process.wait(START_SECONDS) == 0, log(tmp_path)

    copied = [row.value for row in spark.read.text(str(tmp_path / "output")).collect()]
    assert sorted(copied) == values(given)
    assert cut_short, "no kill has met a batch under way"


@contextmanager
def driver(bootstrap: str, topic: str, folder: Path, how: str) -> Iterator[subprocess.Popen[bytes]]:
    """The program and its JVM, which die together by SIGKILL."""
    command = [sys.executable, "-m", "compat_tests.spark_copy", bootstrap, topic, str(folder), how]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tools'}"}
    with open(folder / "driver.log", "ab") as out:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out, stderr=out, start_new_session=True)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):  # it has ended by itself, and its JVM with it
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def alive(process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None, "the driver has ended"
    return True


def batches(folder: Path) -> int:
    """How many a checkpoint knows: planned in `offsets`, done in `commits`."""
    return sum(path.name.isdigit() for path in folder.iterdir()) if folder.is_dir() else 0


def log(folder: Path) -> str:
    return (folder / "driver.log").read_text()[-3000:]
