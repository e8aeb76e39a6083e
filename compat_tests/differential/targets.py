"""Starts a broker, either of them, with the same settings and two data directories."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from socket import create_connection, create_server

import jars

SETTINGS = {
    "node.id": "1",
    "num.partitions": "2",
    "log.retention.ms": "-1",  # the records of the scenarios are old
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
START_SECONDS = 60


@contextmanager
def trilogue(folder: Path) -> Iterator[tuple[str, int]]:
    """Ours, from the installed command, as a user would start it."""
    config, port_file = folder / "trilogue.properties", folder / "port"
    write_settings(config, folder, {})
    command = [str(Path(sys.executable).with_name("trilogue")), "start", "--port", "0"]
    command += ["--config", str(config), "--port-file", str(port_file)]
    with started(command, folder / "trilogue.log") as process:
        wait_for(port_file.exists, process, folder / "trilogue.log")
        yield "127.0.0.1", int(port_file.read_text())


@contextmanager
def apache_kafka(folder: Path, version: str = "4.3.1") -> Iterator[tuple[str, int]]:
    """The reference: one node that is broker and controller.  Raises `jars.Missing` where there is no Java."""
    port, controller = free_port(), free_port()
    config, log = folder / "server.properties", folder / "kafka.log"
    write_settings(
        config,
        folder,
        {
            "process.roles": "broker,controller",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        },
    )
    java = ["java", "-Xmx768m", "-Xshare:auto", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    java += ["-cp", jars.classpath(f"kafka-{version}")]
    storage = [*java, "kafka.tools.StorageTool", "format", "-t", "ZGlmZmVyZW50aWFsLi4uLg", "--standalone"]
    subprocess.run([*storage, "-c", str(config)], check=True, capture_output=True)
    with started([*java, "kafka.Kafka", str(config)], log) as process:
        wait_for(lambda: answers("127.0.0.1", port), process, log)
        yield "127.0.0.1", port


def write_settings(path: Path, folder: Path, more: dict[str, str]) -> None:
    settings = SETTINGS | more | {"log.dirs": f"{folder}/data-1,{folder}/data-2"}
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))


@contextmanager
def started(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for(condition, process: subprocess.Popen[bytes], log: Path) -> None:  # type: ignore[no-untyped-def]
    until = time.monotonic() + START_SECONDS
    while not condition():
        if process.poll() is not None or time.monotonic() > until:
            raise RuntimeError(f"{process.args} does not start:\n{log.read_text()[-2000:]}")
        time.sleep(0.02)


def answers(host: str, port: int) -> bool:
    try:
        create_connection((host, port), 1).close()
    except OSError:
        return False
    return True


def free_port() -> int:
    with closing(create_server(("127.0.0.1", 0))) as server:
        return int(server.getsockname()[1])
