"""docs/pipeline.md explains every key that there is, and none that there is not."""

import re
from pathlib import Path

import pytest
from msgspec.structs import fields

from trilogue.pipeline import model
from trilogue.pipeline.examples.__main__ import EXAMPLES
from trilogue.pipeline.reading import read

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "pipeline.md").read_text()

PLACES = {
    model.About: "[pipeline]",
    model.Source: "[source]",
    model.Decode: "[decode]",
    model.BadRecords: "[bad_records]",
    model.Input: "[[inputs]]",
    model.Late: "watermark of [[inputs]]",
    model.Window: "window of step aggregate",
    model.Compaction: "compact of sink parquet",
    model.Spark: "[spark]",
}


def place(table: type) -> str:
    if table in PLACES:
        return PLACES[table]
    kind = "step" if issubclass(table, model.Step) else "sink"
    return f"{kind} {table.__struct_config__.tag}"


TABLES = [
    each
    for each in vars(model).values()
    if isinstance(each, type) and issubclass(each, model.Table)
    if each not in (model.Table, model.Step, model.Sink, model.Pipeline)
]


def explained(heading: str) -> dict[str, str]:
    """Keys and what stands under `default`."""
    (section,) = re.findall(rf"^### {re.escape(heading)}\n(.*?)(?=^#)", TEXT, re.MULTILINE | re.DOTALL)
    return dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", section, re.MULTILINE))


@pytest.mark.parametrize("table", TABLES, ids=place)
def test_every_key_is_explained(table):
    said = explained(place(table))

    assert list(said) == [each.encode_name for each in fields(table)]
    assert {key for key, default in said.items() if default == "required"} == {
        each.encode_name for each in fields(table) if each.required
    }


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_pipelines_and_have_pictures(name):
    assert read(ROOT / "pipeline" / "examples" / name / "pipeline.toml").stateful is (name != "changes")
    assert f"pictures/{name}.png" in TEXT
    assert (ROOT / "docs" / "pictures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_the_example_in_the_text_is_a_pipeline(tmp_path):
    (found,) = re.findall(r"^```toml\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    (tmp_path / "orders.toml").write_text(found)

    assert read(tmp_path / "orders.toml").name == "orders"
