"""A Parquet table whose writer dies at every single step, in turn: nothing is lost, nothing is there twice."""

import os
from pathlib import Path

import pytest

from trilogue.pipeline.table import ParquetTable
from trilogue.pipeline.tests.mortal import Died, Mortal

BATCHES = 4
ROWS = 3


def rows(table: Path) -> list[str]:
    """What a reader finds who lists the folder."""
    return sorted(row for name in Mortal().walk(str(table)) for row in (table / name).read_text().split())


def stage(files: Mortal, batch: int):
    """As Spark would: a file for each of two days, with names that are never the same again."""

    def write(folder: str) -> None:
        for day in (1, 2):
            text = "\n".join(f"{batch}.{day}.{row}" for row in range(ROWS))
            files.write(f"{folder}/date=2026-01-0{day}/part-{os.urandom(6).hex()}.parquet", text)

    return write


def work(files: Mortal, path: Path) -> None:
    """What a writer does from its start: all batches that are not in the table yet, and small files together."""
    table = ParquetTable(files, str(path), "me")
    table.open()
    for batch in range(max(0, table.last_batch), BATCHES):  # Spark may repeat the last one
        touched = table.add(batch, stage(files, batch))
        for folder in sorted(touched or ()):
            small = table.small_files(folder, 1000)
            if len(small) >= 3:

                def together(staged: str, small=small) -> None:
                    text = "\n".join((path / name).read_text() for name in small)
                    files.write(f"{staged}/part-{os.urandom(6).hex()}.parquet", text)

                table.compact(folder, small, together)


ALL = sorted(f"{batch}.{day}.{row}" for batch in range(BATCHES) for day in (1, 2) for row in range(ROWS))


def test_a_writer_that_lives(tmp_path):
    work(Mortal(), tmp_path / "t")

    assert rows(tmp_path / "t") == ALL
    # Two files came together with the third, and again.
    assert len(Mortal().walk(str(tmp_path / "t"))) == 4


def test_a_writer_that_dies_at_every_step_and_is_started_again(tmp_path):
    whole = Mortal()
    work(whole, tmp_path / "whole")
    for life in range(whole.changes):
        dies_and_comes_back(work, life, tmp_path / str(life))


def dies_and_comes_back(work, life: int, path: Path) -> None:
    with pytest.raises(Died):
        work(Mortal(life), path)
    left = rows(path)
    assert len(set(left)) == len(left), f"a reader sees rows twice after {life} changes"
    work(Mortal(), path)
    assert rows(path) == ALL, f"after {life} changes"


@pytest.mark.parametrize("life", [5, 7, 8, 9, 11, 13])
def test_a_writer_that_dies_again_and_again(tmp_path, life):
    path, deaths = tmp_path / "t", 0
    for _ in range(200):
        try:
            work(Mortal(life + deaths // 10), path)
            break
        except Died:
            deaths += 1
            left = rows(path)
            assert len(set(left)) == len(left)
    assert deaths > 3
    assert rows(path) == ALL


def all_anew(files: Mortal, path: Path) -> None:
    """A writer that has its table written in another way: a file for each folder."""
    table = ParquetTable(files, str(path), "me", {"row": "long"})
    table.open()
    if table.columns != {"row": "long"}:
        table.write_anew(lambda staged: in_one_file_each(files, path, staged))


def in_one_file_each(files: Mortal, path: Path, staged: str) -> None:
    for folder in sorted({Path(name).parent for name in files.walk(str(path))}):
        text = "\n".join(each.read_text() for each in (path / folder).iterdir())
        files.write(f"{staged}/{folder}/part-{os.urandom(6).hex()}.parquet", text)


def test_a_writer_that_dies_at_every_step_of_writing_all_anew(tmp_path):
    whole = Mortal()
    work(whole, tmp_path / "whole")
    before = whole.changes
    all_anew(whole, tmp_path / "whole")
    for life in range(whole.changes - before):
        path = tmp_path / str(life)
        work(Mortal(), path)
        dies_and_comes_back(all_anew, life, path)
        assert len(Mortal().walk(str(path))) == 2


def test_a_batch_that_comes_again_is_known(tmp_path):
    files = Mortal()
    table = ParquetTable(files, str(tmp_path), "me")
    table.open()

    assert table.add(0, stage(files, 0)) == {"date=2026-01-01", "date=2026-01-02"}
    assert table.add(0, stage(files, 0)) is None
    assert table.last_batch == 0


def test_batches_of_two_checkpoints_are_counted_apart(tmp_path):
    files = Mortal()
    for owner, batch in (("me", 0), ("you", 0), ("me", 0), ("me", 1), ("you", 0)):
        table = ParquetTable(files, str(tmp_path), owner)
        table.open()
        table.add(batch, stage(files, batch if owner == "me" else 9))

    numbers = {row.split(".")[0] for row in rows(tmp_path)}
    assert numbers == {"0", "1", "9"}
    assert len(rows(tmp_path)) == 3 * 2 * ROWS
