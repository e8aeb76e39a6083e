"""Which broker the clients talk to: ours, started as a user would, or Apache Kafka.

pytest compat_tests                          trilogue, from the installed command
pytest compat_tests --target=apache-kafka    Apache Kafka 4.3.1 from `make jars`
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import apache
import jars
import pytest

from compat_tests.results import FOLDER, Recorder, part
from compat_tests.running import (
    make_topic,
    missing_tool,
    programs,
    pytest_collection_finish,
    pytest_collection_modifyitems,
    start,
)

__all__ = ["make_topic", "programs", "pytest_collection_finish", "pytest_collection_modifyitems", "start"]

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
    config.pluginmanager.register(Recorder(target, version, part(config), FOLDER / f"{target}.jsonl"))


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


missing_java = missing_tool


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
