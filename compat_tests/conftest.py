"""Which broker the clients talk to: ours, started as a user would, or Apache Kafka.

pytest compat_tests                          trilogue, from the installed command
pytest compat_tests --target=apache-kafka    Apache Kafka 4.3.1 from `make jars`
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import apache
import jars
import pytest

START_SECONDS = 20

SESSION_SECONDS = 6
"""How long members may be silent: the shortest that brokers allow classic members by default."""

QUICK_BEAT_SECONDS = 0.5


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--target", default="trilogue", choices=["trilogue", "apache-kafka"])


@pytest.fixture(scope="session")
def target(request: pytest.FixtureRequest) -> str:
    return str(request.config.getoption("--target"))


@pytest.fixture(scope="session")
def bootstrap(target: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """HOST:PORT of a broker that all tests of this run share."""
    with started(target, tmp_path_factory.mktemp(target)) as address:
        yield address


@pytest.fixture(scope="session")
def quick_bootstrap(target: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One that asks members of the new protocol for a heartbeat every QUICK_BEAT_SECONDS, and misses them after
    SESSION_SECONDS.  In the classic protocol members choose; in the new one the broker does."""
    beat, session = str(int(QUICK_BEAT_SECONDS * 1000)), str(SESSION_SECONDS * 1000)
    settings = {
        "group.consumer.heartbeat.interval.ms": beat,
        "group.consumer.min.heartbeat.interval.ms": beat,
        "group.consumer.session.timeout.ms": session,
        "group.consumer.min.session.timeout.ms": session,
    }
    with started(target, tmp_path_factory.mktemp(f"quick-{target}"), settings) as address:
        yield address


@contextmanager
def started(target: str, folder: Path, settings: Mapping[str, str] | None = None) -> Iterator[str]:
    """A broker of its own: its HOST:PORT."""
    settings = settings or {}
    if target == "apache-kafka":
        try:
            with apache.Kafka(folder, settings) as kafka:
                yield kafka.bootstrap
        except jars.Missing as missing:
            missing_java(missing)
    else:
        with Trilogue(folder, **{name.replace(".", "_"): value for name, value in settings.items()}) as broker:
            yield broker.bootstrap


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
