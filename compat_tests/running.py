"""Clients' programs in a run of the suite: built while other tests go on, started when asked for, kept for the next."""

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from typing import NoReturn

import clients
import jars
import kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.matrix import CLIENTS, Client
from compat_tests.program import Program
from compat_tests.results import ours
from compat_tests.stories import MakeTopic, Start


def sort_by_client(items: list[pytest.Item]) -> None:
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


def missing_tool(missing: Exception) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI needs everything: {missing}", pytrace=False)
    pytest.skip(str(missing))


@pytest.fixture(scope="session")
def programs(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
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
def start(programs: Start, record_property: Callable[[str, object], None], target: str) -> Start:
    """A program of the client that the test is about; its version goes into the results."""

    def started(client: Client, number: int = 0) -> Program:
        if client.ours_only and target == "apache-kafka":
            pytest.skip(client.ours_only)
        program = programs(client, number)
        record_property("version", program.version)
        return program

    return started


@pytest.fixture(scope="session")
def make_topic(bootstrap: str) -> Iterator[MakeTopic]:
    """`make_topic(3, **{"retention.ms": "1000"})` is the name of a new topic with so many partitions."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    waiting = kafka.KafkaConsumer(bootstrap_servers=bootstrap)

    def make(partitions: int, **settings: str) -> str:
        name = f"topic-{uuid.uuid4().hex[:10]}"
        admin.create_topics([NewTopic(name, partitions, config=settings)])[name].result(20)
        # Kafka answers before its partitions have leaders, and old clients do not try again.  This one does.
        waiting.end_offsets([kafka.TopicPartition(name, index) for index in range(partitions)])
        return name

    yield make
    waiting.close()
