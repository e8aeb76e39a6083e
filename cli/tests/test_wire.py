"""`trilogue wire`, as a person uses it."""

import io
import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from trilogue.cli.main import main
from trilogue.wire.apis.fetch import FetchResponse
from trilogue.wire.apis.produce import ProduceRequest
from trilogue.wire.frame import write_request, write_response
from trilogue.wire.records import Record, build

ROOT = Path(__file__).resolve().parents[2]


def test_without_a_command_it_says_what_it_can_do(capsys):
    assert main([]) == 0
    assert main(["wire"]) == 0

    shown = capsys.readouterr().out
    assert "wire" in shown
    assert "decode" in shown


def test_show_lists_every_api(capsys):
    assert main(["wire", "show"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["key", "API", "versions", "flexible"]
    assert lines[1].split() == ["0", "Produce", "0-13", "9+"]
    assert len(lines) == 80


@pytest.mark.parametrize("name", ["Fetch", "fetch", "FetchRequest", "1"])
def test_show_finds_an_api_by_name_or_key(name, capsys):
    assert main(["wire", "show", name]) == 0

    shown = capsys.readouterr().out
    assert "FetchRequest (key 1, versions 0-18, flexible 12+)" in shown
    assert "FetchResponse (key 1, versions 0-18, flexible 12+)" in shown
    assert ["last_fetched_epoch", "int32", "v12+", "default", "-1"] in [line.split() for line in shown.splitlines()]


def test_show_one_version_leaves_out_what_it_lacks(capsys):
    assert main(["wire", "show", "Heartbeat", "--version", "0"]) == 0

    shown = capsys.readouterr().out
    assert "member_id" in shown
    assert "group_instance_id" not in shown


def test_decode_a_request_with_its_records(capsys):
    records = build([Record(0, 1000, b"k", b"v", [("h", b"\xff")])], producer_id=7)
    partition = ProduceRequest.Topic.Partition(index=3, records=records)
    request = ProduceRequest(
        acks=-1, timeout_ms=9, topic_data=[ProduceRequest.Topic(topic_id=bytes(range(16)), partition_data=[partition])]
    )
    frame = b"".join(write_request(request, 13, 5, "me"))

    assert main(["wire", "decode", frame.hex()]) == 0

    decoded = json.loads(capsys.readouterr().out)
    (topic,) = decoded["body"].pop("topic_data")
    (batch,) = topic["partition_data"][0]["records"]
    assert decoded == {
        "message": "ProduceRequest",
        "version": 13,
        "correlation_id": 5,
        "client_id": "me",
        "body": {"transactional_id": None, "acks": -1, "timeout_ms": 9},
    }
    assert topic["topic_id"] == "AAECAwQFBgcICQoLDA0ODw"
    assert (batch["producer_id"], batch["crc_ok"], batch["codec"]) == (7, True, "none")
    assert batch["records"] == [
        {"offset": 0, "timestamp": 1000, "key": "k", "value": "v", "headers": [["h", {"hex": "ff"}]]}
    ]


def test_decode_an_answer_from_a_file(tmp_path, capsys):
    frame = b"".join(write_response(FetchResponse(session_id=4, responses=[]), 12, 77))
    (tmp_path / "answer.bin").write_bytes(frame)
    (tmp_path / "answer.hex").write_text(frame.hex(" ", 4) + "\n")

    for name in ("answer.bin", "answer.hex"):
        assert main(["wire", "decode", "--response", "Fetch", "--version", "12", str(tmp_path / name)]) == 0
        decoded = json.loads(capsys.readouterr().out)
        assert (decoded["correlation_id"], decoded["body"]["session_id"]) == (77, 4)


def test_decode_a_message_of_an_internal_topic_from_stdin(monkeypatch, capsys):
    value = bytes.fromhex("0000000000000005 0000 0000000000000009")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(value)))

    assert main(["wire", "decode", "--message", "OffsetCommitValue", "--version", "2", "-"]) == 0

    assert json.loads(capsys.readouterr().out)["body"] == {"offset": 5, "metadata": "", "commit_timestamp": 9}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show", "Fetsch"], "there is no API Fetsch"),
        (["show", "Fetch", "--version", "99"], "FetchRequest has versions 0-18, not 99"),
        (["decode", "no-such-file"], "neither hex digits nor a file"),
        (["decode", "00ff000000000000ffff"], "no API has the key 255"),
        (["decode", "000c006300000000ffff"], "HeartbeatRequest has versions 0-4, not 99"),
        (["decode", "000c000300000000ffff0005"], "HeartbeatRequest v3: group_id: 5 bytes declared, 0 left"),
        (["decode", "--response", "Fetch", "00"], "--version is needed"),
        (["decode", "--response", "Fetch", "--version", "12", "00"], "response header: 4 bytes needed, 1 there"),
        (["decode", "--message", "Nothing", "--version", "0", "00"], "there is no message Nothing"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(arguments, said, capsys):
    assert main(["wire", *arguments]) == 1

    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("trilogue: ")
    assert said in captured.err
    assert captured.err.count("\n") == 1


def test_damaged_records_do_not_hide_the_rest(capsys):
    partition = ProduceRequest.Topic.Partition(index=0, records=bytes(70))
    request = ProduceRequest(
        acks=1, timeout_ms=1, topic_data=[ProduceRequest.Topic(name="t", partition_data=[partition])]
    )

    assert main(["wire", "decode", b"".join(write_request(request, 9, 1, None)).hex()]) == 0

    (topic,) = json.loads(capsys.readouterr().out)["body"]["topic_data"]
    assert "magic 0" in topic["partition_data"][0]["records"]["undecoded"]


def test_arguments_that_make_no_sense_exit_with_two(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["wire", "decode"])

    assert caught.value.code == 2


@pytest.mark.parametrize("document", ["README.md"])
def test_what_the_documents_show_is_what_it_says(document, capsys):
    """Every `trilogue wire ...` in them works, and the lines shown below it are among its answer's."""
    blocks = re.findall(r"\$ trilogue (wire [^\n]*)\n(.*?)(?=\n\$|\n```)", (ROOT / document).read_text(), re.DOTALL)
    assert blocks
    for command, shown in blocks:
        assert main(shlex.split(command)) == 0
        said = [line.strip() for line in capsys.readouterr().out.splitlines()]
        for line in shown.splitlines():
            assert line.strip() in [*said, "..."], f"{command}: {line}"
