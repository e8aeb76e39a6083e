"""`trilogue produce` and `trilogue consume`: what goes in comes out."""

import json
import os
import signal
import subprocess
import sys

import pytest

from trilogue.cli import produce


def test_lines_go_in_and_come_out(trilogue_cli):
    trilogue_cli("produce", "t", stdin=b"one\ntwo\r\n\nlast without an end")

    assert trilogue_cli("consume", "t") == "one\ntwo\n\nlast without an end\n"


def test_nothing_goes_in(trilogue_cli):
    assert trilogue_cli("produce", "t") == ""
    assert trilogue_cli("consume", "t") == ""


def test_keys_headers_and_nulls(trilogue_cli):
    words = ("--key-separator", ":", "--null", "NULL", "--header", "a=1", "--header", "b=")
    trilogue_cli("produce", "t", *words, stdin=b"k1:v:1\nk2:NULL\nNULL:v3\n:v4\n")

    assert trilogue_cli("consume", "t", "--key-separator", r"\t", "--null", "-") == "k1\tv:1\nk2\t-\n-\tv3\n\tv4\n"
    assert trilogue_cli("consume", "t", "--headers", "-n", "2") == "a=1,b=\tv:1\na=1,b=\tnull\n"


def test_json_has_all_there_is_and_goes_back_in(trilogue_cli):
    record = {"key": "k", "value": "v", "headers": [["h", "1"], ["h", None]], "timestamp": 1700000000000}
    trilogue_cli("produce", "t", "--json", stdin=json.dumps(record).encode() + b'\n{"value": {"hex": "ff00"}}\n{}')

    lines = trilogue_cli("consume", "t", "--json")
    first, second, third = map(json.loads, lines.splitlines())
    assert first == {**record, "partition": 0, "offset": 0}
    assert second["value"] == {"hex": "ff00"}
    assert (third["key"], third["value"], third["headers"]) == (None, None, [])

    trilogue_cli("produce", "copy", "--json", stdin=lines.encode())
    assert trilogue_cli("consume", "copy", "--json") == lines


def test_produce_in_json_says_where_the_records_went(trilogue_cli):
    told = json.loads(trilogue_cli("produce", "t", "--json", stdin=b'{"value": "1"}\n{"value": "2"}'))

    assert told == {"topic": "t", "records": 2, "partitions": {"0": {"first_offset": 0, "last_offset": 1}}}


@pytest.mark.parametrize(
    ("form", "written"), [("hex", "ff00"), ("base64", "/wA="), ("text", "plain"), ("json", '{"a": [1, "é"]}')]
)
def test_formats(trilogue_cli, form, written):
    trilogue_cli("produce", "t", "--format", form, stdin=written.encode())

    assert trilogue_cli("consume", "t", "--format", form) == written + "\n"


def test_json_values_are_json_inside_of_json(trilogue_cli):
    trilogue_cli("produce", "t", stdin=b'{"a":1}\nnot json')

    shown = [
        json.loads(line)["value"] for line in trilogue_cli("consume", "t", "--json", "--format", "json").splitlines()
    ]
    assert shown == [{"a": 1}, {"hex": b"not json".hex()}]


@pytest.mark.parametrize("can_ask", [produce.CAN_ASK, False])
def test_lines_come_whole_however_they_are_read(can_ask, monkeypatch):
    monkeypatch.setattr(produce, "CAN_ASK", can_ask)
    reading, writing = os.pipe()
    os.write(writing, b"one\r\ntwo\nthr")
    lines = produce.chunks(reading)

    assert next(lines) == [b"one", b"two"]
    os.write(writing, b"ee\n\nlast")
    os.close(writing)
    assert [line for some in lines for line in some] == [b"three", b"", b"last"]
    os.close(reading)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_compression(trilogue_cli, codec):
    lines = b"".join(b"line %d\n" % i for i in range(1000))
    trilogue_cli("produce", "t", "--compression", codec, stdin=lines)

    assert trilogue_cli("consume", "t").encode() == lines


def test_from(trilogue_cli):
    records = [{"value": str(i), "timestamp": 1700000000000 + i} for i in range(10)]
    trilogue_cli("produce", "t", "--json", stdin="\n".join(map(json.dumps, records)).encode())

    def read(*words):
        return "".join(trilogue_cli("consume", "t", *words).split())

    assert read() == read("--from", "beginning") == read("--from", "0") == "0123456789"
    assert read("--from", "7") == read("--from", "-3") == "789"
    assert read("--from", "@1700000000004") == "456789"
    assert read("--from", "2023-11-14T22:13:20.008+00:00") == "89"
    assert read("--from", "2100-01-01") == read("--from", "end") == read("--from", "99") == ""
    assert read("--from", "-99") == "0123456789"
    assert read("--from", "5", "-n", "2") == "56"
    assert read("--follow", "--from", "8", "-n", "2") == "89"


def test_partitions(trilogue_cli):
    trilogue_cli("topic", "create", "t", "--partitions", "3")
    for partition in ("0", "1", "2"):
        trilogue_cli("produce", "t", "--partition", partition, stdin=partition.encode())

    assert trilogue_cli("consume", "t", "--partition", "1") == "1\n"
    assert sorted(trilogue_cli("consume", "t", "--partition", "0", "--partition", "2").split()) == ["0", "2"]
    assert sorted(trilogue_cli("consume", "t").split()) == ["0", "1", "2"]
    assert trilogue_cli.fails("consume", "t", "--partition", "3") == "--partition 3: t has partitions 0 to 2"
    assert trilogue_cli.fails("produce", "t", "--partition", "3") == "--partition 3: t has partitions 0 to 2"


def test_a_key_chooses_the_partition_that_kafka_would(trilogue_cli):
    trilogue_cli("topic", "create", "t", "--partitions", "10")
    trilogue_cli("produce", "t", "--key", "21", stdin=b"x\n")

    assert trilogue_cli("consume", "t", "--partition", str((-973932308 & 0x7FFFFFFF) % 10)) == "x\n"


@pytest.mark.parametrize(
    ("words", "line", "told"),
    [
        (("--key-separator", ":"), b"none", "'none' has no ':' between key and value"),
        (("--format", "hex"), b"xyz", "'xyz' is not hex: non-hexadecimal number found in fromhex() arg at position 0"),
        (("--format", "base64"), b"???", "'???' is not base64"),
        (("--format", "json"), b"{", "'{' is not json"),
    ],
)
def test_lines_that_are_not_what_they_should_be(trilogue_cli, words, line, told):
    assert trilogue_cli.fails("produce", "t", *words, stdin=line).startswith(told)


def test_json_lines_that_are_no_records(trilogue_cli):
    for line in (b"{", b"[]", b'{"value": 1}', b'{"headers": 3}'):
        code, _, err = trilogue_cli.attempt("produce", "t", "--json", stdin=line)
        assert (code, err.count("\n")) == (1, 1)


def test_a_topic_that_is_not_there_is_not_made_by_reading(trilogue_cli):
    told = trilogue_cli.fails("consume", "t")
    assert told == "there is no topic t; `trilogue topic list` lists them"
    assert trilogue_cli("topic", "list") == ""


def test_a_record_that_is_too_large_is_refused_in_one_line(trilogue_cli):
    assert "(MESSAGE_TOO_LARGE)" in trilogue_cli.fails("produce", "t", stdin=b"x" * (2 << 20))


def test_follow_waits_for_more_until_it_is_interrupted(trilogue_cli):
    trilogue_cli("produce", "t", stdin=b"old\n")
    command = [sys.executable, "-m", "trilogue.cli.main", "consume", "t", "--follow", "--from", "beginning"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"old\n"
        trilogue_cli("produce", "t", stdin=b"new\n")
        assert process.stdout.readline() == b"new\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate() == (b"", b"")
    assert process.returncode == 130
