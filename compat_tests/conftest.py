"""Which broker the clients talk to: ours, started as a user would, or Apache Kafka.

pytest compat_tests                          trilogue, from the installed command
pytest compat_tests --target=apache-kafka    Apache Kafka 4.3.1: its image if an engine has it, else from `make jars`
pytest compat_tests --target=container       trilogue, from the image that docker/Dockerfile makes
pytest compat_tests --target=cluster         three of them with ZooKeeper, everything on all three
pytest compat_tests --target=apache-cluster  three nodes of Apache Kafka, likewise
"""

from collections.abc import Iterator
from importlib import metadata

import apache
import docker
import jars
import pytest
from pyspark.sql import SparkSession

from compat_tests import containers, running
from compat_tests.brokers import (
    APACHE_CLUSTER,
    APACHE_KAFKA,
    CLUSTERS,
    CONTAINER,
    IMPATIENT,
    SETTINGS,
    TARGETS,
    TRILOGUE,
    started,
)
from compat_tests.results import FOLDER, Recorder, ours, part
from compat_tests.running import make_topic, missing_tool, programs, pytest_collection_finish, start
from compat_tests.spark import start as start_spark

__all__ = ["make_topic", "programs", "pytest_collection_finish", "start"]

LEFT_OPEN = [
    "ignore:unclosed <socket.socket fd=.*family=1, type=1:ResourceWarning",
    "ignore:Exception ignored in. <socket.socket fd=.*family=1, type=1:pytest.PytestUnraisableExceptionWarning",
]
"""Docker's client leaves its sockets to the garbage collector, which may come for them in any test of this folder."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--target", default=TRILOGUE, choices=TARGETS)


def pytest_configure(config: pytest.Config) -> None:
    target = str(config.getoption("--target"))
    version = apache.VERSION if target in (APACHE_KAFKA, APACHE_CLUSTER) else metadata.version("trilogue")
    config.pluginmanager.register(Recorder(target, version, part(config), FOLDER / f"{target}.jsonl"))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    running.sort_by_client(items)
    for item in filter(ours, items):
        for each in LEFT_OPEN:
            item.add_marker(pytest.mark.filterwarnings(each))


@pytest.fixture(scope="session")
def target(request: pytest.FixtureRequest) -> str:
    return str(request.config.getoption("--target"))


@pytest.fixture(scope="session")
def only_ours(target: str) -> None:
    """For tests that start brokers of ours, whatever the others talk to."""
    if target != TRILOGUE:
        pytest.skip("kills brokers of ours")


@pytest.fixture(scope="session")
def bootstrap(target: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[str]:
    """HOST:PORT of a broker that all tests of this run share."""
    image = request.getfixturevalue("image") if target == CONTAINER else None
    with started(target, tmp_path_factory.mktemp(target), SETTINGS, image) as address:
        yield address


@pytest.fixture(scope="session")
def brokers(target: str) -> int:
    """How many there are, and replicas of everything."""
    return 3 if target in CLUSTERS else 1


@pytest.fixture(scope="session")
def quick_bootstrap(
    target: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[str]:
    """One that misses members soon."""
    image = request.getfixturevalue("image") if target == CONTAINER else None
    with started(target, tmp_path_factory.mktemp(f"quick-{target}"), IMPATIENT, image) as address:
        yield address


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
        missing_tool(missing)
    yield session
    session.stop()
