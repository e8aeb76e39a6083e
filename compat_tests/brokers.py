"""The brokers that tests talk to: ours, alone, in a container or three with ZooKeeper, or Apache Kafka; set alike."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import apache
import jars
from testcontainers.core.network import Network
from zookeeper import ZooKeeper

from compat_tests import containers
from compat_tests.running import missing_tool

TRILOGUE, APACHE_KAFKA, CONTAINER, CLUSTER = "trilogue", "apache-kafka", "container", "cluster"
APACHE_CLUSTER = "apache-cluster"
CLUSTERS = (CLUSTER, APACHE_CLUSTER)
TARGETS = [TRILOGUE, APACHE_KAFKA, CONTAINER, CLUSTER, APACHE_CLUSTER]

START_SECONDS = 20

SESSION_SECONDS = 6
"""How long members may be silent: the shortest that brokers allow classic members by default."""

BEAT_SECONDS = 0.5

SETTINGS = {
    # Members of the new protocol hear of each other at their next heartbeat: let that be soon.
    "group.consumer.heartbeat.interval.ms": str(int(BEAT_SECONDS * 1000)),
    "group.consumer.min.heartbeat.interval.ms": str(int(BEAT_SECONDS * 1000)),
}
"""Of every broker that tests share."""

IMPATIENT = {
    **SETTINGS,
    # In the classic protocol members choose how long they may be silent; in the new one the broker does.
    "group.consumer.session.timeout.ms": str(SESSION_SECONDS * 1000),
    "group.consumer.min.session.timeout.ms": str(SESSION_SECONDS * 1000),
}
"""Of those whose members die in tests."""


REPLICATED = {**apache.REPLICATED, "zookeeper.session.timeout.ms": "6000"}
"""Of every broker of a cluster."""


@contextmanager
def started(target: str, folder: Path, settings: Mapping[str, str], image: str | None = None) -> Iterator[str]:
    """A broker of its own: its HOST:PORT.  `image` is what a container is made from."""
    if target == APACHE_KAFKA:
        with apache_kafka(folder, settings) as bootstrap:
            yield bootstrap
    elif target == CONTAINER:
        assert image is not None
        variables = {"KAFKA_" + name.upper().replace(".", "_"): value for name, value in settings.items()}
        with Network() as network, containers.Trilogue(image, network, **variables) as contained:
            yield contained.bootstrap
    elif target == CLUSTER:
        with cluster(folder, settings) as several:
            yield several.bootstrap
    elif target == APACHE_CLUSTER:
        try:
            with apache.KafkaCluster(folder, settings) as nodes:
                yield nodes.bootstrap
        except jars.Missing as missing:
            missing_tool(missing)
    else:
        with Trilogue(folder, **settings) as broker:
            yield broker.bootstrap


class Place(NamedTuple):
    """Where and how a process of a cluster runs."""

    host: str = "127.0.0.1"
    within: tuple[str, ...] = ()
    """What runs it: `ip netns exec ...`."""
    variables: Mapping[str, str] = {}
    """Of its environment, besides ours."""
    disks: int = 1


HERE = Place()
ZOOKEEPER = 0
"""Its place, among those of brokers."""


class Cluster(NamedTuple):
    zookeeper: ZooKeeper
    brokers: Mapping[int, "Trilogue"]
    """By their ids."""

    @property
    def bootstrap(self) -> str:
        return ",".join(each.bootstrap for each in self.brokers.values())


@contextmanager
def cluster(
    folder: Path, settings: Mapping[str, str], count: int = 3, places: Mapping[int, Place] | None = None
) -> Iterator[Cluster]:
    """Brokers of ours, and the ZooKeeper that holds them together."""
    found = places or {}
    keeper = found.get(ZOOKEEPER, HERE)
    try:
        with (
            ZooKeeper(folder / "zookeeper", host=keeper.host, within=keeper.within) as zookeeper,
            ExitStack() as stack,
        ):
            given = {**REPLICATED, **settings, "zookeeper.connect": zookeeper.address}
            brokers = {
                number: stack.enter_context(
                    Trilogue(folder / str(number), found.get(number, HERE), **given, **{"node.id": str(number)})
                )
                for number in range(1, count + 1)
            }
            yield Cluster(zookeeper, brokers)
    except jars.Missing as missing:
        missing_tool(missing)


@contextmanager
def apache_kafka(folder: Path, settings: Mapping[str, str]) -> Iterator[str]:
    if containers.has_apache_kafka():
        with containers.apache_kafka(settings) as bootstrap:
            yield bootstrap
        return
    try:
        with apache.Kafka(folder, settings) as kafka:
            yield kafka.bootstrap
    except jars.Missing as missing:
        missing_tool(missing)


class Trilogue:
    """Our broker as a process of its own, with its data in a folder: it can be killed and started again."""

    def __init__(self, folder: Path, place: Place = HERE, /, **settings: str) -> None:
        self.folder, self.port, self.place = folder, 0, place
        self.settings = {name.replace("_", "."): value for name, value in settings.items()}
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"{self.place.host}:{self.port}"

    @property
    def data(self) -> list[Path]:
        """Where its partitions are."""
        return [self.folder / name for name in ("data", "second", "third")[: self.place.disks]]

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        port_file = self.folder / "port"
        port_file.unlink(missing_ok=True)
        options = [f"--set={name}={value}" for name, value in self.settings.items()]
        command = [*self.place.within, str(Path(sys.executable).with_name("trilogue")), "start"]
        command += [f"--listen={self.bootstrap}", f"--data={','.join(map(str, self.data))}"]
        command += [f"--port-file={port_file}", *options]
        with open(self.folder / "broker.log", "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **self.place.variables})
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
