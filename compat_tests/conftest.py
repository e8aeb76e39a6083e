"""Which broker the clients talk to: ours, started as a user would, or Apache Kafka.

pytest compat_tests                          trilogue, from the installed command
pytest compat_tests --target=apache-kafka    Apache Kafka 4.3.1: its image if an engine has it, else from `make jars`
pytest compat_tests --target=container       trilogue, from the image that docker/Dockerfile makes
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apache
import docker
import jars
import pytest
from pyspark.sql import SparkSession
from testcontainers.core.network import Network

from compat_tests import containers
from compat_tests.spark import start as start_spark

START_SECONDS = 20


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--target", default="trilogue", choices=["trilogue", "apache-kafka", "container"])


LEFT_OPEN = [
    "ignore:unclosed <socket.socket fd=.*family=1, type=1:ResourceWarning",
    "ignore:Exception ignored in. <socket.socket fd=.*family=1, type=1:pytest.PytestUnraisableExceptionWarning",
]
"""Docker's client leaves its sockets to the garbage collector, which may come for them in any test of this folder."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            for each in LEFT_OPEN:
                item.add_marker(pytest.mark.filterwarnings(each))


@pytest.fixture(scope="session")
def target(request: pytest.FixtureRequest) -> str:
    return str(request.config.getoption("--target"))


@pytest.fixture(scope="session")
def bootstrap(target: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[str]:
    """HOST:PORT of a broker that all tests of this run share."""
    if target == "container":
        image = request.getfixturevalue("image")
        with Network() as network, containers.Trilogue(image, network) as contained:
            yield contained.bootstrap
    elif target == "apache-kafka":
        with apache_kafka(tmp_path_factory.mktemp(target)) as bootstrap:
            yield bootstrap
    else:
        with Trilogue(tmp_path_factory.mktemp(target)) as broker:
            yield broker.bootstrap


@contextmanager
def apache_kafka(folder: Path) -> Iterator[str]:
    if containers.has_apache_kafka():
        with containers.apache_kafka() as bootstrap:
            yield bootstrap
        return
    try:
        with apache.Kafka(folder) as kafka:
            yield kafka.bootstrap
    except jars.Missing as missing:
        missing_java(missing)


@pytest.fixture(scope="session")
def engine() -> Iterator[docker.DockerClient]:
    """A Docker engine; the tests that need one are skipped where there is none, in CI as well."""
    try:
        with containers.engine() as client:
            yield client
    except containers.NoEngine as missing:
        pytest.skip(str(missing))


MADE_FROM = pytest.StashKey[str]()


@pytest.fixture(scope="session")
def image(engine: docker.DockerClient, pytestconfig: pytest.Config) -> Iterator[str]:
    """The image of docker/Dockerfile."""
    try:
        with containers.our_image(engine) as (name, made_from):
            pytestconfig.stash[MADE_FROM] = made_from
            yield name
    except containers.NoEngine as missing:
        pytest.skip(str(missing))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if MADE_FROM in config.stash:
        terminalreporter.write_line(f"docker/Dockerfile was built on {config.stash[MADE_FROM]}")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One session for all tests: its JVM takes longer to start than most tests take."""
    try:
        session = start_spark("compat", tmp_path_factory.mktemp("spark"))
    except jars.Missing as missing:
        missing_java(missing)
    yield session
    session.stop()


def missing_java(missing: jars.Missing) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI needs Java: {missing}", pytrace=False)
    pytest.skip(f"needs Java: {missing}")


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
