"""Steps and sinks on a real Spark, each as small as it can be; and all that stops a pipeline before it writes."""

import json
import re
import struct
from pathlib import Path

import pytest

from trilogue.client.blocking import run as blocking
from trilogue.pipeline import plan
from trilogue.pipeline.check import examine
from trilogue.pipeline.errors import PipelineError
from trilogue.pipeline.lock import alone
from trilogue.pipeline.reading import parse
from trilogue.pipeline.redrive import Outcome, Redrive
from trilogue.pipeline.run import run_on
from trilogue.pipeline.tests.test_examples import read_all
from trilogue.wire.apis.delete_records import DeleteRecordsRequest, DeleteRecordsResponse

pytestmark = [pytest.mark.slow, pytest.mark.java]


@pytest.fixture
def make(ours, tmp_path):
    """A pipeline of tables; its topic, checkpoint and Parquet table have names of their own in every test."""

    def made(topic: str, **tables):
        said = {
            "pipeline": {"name": "test", "checkpoint": "checkpoint"},
            "source": {"topics": [topic], "bootstrap": ours.bootstrap, **tables.pop("source", {})},
            "sinks": [{"type": "parquet", "path": "table"}],
            **tables,
        }
        return parse(said, tmp_path / "test.toml")

    return made


def run(spark, pipeline) -> list[str]:
    said: list[str] = []
    run_on(spark, pipeline, say=said.append)
    return said


def table(spark, tmp_path, *columns, kind="parquet", name="table"):
    rows = spark.read.format(kind).option("mergeSchema", "true").load(str(tmp_path / name)).collect()
    return sorted(tuple(row[column] for column in columns) for row in rows)


def numbers(*values) -> list[str]:
    return [json.dumps({"id": value}) for value in values]


# -- decoding --------------------------------------------------------------------------------------


def test_text_and_where_it_came_from(spark, ours, make, tmp_path):
    ours.put("text", ["one", None, "zwei"], key="k")
    columns = {
        "value": "value",
        "key": "_key",
        "place": "concat(_topic, _partition, '/', _offset)",
        "gone": "_tombstone",
    }

    run(spark, make("text", decode={"format": "text"}, steps=[{"type": "select", "columns": columns}]))

    found = spark.read.parquet(str(tmp_path / "table")).orderBy("place").collect()
    assert [tuple(row) for row in found] == [
        ("one", "k", "text0/0", False),
        (None, "k", "text0/1", True),
        ("zwei", "k", "text0/2", False),
    ]


AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]}],
}


def avro(number: int, name: str) -> bytes:
    text = name.encode()
    return bytes([number << 1, 2, len(text) << 1]) + text


def test_avro_framed_by_confluents_serialisers(spark, ours, make, tmp_path):
    ours.create("avro.dead")
    framed = [struct.pack(">bi", 0, 7) + avro(5, "five"), avro(6, "six"), struct.pack(">bi", 0, 7) + b"\x7f" * 20]
    ours.put("avro", [each.decode("ascii") for each in framed])
    decode = {"format": "avro", "schema": json.dumps(AVRO), "framing": "confluent"}
    bad = {"action": "dead-letter", "topic": "avro.dead"}

    run(spark, make("avro", decode=decode, bad_records=bad))

    assert table(spark, tmp_path, "id", "name") == [(5, "five")]
    errors = [dict(each.record.headers)["trilogue.error"] for each in read_all(ours, "avro.dead")]
    assert sorted(bytes(each).decode() for each in errors) == [
        "decode: not Avro of the schema",
        "decode: not framed as Confluent does it",
    ]


def test_a_schema_is_inferred_once_and_kept(spark, ours, make, tmp_path):
    ours.put("inferred", ['{"id": 1, "name": "a"}', '{"id": 2}'])
    pipeline = make("inferred")
    run(spark, pipeline)
    ours.put("inferred", ['{"id": 3, "name": "c", "new": true}'])
    run(spark, pipeline)

    assert table(spark, tmp_path, "id", "name") == [(1, "a"), (2, None), (3, "c")]
    assert spark.read.parquet(str(tmp_path / "table")).columns == ["id", "name"]
    kept = json.loads((tmp_path / "checkpoint" / "trilogue.json").read_text())
    assert kept["schemas"] == {"": "`id` bigint, `name` string"}


@pytest.mark.parametrize("action", ["fail", "drop"])
def test_a_value_is_parsed_once(spark, make, tmp_path, action):
    (tmp_path / "records").mkdir()
    schema = "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP"
    records = spark.read.schema(f"{schema}, headers ARRAY<STRUCT<key: STRING, value: BINARY>>").json(
        str(tmp_path / "records")
    )
    pipeline = make("any", decode={"schema": "id INT NOT NULL, n INT"}, steps=[{"type": "filter", "where": "n > id"}])

    good = plan.only_good(plan.judged(records, pipeline, {}), action)

    assert good.select("id", "n")._jdf.queryExecution().optimizedPlan().toString().count("from_json") == 1


def test_dead_letters_come_back_after_a_fix(spark, ours, make, tmp_path):
    ours.create("fixed.dead")
    ours.put("fixed", numbers(*range(10)), key="k")

    def wanting(that):
        steps = [{"type": "expect", "that": that}]
        bad = {"action": "dead-letter", "topic": "fixed.dead"}
        return make("fixed", decode={"schema": "id INT"}, steps=steps, bad_records=bad)

    run(spark, wanting("id < 4"))
    assert table(spark, tmp_path, "id") == [(i,) for i in range(4)]
    run(spark, wanting("id < 100"))  # the fix alone brings nothing back
    with ours.client() as client:
        assert blocking(Redrive(client, wanting("true")).run()) == Outcome({"fixed": 6})
    run(spark, wanting("id < 100"))

    assert table(spark, tmp_path, "id") == [(i,) for i in range(10)]
    assert len(read_all(ours, "fixed.dead")) == 6


def test_topics_by_a_pattern_from_a_point_in_time(spark, ours, make, tmp_path):
    for name in ("like-a", "like-b", "unlike"):
        ours.put(name, [f"{name} {i}" for i in range(3)])
    pattern = {"topics": [], "pattern": "like-.*", "start": "2023-11-14T22:13:20.001Z"}  # the second record of each

    run(spark, make("none", decode={"format": "text"}, source=pattern))

    assert table(spark, tmp_path, "value") == [("like-a 1",), ("like-a 2",), ("like-b 1",), ("like-b 2",)]


# -- steps -----------------------------------------------------------------------------------------


def test_bad_records_are_not_calculated_with(spark, ours, make, tmp_path):
    ours.put("divided", [json.dumps({"id": i, "by": i % 3}) for i in range(9)])
    steps = [
        {"type": "expect", "that": "by <> 0"},
        {"type": "derive", "columns": {"part": "id div by"}},
        {"type": "filter", "where": "part > 1"},
    ]

    run(spark, make("divided", decode={"schema": "id INT, by INT"}, steps=steps, bad_records={"action": "drop"}))

    assert table(spark, tmp_path, "id", "part") == [(4, 4), (5, 2), (7, 7), (8, 4)]


def test_a_join_with_files_and_a_join_with_a_topic(spark, ours, make, tmp_path):
    (tmp_path / "names.csv").write_text("id,name\n1,Ada\n2,Grace\n")
    ours.put("bought", [f'{{"id": {i}, "at": "2026-01-01T0{i}:00:00Z"}}' for i in (1, 2, 3)])
    ours.put("paid", [f'{{"order": {i}, "paid": "2026-01-01T0{i}:30:00Z"}}' for i in (1, 3)])
    inputs = [
        {"name": "names", "path": "names.csv", "format": "csv"},
        {
            "name": "payments",
            "topics": ["paid"],
            "decode": {"schema": "order INT, paid TIMESTAMP"},
            "watermark": {"column": "paid", "delay": "1 hour"},
        },
    ]
    steps = [
        {"type": "watermark", "column": "at", "delay": "1 hour"},
        {
            "type": "join",
            "with": "payments",
            "on": "stream.id = payments.order AND paid BETWEEN at AND at + INTERVAL 1 HOUR",
            "take": {"minutes": "(unix_timestamp(paid) - unix_timestamp(at)) div 60"},
        },
        {"type": "join", "with": "names", "on": "stream.id = names.id", "how": "left", "take": {"name": "names.name"}},
    ]

    run(spark, make("bought", decode={"schema": "id INT, at TIMESTAMP"}, inputs=inputs, steps=steps))

    assert table(spark, tmp_path, "id", "minutes", "name") == [(1, 30, "Ada"), (3, 30, None)]


def test_a_topic_as_a_sink_and_updates(spark, ours, make, tmp_path):
    ours.create("counted")
    ours.put("words", ["a", "b", "a"])
    pipeline = make(
        "words",
        pipeline={"name": "test", "checkpoint": "checkpoint", "output": "update"},
        decode={"format": "text"},
        steps=[{"type": "aggregate", "by": ["value"], "values": {"n": "count(*)"}}],
        sinks=[
            {"type": "topic", "topic": "counted", "key": "value"},
            {"type": "delta", "path": "counts", "key": ["value"]},
        ],
    )
    run(spark, pipeline)
    ours.put("words", ["a", "c"])
    run(spark, pipeline)

    assert table(spark, tmp_path, "value", "n", kind="delta", name="counts") == [("a", 3), ("b", 1), ("c", 1)]
    newest = {bytes(each.record.key): json.loads(bytes(each.record.value)) for each in read_all(ours, "counted")}
    assert newest == {b"a": {"value": "a", "n": 3}, b"b": {"value": "b", "n": 1}, b"c": {"value": "c", "n": 1}}


def test_small_files_come_together(spark, ours, make, tmp_path):
    ours.put("small", numbers(*range(40)))
    sinks = [{"type": "parquet", "path": "table", "compact": {"files": 4}}]

    said = run(spark, make("small", decode={"schema": "id INT"}, source={"max_records": 4}, sinks=sinks))

    assert sum("4 small files are 1 now" in line for line in said) == 3
    assert table(spark, tmp_path, "id") == [(i,) for i in range(40)]
    assert len(list((tmp_path / "table").glob("*.parquet"))) == 1


# -- columns that change ---------------------------------------------------------------------------


@pytest.fixture
def topic(tmp_path):
    """A name that no other test has."""
    return re.sub("[^a-z]", "-", tmp_path.name)


@pytest.fixture
def changing(spark, ours, make, topic):
    """A pipeline that is run again and again, each time with another schema and one more record."""

    def run_with(schema: str, record: str, **tables) -> list[str]:
        ours.put(topic, [record])
        return run(spark, make(topic, decode={"schema": schema}, **tables))

    return run_with


ALL_SINKS = [
    {"type": "parquet", "path": "table"},
    {"type": "delta", "path": "delta"},
    {"type": "delta", "path": "newest", "key": ["id"]},
]
KINDS = {"table": "parquet", "delta": "delta", "newest": "delta"}


def everywhere(spark, tmp_path, *columns) -> list[tuple]:
    """What the three tables hold, which has to be the same."""
    found = [table(spark, tmp_path, *columns, kind=kind, name=name) for name, kind in KINDS.items()]
    assert found[0] == found[1] == found[2]
    return found[0]


def test_columns_come_and_go_and_grow_wider(spark, changing, tmp_path):
    changing("id INT, temp INT", '{"id": 1, "temp": 5}', sinks=ALL_SINKS)
    said = changing(
        "id INT, temp BIGINT, place STRING", '{"id": 2, "temp": 5000000000, "place": "here"}', sinks=ALL_SINKS
    )
    changing("id SMALLINT, temp BIGINT", '{"id": 3, "temp": 7}', sinks=ALL_SINKS)
    changing("id INT", '{"id": 4}', sinks=ALL_SINKS)

    assert f"{tmp_path}/table: all files are written anew, for temp" in said
    assert everywhere(spark, tmp_path, "id", "temp", "place") == [
        (1, 5, None),
        (2, 5_000_000_000, "here"),
        (3, 7, None),
        (4, None, None),
    ]
    for name, kind in KINDS.items():
        rows = spark.read.format(kind).option("mergeSchema", "true").load(str(tmp_path / name))
        assert dict(rows.dtypes) == {"id": "int", "temp": "bigint", "place": "string"}


def test_what_is_inside_of_a_column_may_get_more(spark, changing, tmp_path):
    less = "id INT, at STRUCT<x: INT>, all ARRAY<STRUCT<n: INT>>, by MAP<STRING, STRUCT<n: INT>>"
    more = (
        "id INT, at STRUCT<x: INT, `y-y`: STRING>, all ARRAY<STRUCT<n: INT, m: INT>>, "
        "by MAP<STRING, STRUCT<n: INT, m: INT>>"
    )
    changing(less, '{"id": 1, "at": {"x": 1}, "all": [{"n": 1}], "by": {"a": {"n": 1}}}', sinks=ALL_SINKS)
    whole = '{"id": 2, "at": {"x": 2, "y-y": "b"}, "all": [{"n": 2, "m": 3}], "by": {"a": {"n": 2, "m": 3}}}'
    said = changing(more, whole, sinks=ALL_SINKS)
    changing(less, '{"id": 3, "at": {"x": 3}, "all": [{"n": 3}], "by": {"a": {"n": 3}}}', sinks=ALL_SINKS)
    changing(less, '{"id": 4, "at": null}', sinks=ALL_SINKS)

    assert not [line for line in said if "written anew" in line]
    assert everywhere(spark, tmp_path, "id", "at", "all", "by") == [
        (1, (1, None), [(1, None)], {"a": (1, None)}),
        (2, (2, "b"), [(2, 3)], {"a": (2, 3)}),
        (3, (3, None), [(3, None)], {"a": (3, None)}),
        (4, None, None, None),
    ]


def test_folders_keep_their_names_when_files_are_written_anew(spark, changing, tmp_path):
    sinks = [{"type": "parquet", "path": "table", "partition_by": ["code"]}]
    changing("code STRING, n INT", '{"code": "007", "n": 1}', sinks=sinks)
    changing("code STRING, n BIGINT", '{"code": "008", "n": 2}', sinks=sinks)

    assert sorted(each.name for each in (tmp_path / "table").glob("code=*")) == ["code=007", "code=008"]
    assert table(spark, tmp_path, "n") == [(1,), (2,)]


def test_a_type_that_cannot_be_read_together_is_refused_before_any_sink_is_written(
    spark, changing, make, topic, tmp_path
):
    changing("id INT, temp DOUBLE", '{"id": 1, "temp": 1.5}', sinks=ALL_SINKS)
    pipeline = make(topic, decode={"schema": "id INT, temp STRING"}, sinks=ALL_SINKS)

    said = refused(spark, pipeline, tmp_path).split("\n")

    assert said == [
        f"{tmp_path}/{name}: column temp is DOUBLE there and would be STRING: keep it with a step "
        '(derive, temp = "CAST(temp AS DOUBLE)"), give it another name, or write to a new table'
        for name in KINDS
    ]
    assert examine(spark, pipeline).problems == said
    assert everywhere(spark, tmp_path, "id", "temp") == [(1, 1.5)]


def test_other_folders_than_those_of_the_table_are_refused(spark, changing, make, topic, tmp_path):
    changing("id INT, day STRING", '{"id": 1, "day": "monday"}')
    sinks = [{"type": "parquet", "path": "table", "partition_by": ["day"]}]

    said = refused(spark, make(topic, decode={"schema": "id INT, day STRING"}, sinks=sinks), tmp_path)

    assert said == (
        f"{tmp_path}/table: the table is partitioned by nothing, and partition_by says day: "
        "undo that, or write to a new table"
    )


def test_a_table_of_an_earlier_version_knows_no_columns_and_is_looked_at(spark, changing, make, topic, tmp_path):
    changing("id INT, temp DOUBLE", '{"id": 1, "temp": 1.5}')
    for note in (tmp_path / "table" / "_trilogue" / "notes").glob("*.done"):
        said = json.loads(note.read_text())
        del said["columns"]
        note.write_text(json.dumps(said))
        (note.parent / f".{note.name}.crc").unlink(missing_ok=True)

    said = refused(spark, make(topic, decode={"schema": "id INT, temp STRING"}), tmp_path)

    assert "column temp is DOUBLE there and would be STRING" in said


# -- what stops it before anything is written ------------------------------------------------------


def refused(spark, pipeline, tmp_path) -> str:
    before = sorted(map(str, tmp_path.rglob("*")))
    with pytest.raises(PipelineError) as error:
        run(spark, pipeline)
    assert sorted(map(str, tmp_path.rglob("*"))) == before, "something was written"
    return str(error.value)


def test_topics_that_are_not_there(spark, ours, make, tmp_path):
    pipeline = make("nowhere", bad_records={"action": "dead-letter", "topic": "nowhere.dead"})

    assert refused(spark, pipeline, tmp_path).split("\n") == [
        f"[source]: `topics`: there is no topic nowhere at {ours.bootstrap}",
        f"[bad_records]: `topic`: there is no topic nowhere.dead at {ours.bootstrap}",
    ]


def test_a_broker_that_is_not_there(spark, make, tmp_path):
    assert "127.0.0.1:1 does not answer" in refused(spark, make("any", source={"bootstrap": "127.0.0.1:1"}), tmp_path)


def test_a_schema_that_does_not_fit(spark, ours, make, tmp_path):
    ours.put("unfit", ['{"id": "x"}', '{"id": "y"}'])
    decode = {"schema": "id INT"}

    assert refused(spark, make("unfit", decode=decode), tmp_path) == (
        "schema mismatch: 2 of the newest 2 records are bad (decode: not JSON of the schema id INT), "
        "and [bad_records] action is fail"
    )
    assert refused(spark, make("unfit", decode=decode, bad_records={"action": "drop"}), tmp_path) == (
        "schema mismatch: none of the newest 2 records can be decoded (decode: not JSON of the schema id INT)"
    )


def test_expressions_that_spark_does_not_understand(spark, ours, make, tmp_path):
    ours.put("typo", numbers(1))
    steps = [{"type": "filter", "where": "id > 0"}, {"type": "derive", "columns": {"x": "idd + 1"}}]

    said = refused(spark, make("typo", decode={"schema": "id INT"}, steps=steps), tmp_path)

    assert said.startswith("[[steps]] number 2 (derive): [UNRESOLVED_COLUMN.WITH_SUGGESTION]")
    assert "`idd`" in said


def test_records_that_are_gone(spark, ours, make, tmp_path):
    ours.put("gone", numbers(*range(10)))
    pipeline = make("gone", decode={"schema": "id INT"})
    run(spark, pipeline)
    ours.put("gone", numbers(*range(10, 20)))
    forget(ours, "gone", 15)

    assert refused(spark, pipeline, tmp_path) == (
        "data loss: gone-0: offsets 10 to 14 are gone; [source] allow_data_loss = true goes on without them"
    )
    run(spark, make("gone", decode={"schema": "id INT"}, source={"allow_data_loss": True}))
    assert table(spark, tmp_path, "id") == [(i,) for i in (*range(10), *range(15, 20))]


def forget(topics, topic: str, before: int) -> None:
    Asked = DeleteRecordsRequest.Topic
    wanted = [Asked(name=topic, partitions=[Asked.Partition(partition_index=0, offset=before)])]
    with topics.client() as client:
        request = DeleteRecordsRequest(topics=wanted, timeout_ms=10_000)
        answer = blocking(client.call_leader(topic, 0, request, DeleteRecordsResponse))
    assert answer.topics[0].partitions[0].error_code == 0


def test_a_new_checkpoint_over_a_table_that_is_there(spark, ours, make, tmp_path):
    ours.put("twice", numbers(1))
    run(spark, make("twice", decode={"schema": "id INT"}))
    about = {"name": "test", "checkpoint": "another"}

    said = refused(spark, make("twice", decode={"schema": "id INT"}, pipeline=about), tmp_path)

    assert said.startswith(f"{tmp_path}/table: there is a table already, and the checkpoint {tmp_path}/another is new")


def test_two_writers_of_one_table(spark, ours, make, tmp_path):
    ours.put("rivals", numbers(1))
    pipeline = make("rivals", decode={"schema": "id INT"})
    run(spark, pipeline)
    ours.put("rivals", numbers(2))

    with alone(str(tmp_path / "table")):
        said = refused(spark, pipeline, tmp_path)
    assert said == f"{tmp_path}/table: another pipeline is writing to this table at the moment"

    run(spark, pipeline)
    assert table(spark, tmp_path, "id") == [(1,), (2,)]


def test_check_explains_what_would_run(spark, ours, make, tmp_path):
    ours.put("explained", numbers(1, 2, -3))
    steps = [{"type": "expect", "name": "positive", "that": "id > 0"}]
    pipeline = make("explained", decode={"schema": "id INT"}, steps=steps, bad_records={"action": "drop"})

    report = examine(spark, pipeline)

    assert report.problems == []
    assert report.facts == [
        ("source", "explained: 1 partitions, 3 offsets to read, from earliest"),
        ("sample", "3 of the newest records: 2 good"),
        ("", "1 bad: expect: positive"),
        ("decode", "json"),
        ("steps", "1 expect: that = id > 0, name = positive"),
        ("sinks", f"Parquet at {tmp_path}/table: exactly once"),
        ("bad records", "are dropped"),
        ("checkpoint", f"{tmp_path}/checkpoint (available-now, append)"),
        ("rows", "id int"),
    ]
    assert not Path(tmp_path, "checkpoint").exists()


def test_a_bad_record_where_none_may_be_stops_the_pipeline(spark, ours, make, tmp_path):
    # Further back than the sample looks.
    ours.put("fatal", ["broken", *numbers(*range(300))])

    with pytest.raises(PipelineError, match="bad record at fatal-0, offset 0: decode: not JSON of the schema id INT"):
        run(spark, make("fatal", decode={"schema": "id INT"}))
