"""What a checkpoint says, whom it belongs to, and what is gone that it wanted."""

from pathlib import Path

import pytest

from trilogue.pipeline.check import lost, tails
from trilogue.pipeline.checkpoint import ROWS, Checkpoint, Identity, parse_offsets, settle
from trilogue.pipeline.errors import PipelineError
from trilogue.pipeline.reading import parse
from trilogue.pipeline.tests.mortal import Died, Mortal

OFFSETS = 'v1\n{"batchWatermarkMs":0}\n{"orders":{"0":10,"1":20}}\n-\n{"payments":{"0":5}}'


def pipeline(topics=("orders",), steps=()):
    return parse(
        {
            "pipeline": {"name": "x", "checkpoint": "c"},
            "source": {"topics": list(topics)},
            "steps": list(steps),
            "sinks": [{"type": "console"}],
        },
        Path("x.toml"),
    )


def begun(path: Path, batch: int = 0, text: str = OFFSETS) -> None:
    """As Spark leaves it."""
    for kind, content in (("offsets", text), ("commits", "v1\n{}")):
        (path / ROWS / kind).mkdir(parents=True, exist_ok=True)
        (path / ROWS / kind / str(batch)).write_text(content)


def test_sparks_offsets():
    assert parse_offsets(OFFSETS) == {"orders": {0: 10, 1: 20}, "payments": {0: 5}}
    with pytest.raises(PipelineError, match="of version v2"):
        parse_offsets("v2\n{}\n{}")


def test_reading_goes_on_after_the_last_batch_that_is_done(tmp_path):
    begun(tmp_path, 9)
    begun(tmp_path, 10, 'v1\n{}\n{"orders":{"0":30}}')
    (tmp_path / ROWS / "offsets" / "11").write_text('v1\n{}\n{"orders":{"0":40}}')

    assert Checkpoint(Mortal(), str(tmp_path)).resumes_at(ROWS) == {"orders": {0: 30}}
    assert Checkpoint(Mortal(), str(tmp_path / "new")).resumes_at(ROWS) == {}


def test_an_identity_is_kept(tmp_path):
    checkpoint = Checkpoint(Mortal(), str(tmp_path))
    made = settle(checkpoint, pipeline())
    checkpoint.write(made)

    assert settle(checkpoint, pipeline()) == made


@pytest.mark.parametrize("life", range(3))
def test_an_identity_whose_writer_dies_is_the_old_one_or_the_new(tmp_path, life):
    old, new = Identity("me", {}), Identity("me", {"a": 1})
    Checkpoint(Mortal(), str(tmp_path)).write(old)

    with pytest.raises(Died):
        Checkpoint(Mortal(life), str(tmp_path)).write(new)

    assert Checkpoint(Mortal(), str(tmp_path)).identity() == (old if life < 2 else new)


def test_half_a_first_identity_is_none(tmp_path):
    (tmp_path / "trilogue.json.draft").write_text('{"id": "m')

    assert Checkpoint(Mortal(), str(tmp_path)).identity() is None


DEDUPE = {"type": "dedupe", "keys": ["id"]}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (pipeline(topics=["orders", "more"]), r"another \[source\] topics"),
        (pipeline(steps=[DEDUPE]), r"another \[\[steps\]\] that remember"),
    ],
)
def test_a_checkpoint_that_was_made_for_something_else(tmp_path, changed, said):
    checkpoint = Checkpoint(Mortal(), str(tmp_path))
    checkpoint.write(settle(checkpoint, pipeline()))
    assert settle(checkpoint, changed).shape != settle(checkpoint, pipeline()).shape  # nothing was read yet
    begun(tmp_path)

    with pytest.raises(PipelineError, match=said):
        settle(checkpoint, changed)


def test_filters_and_columns_may_change(tmp_path):
    checkpoint = Checkpoint(Mortal(), str(tmp_path))
    checkpoint.write(settle(checkpoint, pipeline()))
    begun(tmp_path)

    settle(checkpoint, pipeline(steps=[{"type": "filter", "where": "a > 1"}]))


def test_another_programs_checkpoint(tmp_path):
    begun(tmp_path)

    with pytest.raises(PipelineError, match="of another program"):
        settle(Checkpoint(Mortal(), str(tmp_path)), pipeline())


def test_what_is_lost():
    wanted = {"a": {0: 10, 1: 10, 2: 10}, "b": {0: 1}}

    assert lost(wanted, {"a": {0: 10, 1: 11, 2: 0}}, {"a": {0: 10, 1: 20, 2: 9}}) == [
        "a-1: offsets 10 to 10 are gone",
        "a-2 ends at 9, before the checkpoint's 10: was it made anew?",
        "b-0 is gone; the checkpoint was to go on at offset 1",
    ]


def test_a_sample_is_the_newest_of_each_partition():
    assert tails({"a": {0: 0, 1: 950}}, {"a": {0: 1000, 1: 1000}}) == {"a": {0: (800, 1000), 1: (950, 1000)}}
