"""The side files by themselves: their bytes, and what damaged ones are taken for."""

import errno
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trilogue.storage import checkpoint, names, snapshot, system
from trilogue.storage.aborted import AbortedIndex, AbortedTransaction
from trilogue.storage.checkpoint import DamagedFile
from trilogue.storage.epochs import Epochs
from trilogue.storage.files import OpenFiles
from trilogue.storage.index import OffsetIndex, TimeIndex
from trilogue.storage.producers import Appended, Producer
from trilogue.storage.validation import HEADER
from trilogue.wire.records import HEADER_SIZE


def test_header_is_as_long_as_wire_says():
    assert HEADER.size == HEADER_SIZE


@given(st.lists(st.integers(1, 50), max_size=900), st.integers(-10, 60_000))
def test_offset_index_finds_the_last_entry_not_after(tmp_path_factory: pytest.TempPathFactory, steps, wanted):
    index = OffsetIndex(str(tmp_path_factory.mktemp("i") / "x.index"), OpenFiles(), 0, 1000)
    offset, entries = 1000, [(1000, 0)]
    for number, step in enumerate(steps):
        offset += step
        index.append(offset, number + 1)
        entries.append((offset, number + 1))
    assert index.lookup(1000 + wanted) == ([entry for entry in entries if entry[0] <= 1000 + wanted] or [(1000, 0)])[-1]
    index.truncate(1000 + wanted)
    assert index.count == sum(entry[0] < 1000 + wanted for entry in entries[1:])


def test_index_bytes(tmp_path: Path):
    pool = OpenFiles()
    index = OffsetIndex(str(tmp_path / "x.index"), pool, 0, 100)
    index.append(131, 0x3F73)
    index.spill()
    assert (tmp_path / "x.index").read_bytes() == bytes.fromhex("0000001f00003f73")
    times = TimeIndex(str(tmp_path / "x.timeindex"), pool, 0, 100)
    times.append(0x18BCFE5681F, 131)
    times.append(0x18BCFE5681F, 140)  # not later: no entry
    times.append(-1, 150)
    times.spill()
    assert (tmp_path / "x.timeindex").read_bytes() == bytes.fromhex("0000018bcfe5681f0000001f")
    again = TimeIndex(str(tmp_path / "x.timeindex"), pool, 12, 100)
    assert (again.lookup(0x18BCFE5681F), again.lookup(5)) == ((0x18BCFE5681F, 131), (-1, 100))


def test_index_on_a_full_disk_can_still_be_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    index = OffsetIndex(str(tmp_path / "x.index"), OpenFiles(), 0, 0)
    index.append(1, 100)
    with monkeypatch.context() as patch:
        patch.setattr(system, "pwrite", lambda fd, data, position: 0)
        with pytest.raises(OSError, match="space") as kept:
            index.spill()
    assert (index.count, index.lookup(1)) == (1, (1, 100))
    index.remove()  # while the error is kept, as a log keeps it, and with it everything on its way here
    assert (index.count, kept.value.errno) == (0, errno.ENOSPC)


def test_aborted_transactions_bytes(tmp_path: Path):
    index = AbortedIndex(str(tmp_path / "x.txnindex"), OpenFiles(), 0)
    assert list(index.entries()) == []
    assert not (tmp_path / "x.txnindex").exists()
    index.append(AbortedTransaction(1, 4, 7, 8))
    index.append(AbortedTransaction(2, 5, 9, 10))
    content = (tmp_path / "x.txnindex").read_bytes()
    assert content[:34] == bytes.fromhex("00000000000000000001000000000000000400000000000000070000000000000008")
    assert index.sound(0, 68)
    assert not index.sound(0, 70)
    index.truncate(9)
    assert list(index.entries()) == [(1, 4, 7, 8)]


def test_snapshot_bytes_are_kafkas():
    """From a broker of version 4.3.1: a producer with a transaction open at 12."""
    content = bytes.fromhex(
        "00014699" "70db00000001" "0000000000000001" "0000" "00000009" "000000000000000c"
        "00000000" "000001a1e734a2fa" "00000000" "000000000000000c"
    )  # fmt: skip
    (known,) = snapshot.parse(content)
    assert (known.id, known.epoch, known.last_sequence, known.last_offset) == (1, 0, 9, 12)
    assert (known.transaction_start, known.coordinator_epoch, known.last_timestamp) == (12, 0, 0x1A1E734A2FA)
    assert snapshot.render([known]) == content
    assert snapshot.render([]) == bytes.fromhex("000148674bc700000000")


def test_snapshot_keeps_the_last_batch():
    known = Producer(5, 1)
    known.batches.extend([Appended(0, 1, 10, 11, 3), Appended(2, 4, 12, 14, 4)])
    known.last_timestamp = 4
    (again,) = snapshot.parse(snapshot.render([known]))
    assert list(again.batches) == [Appended(2, 4, 12, 14, 4)]
    assert again.next_sequence == 5


@given(st.binary(max_size=120))
def test_noise_is_no_snapshot(noise: bytes):
    with pytest.raises(DamagedFile):
        snapshot.parse(noise)


def test_checkpoint_of_offsets(tmp_path: Path):
    path = str(tmp_path / "x")
    assert checkpoint.read_offsets(path) == {}
    checkpoint.write_offsets(path, {("a.b", 0): 5, ("c", 12): 7})
    assert Path(path).read_bytes() == b"0\n2\na.b 0 5\nc 12 7\n"
    assert checkpoint.read_offsets(path) == {("a.b", 0): 5, ("c", 12): 7}


@pytest.mark.parametrize(
    "content", [b"1\n0\n", b"0\n2\na 0 1\n", b"0\n1\na 0\n", b"0\n1\na 0 x\n", b"0\n1\na 0 -1\n", b"\xff\n", b"0"]
)
def test_damaged_checkpoint(tmp_path: Path, content: bytes):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(DamagedFile):
        checkpoint.read_offsets(str(tmp_path / "x"))


def test_an_id_that_is_none_is_damage():
    assert checkpoint.parse_id("AAECAwQFBgcICQoLDA0ODw") == bytes(range(16))
    for text in ("short", "AAECAwQFBgcICQoLDA0ODw==", "!AECAwQFBgcICQoLDA0ODw"):
        with pytest.raises(DamagedFile):
            checkpoint.parse_id(text)


def test_epochs_answer_where_they_end(tmp_path: Path):
    epochs = Epochs(str(tmp_path / "e"))
    for epoch, start in ((1, 0), (3, 10), (3, 12), (5, 20)):
        epochs.assign(epoch, start)
    assert epochs.entries == [(1, 0), (3, 10), (5, 20)]
    asked = {epoch: epochs.end_offset(epoch, 30) for epoch in (-1, 0, 1, 2, 3, 4, 5, 6)}
    assert asked == {
        -1: (-1, -1),
        0: (0, 0),
        1: (1, 10),
        2: (1, 10),
        3: (3, 20),
        4: (3, 20),
        5: (5, 30),
        6: (-1, -1),
    }
    assert [epochs.epoch_at(offset) for offset in (0, 9, 10, 25)] == [1, 1, 3, 5]
    epochs.save()
    assert (tmp_path / "e").read_bytes() == b"0\n3\n1 0\n3 10\n5 20\n"
    epochs.truncate_start(15)
    epochs.truncate_end(20)
    assert epochs.entries == [(3, 15)]
    epochs.assign(4, 15)
    assert epochs.entries == [(4, 15)]  # an epoch that wrote nothing gives way
    assert Epochs.load(str(tmp_path / "e")).latest == 5


@pytest.mark.parametrize("content", [b"0\n2\n1 0\n1 5\n", b"0\n2\n1 9\n2 5\n", b"0\n1\n-1 0\n", b"0\n1\nx y\n"])
def test_damaged_epochs(tmp_path: Path, content: bytes):
    (tmp_path / "e").write_bytes(content)
    with pytest.raises(DamagedFile):
        Epochs.load(str(tmp_path / "e"))


def test_names():
    assert names.parse_folder("a-b.c-12") == ("a-b.c", 12)
    for other in ("a", "a-", "a-01", "a-1.0123-delete", "a-1-delete", "-1", "a/b-1", "../x-1"):
        assert names.parse_folder(other) is None
    assert names.offset_of("00000000000000000042.log") == 42
    assert names.offset_of("leader-epoch-checkpoint") is None
    assert len(names.deleted_folder("t" * 249, 10, "0" * 32)) == 255
