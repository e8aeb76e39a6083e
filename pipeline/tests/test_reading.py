"""What a file may say, and what its owner hears if it says something else."""

from pathlib import Path

import pytest

from trilogue.pipeline.errors import PipelineError
from trilogue.pipeline.model import Compaction, Console, Filter, Parquet
from trilogue.pipeline.reading import parse, read

FILE = Path("orders.toml")
SMALLEST = {
    "pipeline": {"name": "orders", "checkpoint": "checkpoint"},
    "source": {"topics": ["orders"]},
    "sinks": [{"type": "console"}],
}


def complaint(**tables) -> str:
    with pytest.raises(PipelineError) as error:
        parse({**SMALLEST, **tables}, FILE)
    return str(error.value)


def test_the_smallest_pipeline():
    found = parse(SMALLEST, FILE)

    assert (found.name, found.source.topics, found.sinks) == ("orders", ["orders"], [Console()])
    assert found.bad_records.action == "fail"


def test_a_file(tmp_path):
    path = tmp_path / "p.toml"
    path.write_text(
        """
        [pipeline]
        name = "orders"
        checkpoint = "state"
        [source]
        pattern = "orders-.*"
        [[steps]]
        type = "filter"
        where = "amount > 0"
        [[sinks]]
        type = "parquet"
        path = "table"
        compact = { files = 8 }
        """
    )

    found = read(path)

    assert found.steps == [Filter(where="amount > 0")]
    assert found.sinks == [Parquet(path="table", compact=Compaction(files=8))]
    assert found.checkpoint == str(tmp_path / "state")
    assert found.place("s3a://bucket/x") == "s3a://bucket/x"


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        (
            {"source": {"topic": "x"}},
            "[source]: unknown key `topic`; allowed: topics, pattern, bootstrap, start, max_records, isolation, "
            "allow_data_loss, options",
        ),
        (
            {"pipeline": {"name": "x"}},
            "[pipeline]: missing key `checkpoint`; allowed: name, checkpoint, trigger, output",
        ),
        ({"source": {"topics": "x"}}, "[source]: `topics`: expected `array`, got `str`"),
        ({"decode": {"format": "xml"}}, "[decode]: `format`: invalid enum value 'xml'; allowed: json, avro, text, raw"),
        (
            {"sinks": [{"type": "console"}, {"type": "hive"}]},
            "[[sinks]] number 2: `type`: invalid value 'hive'; allowed: parquet, delta, topic, console",
        ),
        (
            {"steps": [{"type": "aggregate", "values": {"n": "count(*)"}, "window": {"size": "1 day"}}]},
            "[[steps]] number 1, window: missing key `column`; allowed: column, size, slide, gap",
        ),
        (
            {"steps": [{"type": "join", "wiht": "x", "with": "y", "on": "true"}]},
            "[[steps]] number 1: unknown key `wiht`; allowed: type, with, on, how, take",
        ),
        (
            {"tables": {}},
            "at the top: unknown key `tables`; allowed: pipeline, source, sinks, decode, bad_records, inputs, steps, "
            "spark",
        ),
        (
            {"steps": [{"type": "select", "columns": {"a": 1}}]},
            "[[steps]] number 1: `columns`: expected `str`, got `int`",
        ),
    ],
)
def test_every_error_names_the_table_the_key_and_what_is_allowed(tables, said):
    assert complaint(**tables) == f"orders.toml: {said}"


AGGREGATE = {"type": "aggregate", "values": {"n": "count(*)"}}


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"source": {}}, "[source]: either `topics` or `pattern` is needed, not both"),
        ({"source": {"topics": ["a"], "pattern": "b"}}, "[source]: either `topics` or `pattern` is needed, not both"),
        (
            {"source": {"topics": ["a"], "start": "noon"}},
            "[source]: `start`: 'noon' is neither earliest, latest nor a time",
        ),
        ({"source": {"topics": ["a"], "max_records": 0}}, "[source]: `max_records`: at least 1"),
        (
            {"source": {"topics": ["a"], "options": {"subscribe": "b"}}},
            "[source]: `options`: subscribe has a key of its own",
        ),
        ({"sinks": []}, "at the top: a pipeline needs at least one table [[sinks]]"),
        ({"bad_records": {"action": "dead-letter"}}, "[bad_records]: `topic` goes with `action` = dead-letter"),
        ({"bad_records": {"topic": "x"}}, "[bad_records]: `topic` goes with `action` = dead-letter"),
        ({"decode": {"format": "avro"}}, "[decode]: `format` = avro needs `schema` or `schema_file`"),
        ({"decode": {"format": "raw", "schema": "a INT"}}, "[decode]: `format` = raw has no schema"),
        ({"steps": [AGGREGATE]}, "[[steps]] number 1: with `output` = append it needs a window, and a watermark step"),
        ({"steps": [{"type": "join", "with": "x", "on": "y"}]}, "[[steps]] number 1: `with`: no input is named 'x'"),
        (
            {"steps": [{"type": "dedupe", "keys": ["id"]}, {"type": "expect", "that": "true"}]},
            "[[steps]] number 2: an expect step comes before watermark, aggregate, join and dedupe",
        ),
        ({"inputs": [{"name": "a b", "path": "x"}]}, "[[inputs]] number 1: `name`: a plain word"),
        ({"inputs": [{"name": "a"}]}, "[[inputs]] number 1: either `topics` or `path` is needed, not both"),
        (
            {
                "pipeline": {"name": "x", "checkpoint": "c", "output": "update"},
                "sinks": [{"type": "parquet", "path": "t"}],
            },
            "[[sinks]] number 1: `output` = update needs a sink that can change rows",
        ),
        (
            {"sinks": [{"type": "parquet", "path": "t"}, {"type": "delta", "path": "t"}]},
            "[[sinks]] number 2: `path`: another",
        ),
        (
            {"sinks": [{"type": "parquet", "path": "t", "compact": {"files": 1}}]},
            "[[sinks]] number 1, compact: `files`",
        ),
        (
            {"pipeline": {"name": "x", "checkpoint": "c", "trigger": "soon"}},
            "[pipeline]: `trigger`: 'soon' is not a number",
        ),
    ],
)
def test_tables_that_do_not_go_together(tables, said):
    assert complaint(**tables).startswith(f"orders.toml: {said}")


def test_no_file_and_no_toml(tmp_path):
    with pytest.raises(PipelineError, match="No such file"):
        read(tmp_path / "missing.toml")
    (tmp_path / "bad.toml").write_text("= 1")
    with pytest.raises(PipelineError, match="not TOML: Invalid statement"):
        read(tmp_path / "bad.toml")
