"""What all tests share: real Java where it is there, and hypothesis' two paces."""

import os
import signal
from collections.abc import Callable, Iterator

import jars
import pytest
from hypothesis import settings
from zookeeper import JARS as ZOOKEEPER_JARS
from zookeeper import ZooKeeper

settings.register_profile("house", deadline=None, print_blob=True)
settings.load_profile("house")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell without job control starts what runs in the background so, and all that tests start would inherit it:
    # those that interrupt a process would wait for ever.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def java() -> Callable[..., list[str]]:
    """`java("kafka-4.3.1", "kafka.tools.DumpLogSegments", ...)` is the command that runs that class."""

    def command(jar_set: str, main: str, *args: str, classes: str = "") -> list[str]:
        path = os.pathsep.join(part for part in (classes, classpath(jar_set)) if part)
        return ["java", "-Xshare:auto", "-XX:+UseSerialGC", "-cp", path, main, *args]

    return command


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory) -> Iterator[ZooKeeper]:
    """One for all tests: each has a path of its own there."""
    classpath(ZOOKEEPER_JARS)
    with ZooKeeper(tmp_path_factory.mktemp("zookeeper")) as running:
        yield running


@pytest.fixture
def own_zookeeper(tmp_path) -> Iterator[ZooKeeper]:
    """One for a single test, which may do with it as it likes."""
    classpath(ZOOKEEPER_JARS)
    with ZooKeeper(tmp_path / "zookeeper") as running:
        yield running


def classpath(jar_set: str) -> str:
    """The jars of a set; a test that cannot have them is skipped, or fails where CI says it must not be."""
    try:
        return jars.classpath(jar_set)
    except jars.Missing as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI needs Java: {missing}", pytrace=False)
        pytest.skip(f"needs Java: {missing}")
