"""`trilogue start`, as a process: what it says, how it ends, and why it does not begin."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, contextmanager

import pytest

from trilogue.cli.main import main
from trilogue.client.blocking import Blocking, run
from trilogue.client.client import Client
from trilogue.client.link import connect
from trilogue.client.reader import Reader
from trilogue.client.world import Address
from trilogue.storage.checkpoint import read_properties
from trilogue.testing import Broker
from trilogue.wire.apis.fetch import FetchResponse

COMMAND = [sys.executable, "-m", "trilogue.cli.main", "start"]
STARTS = 20
NOT_BY_CONSTRUCT = {"logging", "asyncio"} if sys.version_info < (3, 14) else set()
"""construct loads pdb, and pdb asyncio from Python 3.14 on: 25 ms that are not ours to save."""


@contextmanager
def started(*words):
    """A broker that runs, and its first line."""
    process = subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        assert line, process.communicate()
        yield process, line
    finally:
        process.terminate()  # not killed: it takes its data with it
        process.communicate(timeout=30)


def port_in(line):
    return int(line.partition(";")[0].rpartition(":")[2])


@pytest.fixture
def refused(capsys):
    """It does not start, and says why in one line."""

    def attempt(*words):
        code = main(["start", *words])
        out, err = capsys.readouterr()
        assert (code, out, err.count("\n")) == (1, "", 1)
        return err.removeprefix("trilogue: ").rstrip()

    return attempt


def test_it_says_where_it_listens_and_keeps_its_data(tmp_path):
    port_file = tmp_path / "port"
    with started("--ephemeral", "--port", "0", "--port-file", str(port_file)) as (process, line):
        port = port_in(line)
        assert f"listens on 127.0.0.1:{port}; data in " in line
        link = run(connect(Blocking(), Address("127.0.0.1", port)))
        link.close()
        assert int(port_file.read_text()) == port
        process.terminate()
        out, err = process.communicate()
    assert (process.returncode, out, err) == (0, "", "")
    assert not os.path.exists(line.rstrip().rpartition(" ")[2])


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_within_a_second_though_a_consumer_waits(sent):
    with started("--ephemeral", "--port", "0") as (process, line):
        client = Client([Address("127.0.0.1", port_in(line))], Blocking())
        run(client.persist(lambda: client.topic("quiet", create=True)))
        link = run(client.any())
        request = Reader(client, "quiet", {0: 0})._request([0], max_wait=30)
        ticket = run(link.ask(request, FetchResponse, cap=12))
        run(connect(Blocking(), link.address)).close()  # the fetch was there before this, so it waits by now

        begun = time.monotonic()
        process.send_signal(sent)
        answer = run(link.answer(ticket))
        process.communicate()

        assert time.monotonic() - begun < 1
        assert process.returncode == 0
        assert answer.error_code == 0
        client.close()


def test_what_was_written_is_there_after_a_restart(tmp_path):
    shared = ["--data", str(tmp_path / "data"), "--port", "0"]
    tool = [sys.executable, "-m", "trilogue.cli.main"]
    for number in range(2):
        with started(*shared) as (process, line):
            where = ["--bootstrap", f"127.0.0.1:{port_in(line)}"]
            subprocess.run([*tool, "produce", "t", *where], input=f"{number}\n", text=True, check=True)
            read = subprocess.run([*tool, "consume", "t", *where], capture_output=True, text=True, check=True).stdout
            process.terminate()
            process.communicate()
            assert process.returncode == 0
    assert read == "0\n1\n"


def test_several_addresses_and_an_advertised_one():
    words = ("--ephemeral", "--listen", "127.0.0.1:0", "--listen", "127.0.0.2:0", "--advertise", "example.org:1234")
    with started(*words) as (_, line):
        first, second = (part.strip() for part in line.partition("listens on ")[2].partition(";")[0].split(","))
        tool = [sys.executable, "-m", "trilogue.cli.main", "cluster", "--json", "--bootstrap"]
        told = [
            json.loads(subprocess.run([*tool, each], capture_output=True, check=True).stdout)["brokers"][0]
            for each in (first, second)
        ]
    assert [f"{each['host']}:{each['port']}" for each in told] == ["example.org:1234", second]


def test_who_comes_by_ipv4_to_every_address_is_told_so():
    with started("--ephemeral", "--listen", ":0") as (_, line):
        port = line.partition("listens on *:")[2].partition(";")[0]
        tool = [sys.executable, "-m", "trilogue.cli.main", "cluster", "--json", "--bootstrap", f"127.0.0.1:{port}"]
        told = json.loads(subprocess.run(tool, capture_output=True, check=True).stdout)["brokers"][0]
    assert told["host"] == "127.0.0.1"


# -- why it does not begin -------------------------------------------------------------------------


def test_a_port_that_is_taken(refused):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        told = refused("--ephemeral", "--port", str(port))
    assert told == f"port {port} on 127.0.0.1 is in use: stop what listens there, or choose another with --listen"


def test_a_directory_in_use(tmp_path, refused):
    with started("--data", str(tmp_path / "data"), "--port", "0"):
        told = refused("--data", str(tmp_path / "data"), "--port", "0")
    assert told == f"{tmp_path}/data is in use by another broker: choose another with --data"


def test_a_directory_that_cannot_be_made(tmp_path, refused):
    (tmp_path / "file").write_text("")

    told = refused("--data", str(tmp_path / "file" / "data"), "--port", "0")

    assert told.startswith(f"cannot use {tmp_path}/file/data")
    assert told.endswith("Not a directory; choose another with --data")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_cannot_be_written(tmp_path, refused):
    tmp_path.chmod(0o500)

    told = refused("--data", str(tmp_path / "data"), "--port", "0")

    assert told == f"cannot use {tmp_path}/data: Permission denied; choose another with --data"


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        ("version=1\ncluster.id=abc\nnode.id=77\n", "belongs to node 77 of cluster abc"),
        ("version=9\ncluster.id=abc\nnode.id=1\n", "version 9, not 1"),
    ],
)
def test_a_foreign_directory(tmp_path, properties, told, refused):
    (tmp_path / "meta.properties").write_text(properties)

    said = refused("--data", str(tmp_path), "--port", "0")

    assert str(tmp_path) in said
    assert told in said
    assert said.endswith("choose another with --data")


@pytest.mark.parametrize("other", ["{}/", "{}/../data", "{}-link"])
def test_one_directory_under_two_names(tmp_path, refused, other):
    """Every partition would be there twice, and one of each be renamed a stray."""
    data = tmp_path / "data"
    data.mkdir()
    (tmp_path / "data-link").symlink_to(data, target_is_directory=True)
    twin = other.format(data)

    said = refused("--set", f"log.dirs={data},{twin}", "--port", "0")

    assert said == f"log.dirs: {data} and {twin} are one directory; name it once"


def test_a_store_that_is_not_the_partitions_own(tmp_path, refused):
    """All of them would be strays to it, and be renamed."""
    for name in ("ours", "theirs"):
        with started("--data", str(tmp_path / name), "--port", "0"):
            pass
    (tmp_path / "ours" / "orders-0").mkdir()
    ours, theirs = (tmp_path / name / "metadata.sqlite" for name in ("ours", "theirs"))
    ours.write_bytes(theirs.read_bytes())

    said = refused("--data", str(tmp_path / "ours"), "--port", "0")
    assert said.startswith(f"{ours} is of cluster ")

    ours.write_bytes(b"")
    said = refused("--data", str(tmp_path / "ours"), "--port", "0")
    assert said == (
        f"{ours} is empty, and there are partitions beside it: bring back the one they belong to, choose another "
        "directory with --data, or have their topics made again from what lies there with --adopt"
    )
    assert (tmp_path / "ours" / "orders-0").is_dir()


def test_directories_that_have_lost_their_name_are_of_the_cluster_that_the_store_is_of(tmp_path):
    names = []
    for _ in range(3):
        with started("--data", str(tmp_path), "--port", "0"):
            names.append(read_properties(str(tmp_path / "meta.properties"))["cluster.id"])
        if len(names) == 1:
            (tmp_path / "meta.properties").unlink()

    assert len(set(names)) == 1


def test_a_directory_of_apache_kafkas(tmp_path, refused):
    """Its topics are in a metadata log that we do not read: to us they would be strays, and be renamed."""
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=abc\nnode.id=1\n")
    (tmp_path / "orders-0").mkdir()

    said = refused("--data", str(tmp_path), "--port", "0")

    assert said == (
        f"there are partitions in {tmp_path}, but no metadata.sqlite: choose another with --data, or have their topics "
        "made again from what lies there with --adopt"
    )
    assert (tmp_path / "orders-0").is_dir()


def test_metadata_that_is_damaged(tmp_path, refused):
    (tmp_path / "metadata.sqlite").write_bytes(b"no database" * 100)

    said = refused("--data", str(tmp_path), "--port", "0")

    assert said == (
        f"{tmp_path}/metadata.sqlite is not a metadata store that we can read: file is not a database: "
        "choose another directory with --data"
    )


def test_metadata_of_a_newer_version(tmp_path, refused):
    with closing(sqlite3.connect(tmp_path / "metadata.sqlite")) as database, database:
        database.execute("PRAGMA user_version=99")

    said = refused("--data", str(tmp_path), "--port", "0")

    assert "a newer trilogue wrote it, in format 99; this one knows 1" in said


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--set", "num.partition=3"), "num.partition: there is no such setting; did you mean num.partitions?"),
        (("--set", "num.partitions=three"), "num.partitions=three: not a whole number; it has to be at least 1"),
        (("--set", "num.partitions"), "--set num.partitions: write NAME=VALUE"),
        (("--config", "/nowhere.properties"), "/nowhere.properties cannot be read: No such file or directory"),
        (("--config", "/"), "/ cannot be read: Is a directory"),
        (
            ("--data", "somewhere"),
            "--ephemeral keeps nothing, and --data says where to keep it: leave out one of them",
        ),
        (("--port", "70000"), "--port 70000: choose one up to 65535, or 0 for any that is free"),
        (("--listen", "nothing"), "listeners=PLAINTEXT://nothing: write it like PLAINTEXT://127.0.0.1:9092"),
        (("--advertise", "x"), "advertised.listeners=PLAINTEXT://x: write it like PLAINTEXT://127.0.0.1:9092"),
        (
            ("--set", "listeners=SSL://127.0.0.1:0"),
            "listener SSL is to speak SSL, and we only speak PLAINTEXT and SASL_PLAINTEXT (KNOWN_GAPS.md)",
        ),
        (
            ("--set", "listeners=MINE://127.0.0.1:0"),
            "listeners names MINE, and listener.security.protocol.map does not say what it speaks",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_settings_that_cannot_be(words, told, refused):
    address = () if {"--port", "--listen"} & set(words) or "listeners" in words[1] else ("--port", "0")

    assert refused("--ephemeral", *address, *words) == told


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"# fine\nnum.partitions\n", ", line 2: write NAME=VALUE, not 'num.partitions'"),
        (b"\xff\xfe\x00", " is not a file of settings: write lines like NAME=VALUE, in UTF-8"),
    ],
)
def test_a_file_of_settings_that_is_none(tmp_path, content, told, refused):
    file = tmp_path / "server.properties"
    file.write_bytes(content)

    assert refused("--ephemeral", "--port", "0", "--config", str(file)) == f"{file}{told}"


def test_a_file_of_settings_is_read_and_the_command_line_goes_before_it(tmp_path):
    file = tmp_path / "server.properties"
    file.write_text("listeners=PLAINTEXT://127.0.0.1:0\nnum.partitions=\\\n  5\n! a remark\nnode.id = 8\n")
    with started("--ephemeral", "--config", str(file), "--set", "num.partitions=2") as (_, line):
        client = Client([Address("127.0.0.1", port_in(line))], Blocking())
        topic = run(client.persist(lambda: client.topic("t", create=True)))
        assert (len(topic.partitions), topic.partitions[0].leader_id) == (2, 8)
        client.close()


def test_a_file_may_say_what_we_do_not_know_but_not_of_security(tmp_path, refused):
    file = tmp_path / "server.properties"
    file.write_text("num.partition=5\nlog4j.whatever=1\n")
    with started("--ephemeral", "--port", "0", "--config", str(file)) as (process, _):
        process.terminate()
        said = process.communicate(timeout=30)[1].splitlines()
    assert [line.partition("WARNING ")[2] for line in said] == [
        f"{file}: num.partition: there is no such setting; did you mean num.partitions?",
        f"{file}: log4j.whatever: there is no such setting",
    ]

    file.write_text("super.user=User:me\n")
    assert refused("--ephemeral", "--config", str(file)) == (
        "super.user: there is no such setting; did you mean super.users?"
    )


def test_topics_that_are_there_from_the_start(tmp_path):
    words = ("--data", str(tmp_path), "--port", "0", "--topic", "orders:3", "--topic", "state:1:1:compact")
    for _ in range(2):  # the second time they are there already
        with started(*words) as (_, line):
            client = Client([Address("127.0.0.1", port_in(line))], Blocking())
            found = run(client.metadata(None))
            client.close()
            assert {each.name: len(each.partitions) for each in found.topics} == {"orders": 3, "state": 1}


@pytest.mark.parametrize(
    ("topic", "told"),
    [
        ("no/name", "--topic no/name: "),
        ("t:1:3", "--topic t: Unable to replicate the partition 3 time(s)"),
        ("t:1:1:shrink", "--topic t: Invalid value shrink for configuration cleanup.policy"),
    ],
)
def test_topics_that_cannot_be(topic, told, refused):
    assert refused("--ephemeral", "--port", "0", "--topic", topic).startswith(told)


def test_a_topic_that_is_not_understood(capsys):
    with pytest.raises(SystemExit):
        main(["start", "--topic", "t:many"])
    assert "write NAME, NAME:3, NAME:3:1 or NAME:3:1:compact, not 't:many'" in capsys.readouterr().err


def test_a_cluster_has_the_id_that_it_is_given_once(tmp_path, refused):
    words = ("--data", str(tmp_path), "--port", "0", "--set")
    with started(*words, "trilogue.cluster.id=4L6g3nShT-eMCtK--X86sw") as (_, line):
        client = Client([Address("127.0.0.1", port_in(line))], Blocking())
        assert run(client.metadata([])).cluster_id == "4L6g3nShT-eMCtK--X86sw"
        client.close()

    assert refused(*words, "trilogue.cluster.id=another") == (
        f"{tmp_path} is of cluster 4L6g3nShT-eMCtK--X86sw, and trilogue.cluster.id is another: "
        "leave it out, or choose another directory with --data"
    )


def test_a_port_file_that_cannot_be_written(tmp_path):
    words = ("--ephemeral", "--port", "0", "--port-file", str(tmp_path / "none" / "port"))
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=30)

    assert done.returncode == 1
    assert done.stderr == f"trilogue: --port-file {tmp_path}/none/port cannot be written: No such file or directory\n"


# -- figures ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_twenty_starts_without_a_failure():
    for _ in range(STARTS):
        with started("--ephemeral", "--port", "0") as (process, line):
            run(connect(Blocking(), Address("127.0.0.1", port_in(line)))).close()
            process.terminate()
            process.communicate()
            assert process.returncode == 0


@pytest.mark.parametrize(
    ("words", "unwanted"),
    [
        (("health",), {"trio", "construct", "msgspec", "json", "logging", "asyncio"}),
        (("topic", "list"), {"trio", "crc32c", "trilogue.broker"} | NOT_BY_CONSTRUCT),
        (("consume", "t"), {"trio", "trilogue.broker"} | NOT_BY_CONSTRUCT),
        (("--help",), {"trio", "construct", "msgspec", "json", "logging", "asyncio", "socket"}),
        (("--version",), {"trio", "construct", "msgspec", "logging", "asyncio"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_commands_load_only_what_they_need(words, unwanted):
    """What makes them quick: 45 ms for health, 130 for the others, where trio alone takes 110."""
    code = (
        "import sys; before = set(sys.modules)\n"
        "from trilogue.cli.main import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print('loaded', *(set(sys.modules) - before))"
    )
    with Broker() as broker:
        environment = {**os.environ, "TRILOGUE_BOOTSTRAP": broker.bootstrap}
        done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, env=environment)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "trilogue.cli.main" in loaded
    assert not loaded & unwanted
