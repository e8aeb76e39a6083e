"""`trilogue faults`, and the connection that it talks by."""

import json
import socket
import subprocess
import sys
from contextlib import suppress

import pytest
import trio

from trilogue.cli.main import main
from trilogue.testing import Broker
from trilogue.testing.control import LINE_BYTES_MAX, take_faults

COMMAND = [sys.executable, "-m", "trilogue.cli.main"]


@pytest.fixture
def port():
    """Of a broker that takes faults."""
    with Broker() as broker:
        server = broker.server

        async def begin():
            return await server.broker.tasks.start(take_faults, server, 0)

        yield broker._kept.ask(begin)


@pytest.fixture
def faults(port, capsys, monkeypatch):
    """`trilogue faults ...`: code, and what is said."""
    monkeypatch.setenv("TRILOGUE_FAULTS", str(port))

    def ask(*words):
        code = main(["faults", *words])
        out, err = capsys.readouterr()
        return (code, err.removeprefix("trilogue: ").strip()) if code else (code, out)

    return ask


def test_faults_are_added_listed_removed_and_cleared(faults):
    added = ("Produce", "--topic", "orders", "--nth", "3", "--answer", "NOT_ENOUGH_REPLICAS")
    first = "1\tProduce topic=orders nth=3: answer NOT_ENOUGH_REPLICAS\t0\t0\n"
    second = "2\tFetch client_id=shop probability=0.5 seed=7: delay 2 s\t0\t0\n"
    assert faults("add", *added) == (0, first)
    more = ("Fetch", "--client-id", "shop", "--delay", "2", "--probability", "0.5", "--seed", "7")
    assert faults("add", *more) == (0, second)
    assert faults("list") == (0, first + second)
    assert faults("remove", "1") == (0, first)
    assert faults("list") == (0, second)
    assert faults("clear") == (0, "")
    assert faults("list") == (0, "")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--drop"], "drop"),
        (["--close", "before"], "close before"),
        (["--answer", "19"], "answer NOT_ENOUGH_REPLICAS"),
        (["--answer", "-1"], "answer UNKNOWN_SERVER_ERROR"),
    ],
)
def test_everything_that_can_happen(faults, words, says):
    code, out = faults("add", "Produce", *words)
    assert (code, out) == (0, f"1\tProduce: {says}\t0\t0\n")


def test_corruption_is_of_fetch(faults):
    assert faults("add", "Fetch", "--corrupt", "--json")[0] == 0
    assert faults("add", "Produce", "--corrupt") == (
        1,
        "no records come with an answer to Produce: corrupt those to Fetch",
    )


def test_programs_have_json(faults):
    faults("add", "Fetch", "--times", "2", "--delay", "0.5")
    _, out = faults("list", "--json")
    assert json.loads(out) == [{"number": 1, "says": "Fetch times=2: delay 0.5 s", "seen": 0, "fired": 0}]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["add", "Produse", "--drop"], "Produse: there is no such API; did you mean Produce?"),
        (["add", "Produce", "--answer", "NOT_LEADER"], "NOT_LEADER: there is no such error; did you mean NOT_LEADER_O"),
        (["add", "Heartbeat", "--topic", "t", "--drop"], "Heartbeat requests do not say a topic: choose among"),
        (["remove", "7"], "there is no fault 7"),
    ],
)
def test_what_makes_no_sense_is_one_line(faults, words, problem):
    code, said = faults(*words)
    assert code == 1
    assert said.startswith(problem)
    assert "\n" not in said


def test_where_there_is_nobody_it_says_how_to_start_one(capsys):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert main(["faults", "list", "--faults-port", str(port)]) == 1
    said = capsys.readouterr().err
    assert f"no broker takes faults at 127.0.0.1:{port}" in said
    assert "trilogue start --faults" in said


def talk(port, *lines):
    with socket.create_connection(("127.0.0.1", port), 10) as sock:
        sock.sendall(b"".join(lines))
        sock.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: sock.recv(1 << 16), b"")).splitlines()


def test_several_lines_on_one_connection(port):
    answers = talk(port, b'{"do": "add", "api": "Fetch", "what": "drop"}\n', b'{"do": "list"}\n')
    assert [len(json.loads(each)["faults"]) for each in answers] == [1, 1]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"POST / HTTP/1.1\r\n", "write a line of JSON"),
        (b"[1]\n", "write an object of JSON"),
        (b'{"do": "reboot"}\n', "do is add, list, remove or clear"),
    ],
)
def test_who_says_anything_else_is_hung_up_on(port, line, problem):
    """A page that a browser shows cannot set faults behind its own request."""
    (answer,) = talk(port, line, b'{"do": "add", "api": "Fetch", "what": "drop"}\n')
    assert json.loads(answer) == {"error": problem}
    assert json.loads(talk(port, b'{"do": "list"}\n')[0]) == {"faults": []}


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"api": "Fetch"}, "say an api, and what is to happen"),
        ({"what": "drop"}, "say an api, and what is to happen"),
        ({"api": "Fetch", "what": "drop", "broker": 1}, "broker: choose among api, what, value, topic"),
        ({"api": "Fetch", "what": "drop", "topic": 7}, "topic cannot be 7"),
        ({"api": "Fetch", "what": "drop", "nth": "3"}, "nth cannot be '3'"),
        ({"api": "Fetch", "what": "drop", "times": True}, "times cannot be True"),
        ({"api": "Fetch", "what": "delay"}, "delay cannot be None"),
        ({"api": "Fetch", "what": "drop", "value": 3}, "drop cannot be 3"),
        ({"api": "Fetch", "what": "answer", "value": {}}, "answer cannot be {}"),
    ],
)
def test_what_cannot_be_is_said_and_more_may_come(port, asked, problem):
    first, second = talk(port, json.dumps({"do": "add", **asked}).encode() + b"\n", b'{"do": "list"}\n')
    assert json.loads(first)["error"].startswith(problem)
    assert json.loads(second) == {"faults": []}


def test_a_line_without_end_is_not_waited_for(port):
    with socket.create_connection(("127.0.0.1", port), 10) as sock:
        sock.sendall(b"x" * (LINE_BYTES_MAX + 1))
        with suppress(ConnectionResetError):  # it had not read all of it
            assert sock.recv(1) == b""


def test_a_broker_begun_with_it_takes_faults_and_warns():
    words = [*COMMAND, "start", "--ephemeral", "--port", "0", "--faults", "0"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        where = line.rpartition("faults at 127.0.0.1:")[2].strip()
        asked = [*COMMAND, "faults", "add", "Metadata", "--answer", "LEADER_NOT_AVAILABLE", "--faults-port", where]
        subprocess.run(asked, check=True, capture_output=True)
        (fault,) = json.loads(talk(int(where), b'{"do": "list"}\n')[0])["faults"]
        assert (fault["says"], fault["fired"]) == ("Metadata: answer LEADER_NOT_AVAILABLE", 0)
        broker = line.partition(";")[0].rpartition(" ")[2]
        asked = [*COMMAND, "topic", "describe", "orders", "--bootstrap", broker, "--timeout", "1"]
        assert subprocess.run(asked, check=False, capture_output=True).returncode == 1
        (fault,) = json.loads(talk(int(where), b'{"do": "list"}\n')[0])["faults"]
        assert fault["fired"] > 0
    finally:
        process.terminate()
        _, err = process.communicate(timeout=30)
    assert f"faults are taken from anybody on this machine, at 127.0.0.1:{where}" in err
    assert "for tests only" in err


def test_without_it_nobody_listens_there():
    words = [*COMMAND, "start", "--ephemeral", "--port", "0"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert "faults" not in process.stdout.readline()
    finally:
        process.terminate()
        _, err = process.communicate(timeout=30)
    assert err == ""


def test_a_port_that_is_taken_is_one_line(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["start", "--ephemeral", "--port", "0", "--faults", str(port)]) == 1
    assert capsys.readouterr().err.startswith(f"trilogue: --faults {port}: 127.0.0.1:{port} cannot be used")


def test_it_listens_on_this_machine_only(port):
    assert trio.run(dial, "127.0.0.1", port)
    assert not trio.run(dial, "127.0.0.2", port)


async def dial(host, port):
    try:
        stream = await trio.open_tcp_stream(host, port)
    except OSError:
        return False
    await stream.aclose()
    return True
