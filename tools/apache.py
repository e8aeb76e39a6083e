"""Apache Kafka from the jars, on loopback: one broker that is its own controller, or several that replicate.  For tests
and benchmarks.

with Kafka(folder, {"num.partitions": "4"}) as kafka: ... kafka.bootstrap
with KafkaCluster(folder) as several: ... several.bootstrap
"""

import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import jars

VERSION = "4.3.1"
JARS = f"kafka-{VERSION}"
START_SECONDS = 60
STOP_SECONDS = 60

CLUSTER_ID = "aNFbbpwCS92XyZk6dteO2A"
HEAP = ("-Xms512m", "-Xmx1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def command(main: str, *arguments: str, options: tuple[str, ...] = (), jar_set: str = JARS) -> list[str]:
    """What runs one of Kafka's classes.  Raises `jars.Missing` where there is no Java."""
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    return ["java", *options, quiet, "-cp", jars.classpath(jar_set), main, *arguments]


def settings(port: int, controller: int, data: str) -> dict[str, str]:
    """One broker that is its own controller, with as little waiting as one broker needs."""
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": data,
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
    }


def wait_for(address: tuple[str, int], running: Callable[[], None] = lambda: None) -> None:
    """Until somebody listens there; `running` may say that it is in vain."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        running()
        try:
            socket.create_connection(address, timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise TimeoutError("Kafka does not listen")


REPLICATED = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
}
"""Of every broker of a cluster, Kafka's or ours: three replicas of everything, and two of them needed."""


class Kafka:
    """Formats its folder when made, runs from `start` to `stop`."""

    format_options: tuple[str, ...] = ("--standalone",)

    def __init__(self, folder: Path, changed: Mapping[str, str] | None = None, ports: tuple[int, int] = (0, 0)) -> None:
        """`ports` are the broker's and the controller's, if they must be known before."""
        self.folder = folder
        self.port, controller = ports[0] or free_port(), ports[1] or free_port()
        self.address = ("127.0.0.1", self.port)
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.data = folder / "data"
        self.process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        given = {**settings(self.port, controller, str(self.data)), **(changed or {})}
        (folder / "server.properties").write_text("".join(f"{name}={value}\n" for name, value in given.items()))
        self._format()

    def _format(self) -> None:
        tool = command(
            "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", "server.properties", *self.format_options
        )
        done = subprocess.run(tool, cwd=self.folder, capture_output=True, text=True, timeout=START_SECONDS)
        if done.returncode:
            raise RuntimeError(f"the data folder cannot be formatted:\n{done.stdout[-1000:]}{done.stderr[-1000:]}")

    def start(self) -> None:
        self.launch()
        wait_for(self.address, self._must_run)

    def launch(self) -> None:
        """Begin to start."""
        with open(self.folder / "kafka.log", "ab") as log:
            self.process = subprocess.Popen(
                command("kafka.Kafka", "server.properties", options=HEAP), cwd=self.folder, stdout=log, stderr=log
            )

    def _must_run(self) -> None:
        if self.process is None or self.process.poll() is not None:
            raise RuntimeError(f"Kafka ended:\n{(self.folder / 'kafka.log').read_text()[-2000:]}")

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.process = None

    def __enter__(self) -> "Kafka":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Node(Kafka):
    """One of several: who votes stands in its settings."""

    format_options = ()


class KafkaCluster:
    """Brokers that are also the voters of their quorum."""

    def __init__(self, folder: Path, changed: Mapping[str, str] | None = None, count: int = 3) -> None:
        ports = {number: (free_port(), free_port()) for number in range(1, count + 1)}
        voters = ",".join(f"{number}@127.0.0.1:{controller}" for number, (_, controller) in ports.items())
        self.nodes = {
            number: Node(
                folder / str(number),
                {
                    **REPLICATED,
                    "share.coordinator.state.topic.replication.factor": "3",
                    "share.coordinator.state.topic.min.isr": "2",
                    "node.id": str(number),
                    "controller.quorum.bootstrap.servers": "",
                    "controller.quorum.voters": voters,
                    **(changed or {}),
                },
                places,
            )
            for number, places in ports.items()
        }

    @property
    def bootstrap(self) -> str:
        return ",".join(each.bootstrap for each in self.nodes.values())

    def start(self) -> None:
        for each in self.nodes.values():
            each.launch()
        for each in self.nodes.values():
            wait_for(each.address)

    def stop(self) -> None:
        for each in self.nodes.values():  # all of them first: who is left alone waits for the others
            if each.process is not None:
                each.process.terminate()
        for each in self.nodes.values():
            each.stop()

    def __enter__(self) -> "KafkaCluster":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
