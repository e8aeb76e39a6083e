"""Which broker the clients talk to: ours, started as a user would, or Apache Kafka.

pytest compat_tests                          trilogue, from the installed command
pytest compat_tests --target=apache-kafka    Apache Kafka 4.3.1 from `make jars`
"""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import NoReturn

import apache
import clients
import jars
import kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.matrix import CLIENTS, Client
from compat_tests.program import Program
from compat_tests.results import FOLDER, Recorder, ours

START_SECONDS = 20

SETTINGS = {
    # For both targets.  Members of the new protocol hear of each other at their next heartbeat: let that be soon.
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--target", default="trilogue", choices=["trilogue", "apache-kafka"])


def pytest_configure(config: pytest.Config) -> None:
    target = str(config.getoption("--target"))
    version = apache.JARS.removeprefix("kafka-") if target == "apache-kafka" else metadata.version("trilogue")
    config.pluginmanager.register(Recorder(target, version, FOLDER / f"{target}.jsonl"))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One client after the other, so that those that take long to build come last; and then what needs all of them."""

    def place(item: pytest.Item) -> int:
        if "written_by_all" in getattr(item, "fixturenames", ()):
            return len(CLIENTS) + 1
        asked = client_of(item)
        return CLIENTS.index(asked) + 1 if asked in CLIENTS else 0

    items.sort(key=place)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Clients are built beside the tests before theirs."""
    wanted = dict.fromkeys(asked.program for item in session.items if (asked := client_of(item)))
    absent = [name for name in wanted if name in clients.CLIENTS]
    if absent and not session.config.option.collectonly:
        command = ["nice", sys.executable, clients.__file__, *absent]
        quiet = subprocess.DEVNULL  # who needs the client tries again, and hears what went wrong
        builder = subprocess.Popen(command, stdout=quiet, stderr=quiet, start_new_session=True)
        session.config.add_cleanup(lambda: end(builder))


def end(builder: subprocess.Popen[bytes]) -> None:
    """With its compilers, if it is not ready yet."""
    if builder.poll() is None:
        os.killpg(builder.pid, signal.SIGTERM)
        builder.wait()


def client_of(item: pytest.Item) -> Client | None:
    asked = item.callspec.params.get("client") if ours(item) and hasattr(item, "callspec") else None
    return asked if isinstance(asked, Client) else None


@pytest.fixture(scope="session")
def target(request: pytest.FixtureRequest) -> str:
    return str(request.config.getoption("--target"))


@pytest.fixture(scope="session")
def bootstrap(target: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """HOST:PORT of a broker that all tests of this run share."""
    folder = tmp_path_factory.mktemp(target)
    if target == "apache-kafka":
        try:
            with apache.Kafka(folder, SETTINGS) as kafka:
                yield kafka.bootstrap
        except jars.Missing as missing:
            missing_tool(missing)
    else:
        with Trilogue(folder, **SETTINGS) as broker:
            yield broker.bootstrap


def missing_tool(missing: Exception) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI needs everything: {missing}", pytrace=False)
    pytest.skip(str(missing))


missing_java = missing_tool


@pytest.fixture(scope="session")
def programs(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Program]]:
    """`programs(client, 1)` is the second running program of a client; it is kept for the next test."""
    running: dict[tuple[str, int], Program] = {}
    logs = tmp_path_factory.mktemp("programs")

    def start(client: Client, number: int = 0) -> Program:
        place = (client.name, number)
        if place in running and not running[place].usable:
            running.pop(place).close()
        if place not in running:
            try:
                command = clients.command(client.program)
            except (clients.Missing, jars.Missing) as missing:
                missing_tool(missing)
            log = logs / f"{client.name} {number}.log"
            running[place] = Program(command, bootstrap, client.settings, log)
        return running[place]

    yield start
    for each in running.values():
        each.close()


@pytest.fixture
def start(programs: Callable[..., Program], record_property: Callable[[str, object], None], target: str):
    """A program of the client that the test is about; its version goes into the results."""

    def started(client: Client, number: int = 0) -> Program:
        if client.ours_only and target == "apache-kafka":
            pytest.skip(client.ours_only)
        program = programs(client, number)
        record_property("version", program.version)
        return program

    return started


@pytest.fixture(scope="session")
def make_topic(bootstrap: str) -> Iterator[Callable[..., str]]:
    """`make_topic(3, **{"retention.ms": "1000"})` is the name of a new topic with so many partitions."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    waiting = kafka.KafkaConsumer(bootstrap_servers=bootstrap)

    def make(partitions: int, **settings: str) -> str:
        name = f"topic-{uuid.uuid4().hex[:10]}"
        admin.create_topics([NewTopic(name, partitions, 1, config=settings)])[name].result(20)
        # Kafka answers before its partitions have leaders, and old clients do not try again.  This one does.
        waiting.end_offsets([kafka.TopicPartition(name, index) for index in range(partitions)])
        return name

    yield make
    waiting.close()


class Trilogue:
    """Our broker as a process of its own, with its data in a folder: it can be killed and started again."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder, self.port = folder, 0
        self.settings = {name.replace("_", "."): value for name, value in settings.items()}
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        port_file = self.folder / "port"
        port_file.unlink(missing_ok=True)
        options = [f"--set={name}={value}" for name, value in self.settings.items()]
        command = [str(Path(sys.executable).with_name("trilogue")), "start", f"--port={self.port}"]
        command += [f"--data={self.folder / 'data'}", f"--port-file={port_file}", *options]
        with open(self.folder / "broker.log", "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + START_SECONDS
        while not port_file.exists():
            assert self.process.poll() is None, (self.folder / "broker.log").read_text()[-2000:]
            assert time.monotonic() < deadline, "the broker does not start"
            time.sleep(0.01)
        self.port = int(port_file.read_text())

    def kill(self) -> None:
        """As a power switch would, but for the page cache."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(20)

    def __enter__(self) -> "Trilogue":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None and self.process.poll() is None:
            code = self.stop()
            assert code == 0, f"the broker ended with {code}"
