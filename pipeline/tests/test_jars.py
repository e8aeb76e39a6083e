"""Which jars a pipeline needs, and what is said if they cannot be had."""

from pathlib import Path

import pytest

from trilogue.pipeline import jars
from trilogue.pipeline.errors import PipelineError
from trilogue.pipeline.reading import parse
from trilogue.pipeline.spark import settings

KAFKA = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"


def pipeline(sink="console", **tables):
    sinks = [{"type": sink} if sink == "console" else {"type": sink, "path": "t"}]
    said = {"pipeline": {"name": "x", "checkpoint": "c"}, "source": {"topics": ["t"]}, "sinks": sinks}
    return parse({**said, **tables}, Path("x.toml"))


@pytest.mark.parametrize(
    ("found", "more"),
    [
        (pipeline(), []),
        (pipeline("parquet"), []),
        (pipeline("delta"), ["io.delta:delta-spark_2.13:4.0.0"]),
        (pipeline(decode={"format": "avro", "schema": "{}"}), ["org.apache.spark:spark-avro_2.13:4.0.0"]),
        (pipeline(inputs=[{"name": "d", "path": "d", "format": "delta"}]), ["io.delta:delta-spark_2.13:4.0.0"]),
    ],
)
def test_only_what_is_used_is_asked_for(found, more):
    assert jars.coordinates(found, "4.0.0") == [KAFKA, *more]


def test_a_spark_that_delta_does_not_know():
    with pytest.raises(PipelineError, match=r"no Delta Lake is known for PySpark 4\.9\.0"):
        jars.coordinates(pipeline("delta"), "4.9.0")


def test_what_ivy_could_not_find_is_named():
    output = "x [unresolved dependency: org.apache.spark#spark-nonesuch_2.13;4.0.0: not found]\n"

    assert jars.unavailable(["a:b:1", "c:d:2"], output) == (
        "cannot be had from Maven Central: org.apache.spark:spark-nonesuch_2.13:4.0.0; "
        "offline, put the jars into a folder and say --jars"
    )


def test_where_ivy_says_nothing_all_are_named():
    said = jars.unavailable(["a:b:1", "c:d:2"], "java.net.UnknownHostException: repo")

    assert said.startswith(
        "cannot be had from Maven Central: a:b:1, c:d:2 (java.net.UnknownHostException: repo); offline"
    )


def test_a_folder_of_jars(tmp_path):
    with pytest.raises(PipelineError, match="there are no jars in this folder"):
        jars.from_folder(tmp_path)
    (tmp_path / "b.jar").touch()
    (tmp_path / "a.jar").touch()

    assert jars.from_folder(tmp_path) == [str(tmp_path / "a.jar"), str(tmp_path / "b.jar")]


def test_what_was_resolved_is_not_asked_for_again(tmp_path, monkeypatch):
    asked = []

    def ask(wanted, place, repositories):
        asked.append(wanted)
        (place / "x.jar").touch()
        return [str(place / "x.jar")]

    monkeypatch.setenv("TRILOGUE_CACHE", str(tmp_path))
    monkeypatch.setattr(jars, "ask_ivy", ask)

    assert jars.resolve([KAFKA]) == jars.resolve([KAFKA]) == [str(tmp_path / "ivy" / "x.jar")]
    assert asked == [[KAFKA]]
    (tmp_path / "ivy" / "x.jar").unlink()
    jars.resolve([KAFKA])
    assert len(asked) == 2


def test_one_machine_has_its_own_settings_and_the_file_the_last_word():
    local = settings(pipeline(), ["a.jar"])
    cluster = settings(pipeline(spark={"master": "spark://h:7077", "conf": {"spark.log.level": "WARN"}}), [])

    assert local["spark.sql.shuffle.partitions"] == "2"
    assert "spark.sql.shuffle.partitions" not in cluster
    assert (local["spark.log.level"], cluster["spark.log.level"]) == ("ERROR", "WARN")
    assert local["spark.jars"] == "a.jar"
