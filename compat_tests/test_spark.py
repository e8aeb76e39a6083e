"""Spark's Kafka source and sink in batch jobs: what is read, from where to where, in how many parts; and written."""

import datetime
import json
from collections.abc import Iterable

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from compat_tests.records import (
    Record,
    delete_topic,
    forget_before,
    make_topic,
    new_name,
    new_topic,
    numbered,
    placed,
    producer,
    read,
    send,
    values,
    write,
)
from compat_tests.spark import CLIENT

pytestmark = [pytest.mark.java, pytest.mark.slow]

EARLIEST, LATEST = -2, -1  # in the JSON that Spark takes
NOON_MS = 1_700_000_000_000
KEPT = {"retention.ms": "-1"}
"""For topics whose records are that old: a look at retention may come at any time."""


def load(spark: SparkSession, bootstrap: str, **options: object) -> DataFrame:
    given = {name.replace("_", "."): str(value) for name, value in options.items()}
    return spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap).options(**given).load()


def offsets(topic: str, *by_partition: int) -> str:
    return json.dumps({topic: {str(index): offset for index, offset in enumerate(by_partition)}})


def found(frame: DataFrame) -> list[str]:
    """The values, partition by partition, in the order of offsets."""
    rows = frame.select("partition", "offset", sql.col("value").cast("string")).collect()
    return [value for *_, value in sorted(map(tuple, rows))]


def both(*ranges: tuple[int, int]) -> list[str]:
    return values(each for part, (start, stop) in enumerate(ranges) for each in numbered(part, start, stop))


@pytest.fixture(scope="module")
def hundred(bootstrap: str) -> str:
    """A topic with 100 records in each of its two partitions, one every second since noon."""
    topic = new_topic(bootstrap, "spark-hundred", config=KEPT)
    for part in (0, 1):
        records = numbered(part, 0, 100)
        write(bootstrap, topic, [at(each, NOON_MS + 1000 * second) for second, each in enumerate(records)])
    return topic


def at(record: Record, timestamp_ms: int) -> Record:
    return Record(record.value, partition=record.partition, timestamp_ms=timestamp_ms)


@pytest.mark.feature(CLIENT, "batch read with headers")
def test_a_batch_reads_every_column_as_it_was_sent(spark: SparkSession, bootstrap: str) -> None:
    topic = new_topic(bootstrap, "spark-columns", config=KEPT)
    sent = [
        Record("plain", None, 0, (), NOON_MS),
        Record("keyed", "k", 0, (("a", b"1"), ("a", b"2"), ("empty", b"")), NOON_MS + 1),
        Record("", "no value", 1, (("binary", b"\x00\xff"),), NOON_MS + 2),
    ]
    write(bootstrap, topic, sent)

    frame = load(spark, bootstrap, subscribe=topic, includeHeaders=True)

    rows = frame.orderBy("partition", "offset").collect()
    seen = [
        Record(
            value=bytes(row.value).decode(),
            key=None if row.key is None else bytes(row.key).decode(),
            partition=row.partition,
            headers=tuple((header.key, bytes(header.value)) for header in row.headers or ()),
            timestamp_ms=round(row.timestamp.replace(tzinfo=datetime.UTC).timestamp() * 1000),
            offset=row.offset,
        )
        for row in rows
    ]
    assert seen == placed(sent)
    assert {(row.topic, row.timestampType) for row in rows} == {(topic, 0)}


@pytest.mark.feature(CLIENT, "batch read with offsets")
@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ((EARLIEST, EARLIEST), (LATEST, LATEST), both((0, 100), (0, 100))),
        ((10, 20), (30, LATEST), both((10, 30), (20, 100))),
        ((99, 100), (100, 100), both((99, 100), (0, 0))),
    ],
    ids=["all", "inside", "the last one"],
)
def test_a_batch_reads_from_offset_to_offset(
    start: tuple[int, int],
    end: tuple[int, int],
    expected: list[str],
    spark: SparkSession,
    bootstrap: str,
    hundred: str,
) -> None:
    asked = {"startingOffsets": offsets(hundred, *start), "endingOffsets": offsets(hundred, *end)}
    assert found(load(spark, bootstrap, subscribe=hundred, **asked)) == expected


@pytest.mark.feature(CLIENT, "batch read by timestamp")
def test_a_batch_reads_from_time_to_time(spark: SparkSession, bootstrap: str, hundred: str) -> None:
    # A starting time is the first record not before it, and so is an ending time, which is left out itself.
    by_partition = {
        "startingOffsetsByTimestamp": offsets(hundred, NOON_MS + 10_000, NOON_MS + 19_001),
        "endingOffsetsByTimestamp": offsets(hundred, NOON_MS + 30_000, NOON_MS + 10_000_000),
    }
    assert found(load(spark, bootstrap, subscribe=hundred, **by_partition)) == both((10, 30), (20, 100))
    for_all = {"startingTimestamp": NOON_MS + 98_500, "endingTimestamp": NOON_MS + 99_000}
    assert found(load(spark, bootstrap, subscribe=hundred, **for_all)) == []
    for_all["endingTimestamp"] += 1
    assert found(load(spark, bootstrap, subscribe=hundred, **for_all)) == both((99, 100), (99, 100))


@pytest.mark.feature(CLIENT, "batch read by timestamp")
def test_a_starting_time_after_the_last_record_is_an_error_or_the_end(
    spark: SparkSession, bootstrap: str, hundred: str
) -> None:
    late = {"startingTimestamp": NOON_MS + 10_000_000}
    with pytest.raises(PySparkException, match="No offset matched"):
        found(load(spark, bootstrap, subscribe=hundred, **late))
    strategy = {"startingOffsetsByTimestampStrategy": "latest"}
    assert found(load(spark, bootstrap, subscribe=hundred, **late, **strategy)) == []


@pytest.mark.feature(CLIENT, "subscribePattern and assign")
def test_a_batch_reads_the_topics_of_a_pattern_or_the_partitions_it_names(spark: SparkSession, bootstrap: str) -> None:
    name = new_name("spark-pattern")
    for word in ("a", "b", "other"):
        write(bootstrap, make_topic(bootstrap, f"{name}.{word}"), [Record(word, partition=part) for part in (0, 1)])

    pattern = load(spark, bootstrap, subscribePattern=rf"{name}\.[a-z]$")
    assert sorted(found(pattern)) == ["a", "a", "b", "b"]
    several = load(spark, bootstrap, subscribe=f"{name}.a,{name}.other")
    assert sorted(found(several)) == ["a", "a", "other", "other"]
    assign = load(spark, bootstrap, assign=json.dumps({f"{name}.b": [1]}))
    assert found(assign) == ["b"]


@pytest.mark.feature(CLIENT, "minPartitions")
@pytest.mark.parametrize(("option", "parts"), [({}, 2), ({"minPartitions": 8}, 8)], ids=["as they are", "eight"])
def test_partitions_are_read_in_several_parts(
    option: dict[str, int], parts: int, spark: SparkSession, bootstrap: str, hundred: str
) -> None:
    frame = load(spark, bootstrap, subscribe=hundred, **option)
    assert frame.rdd.getNumPartitions() == parts
    assert found(frame) == both((0, 100), (0, 100))


@pytest.mark.feature(CLIENT, "failOnDataLoss")
def test_what_was_deleted_fails_a_batch_or_is_passed_over(spark: SparkSession, bootstrap: str) -> None:
    topic = new_topic(bootstrap, "spark-loss")
    write(bootstrap, topic, numbered(0, 0, 100) + numbered(1, 0, 100))
    forget_before(bootstrap, topic, 0, 40)
    asked = {"subscribe": topic, "startingOffsets": offsets(topic, 10, 10), "endingOffsets": offsets(topic, 60, 60)}

    with pytest.raises(Py4JJavaError, match="Some data may have been lost"):
        found(load(spark, bootstrap, **asked, failOnDataLoss=True))
    assert found(load(spark, bootstrap, **asked, failOnDataLoss=False)) == both((40, 60), (10, 60))


@pytest.mark.feature(CLIENT, "read_committed")
def test_read_committed_sees_neither_aborted_nor_open_transactions(spark: SparkSession, bootstrap: str) -> None:
    topic = new_topic(bootstrap, "spark-committed")
    transactional = producer(bootstrap, transactional_id=new_name("spark"))
    transactional.init_transactions(30)
    for start, end in ((0, "commit"), (10, "abort"), (20, "commit"), (30, "open")):
        transactional.begin_transaction()
        send(transactional, topic, numbered(0, start, start + 10) + numbered(1, start, start + 10))
        if end == "commit":
            transactional.commit_transaction(30)
        elif end == "abort":
            transactional.abort_transaction(30)

    committed = values(numbered(0, 0, 10) + numbered(0, 20, 30) + numbered(1, 0, 10) + numbered(1, 20, 30))
    isolation = {"kafka.isolation.level": "read_committed"}
    assert found(load(spark, bootstrap, subscribe=topic, **isolation)) == committed
    assert found(load(spark, bootstrap, subscribe=topic, **isolation, minPartitions=6)) == committed
    assert found(load(spark, bootstrap, subscribe=topic)) == both((0, 40), (0, 40))

    transactional.abort_transaction(30)
    assert found(load(spark, bootstrap, subscribe=topic, **isolation)) == committed


@pytest.mark.feature(CLIENT, "batch write")
def test_a_batch_writes_keys_headers_and_partitions(spark: SparkSession, bootstrap: str) -> None:
    topics = [new_topic(bootstrap, f"spark-write-{word}") for word in "ab"]
    rows = [
        (topics[number % 2], f"k{number}", f"v{number}", number // 2 % 2, [("n", b"%d" % number)])
        for number in range(200)
    ]
    schema = "topic string, key string, value string, partition int, headers array<struct<key: string, value: binary>>"

    save(spark.createDataFrame(rows, schema), bootstrap, includeHeaders="true")

    for index, topic in enumerate(topics):
        assert sorted(without_times(read(bootstrap, topic))) == sorted(
            (row[3], row[1], row[2], tuple(row[4])) for row in rows[index::2]
        )


def save(frame: DataFrame, bootstrap: str, **options: str) -> None:
    frame.write.format("kafka").option("kafka.bootstrap.servers", bootstrap).options(**options).save()


def without_times(records: Iterable[Record]) -> list[tuple[object, ...]]:
    return [(each.partition, each.key, each.value, each.headers) for each in records]


@pytest.mark.feature(CLIENT, "batch write")
def test_what_a_topic_refuses_fails_the_write(spark: SparkSession, bootstrap: str) -> None:
    topic = new_topic(bootstrap, "spark-small", config={"max.message.bytes": "1000"})
    frame = spark.createDataFrame([("x" * 5000,)], "value string")
    with pytest.raises(Py4JJavaError, match="RecordTooLarge"):
        save(frame, bootstrap, topic=topic)
    assert read(bootstrap, topic) == []


@pytest.mark.feature(CLIENT, "batch read after delete and create")
def test_a_topic_made_anew_is_read_from_its_new_beginning(spark: SparkSession, bootstrap: str) -> None:
    topic = new_topic(bootstrap, "spark-again")
    write(bootstrap, topic, numbered(0, 0, 50))
    assert found(load(spark, bootstrap, subscribe=topic)) == both((0, 50))
    delete_topic(bootstrap, topic)
    make_topic(bootstrap, topic)
    write(bootstrap, topic, numbered(0, 100, 120))
    assert found(load(spark, bootstrap, subscribe=topic)) == both((100, 120))
