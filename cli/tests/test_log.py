"""`trilogue log dump`: files of a log, without a broker."""

import json
from pathlib import Path

import pytest


@pytest.fixture
def folder(trilogue_cli, broker) -> Path:
    records = [{"key": f"k{i}", "value": f"v{i}", "timestamp": 1000 + i, "headers": [["h", "x"]]} for i in range(3)]
    trilogue_cli("produce", "t", "--json", stdin="".join(json.dumps(each) + "\n" for each in records).encode())
    return Path(broker.server.broker.config["log.dirs"][0], "t-0")


def entries(text):
    return [json.loads(line)["entries"] for line in text.splitlines()]


def test_batches(trilogue_cli, folder):
    (log,) = folder.glob("*.log")

    ((batch,),) = entries(trilogue_cli("log", "dump", "--json", str(log)))

    assert batch == {
        "position": 0,
        "size": log.stat().st_size,
        "first_offset": 0,
        "last_offset": 2,
        "records": 3,
        "timestamp": 1002,
        "codec": "none",
        "epoch": 0,
        "producer": -1,
        "producer_epoch": -1,
        "sequence": -1,
        "flags": [],
        "crc_ok": True,
    }
    assert trilogue_cli("log", "dump", str(log)).startswith(f"0\t{log.stat().st_size}\t0\t2\t3\t1002\tnone\t0\t")


def test_records(trilogue_cli, folder):
    (log,) = folder.glob("*.log")

    assert trilogue_cli("log", "dump", "--records", str(log)).splitlines()[2] == "0\t2\t1002\tk2\tv2\th=x"
    ((batch,),) = entries(trilogue_cli("log", "dump", "--records", "--json", str(log)))
    assert batch["records"][0] == {"offset": 0, "timestamp": 1000, "key": "k0", "value": "v0", "headers": [["h", "x"]]}


def test_a_whole_folder(trilogue_cli, folder):
    lines = trilogue_cli("log", "dump", str(folder)).splitlines()

    assert f"{folder}/leader-epoch-checkpoint\t0\t0" in lines
    assert any(line.startswith(f"{folder}/00000000000000000000.log\t") for line in lines)


def test_indexes(trilogue_cli, tmp_path):
    offsets = tmp_path / "00000000000000000100.index"
    offsets.write_bytes(bytes.fromhex("00000005 00001000 00000009 00002000") + bytes(80))
    times = tmp_path / "00000000000000000100.timeindex"
    times.write_bytes(bytes.fromhex("0000000000000400 00000005"))

    assert trilogue_cli("log", "dump", str(offsets)) == "105\t4096\n109\t8192\n"
    assert trilogue_cli("log", "dump", str(times)) == "1024\t105\n"


def test_damage_is_told_after_what_is_whole(trilogue_cli, folder, tmp_path):
    (log,) = folder.glob("*.log")
    broken = tmp_path / log.name
    broken.write_bytes(log.read_bytes() + b"rubbish" * 20)

    code, out, err = trilogue_cli.attempt("log", "dump", str(broken))

    assert code == 1
    assert out.count("\n") == 1
    assert f"{broken}: " in err
    assert f"at position {log.stat().st_size}" in err


def test_a_wrong_checksum_shows(trilogue_cli, folder, tmp_path):
    (log,) = folder.glob("*.log")
    broken = tmp_path / log.name
    data = bytearray(log.read_bytes())
    data[-1] ^= 1
    broken.write_bytes(data)

    ((batch,),) = entries(trilogue_cli("log", "dump", "--json", str(broken)))

    assert batch["crc_ok"] is False


def test_what_is_no_log(trilogue_cli, tmp_path):
    (tmp_path / "notes.txt").write_text("x")

    assert "not a file of a log" in trilogue_cli.fails("log", "dump", str(tmp_path / "notes.txt"))
    assert "has no files of a log in it" in trilogue_cli.fails("log", "dump", str(tmp_path))
    assert "No such file" in trilogue_cli.fails("log", "dump", str(tmp_path / "x.log"))
