"""Apache Kafka itself, for the tests that compare: start it, stop it, and send it bytes that no client would
send."""

import ast
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from struct import pack, unpack_from
from typing import NamedTuple

Java = Callable[..., list[str]]

JARS = "kafka-4.3.1"
START_SECONDS = 60
STOP_SECONDS = 60


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Kafka:
    """One broker that is its own controller, on loopback."""

    def __init__(self, folder: Path, java: Java) -> None:
        self.folder, self.java = folder, java
        self.data = folder / "data"
        port, controller = free_port(), free_port()
        self.address = ("127.0.0.1", port)
        self.bootstrap = f"127.0.0.1:{port}"
        folder.mkdir(exist_ok=True)
        (folder / "server.properties").write_text(
            f"process.roles=broker,controller\nnode.id=1\n"
            f"controller.quorum.bootstrap.servers=127.0.0.1:{controller}\n"
            f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n"
            f"advertised.listeners=PLAINTEXT://127.0.0.1:{port}\ncontroller.listener.names=CONTROLLER\n"
            f"inter.broker.listener.name=PLAINTEXT\n"
            f"listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n"
            f"log.dirs={self.data}\noffsets.topic.replication.factor=1\noffsets.topic.num.partitions=1\n"
            f"transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n"
            f"transaction.state.log.num.partitions=1\ngroup.initial.rebalance.delay.ms=0\nnum.partitions=1\n"
            f"log.cleaner.backoff.ms=100\nlog.cleaner.io.buffer.size=131072\nlog.cleaner.dedupe.buffer.size=4000000\n"
            f"log.segment.delete.delay.ms=100\n"
        )
        subprocess.run(
            self._command(
                "kafka.tools.StorageTool",
                "format",
                "-t",
                "aNFbbpwCS92XyZk6dteO2A",
                "-c",
                "server.properties",
                "--standalone",
            ),
            cwd=folder,
            check=True,
            capture_output=True,
            timeout=START_SECONDS,
        )
        self.process: subprocess.Popen[bytes] | None = None

    def _command(self, main: str, *args: str) -> list[str]:
        command = self.java(JARS, main, *args)
        return [command[0], "-Xmx512M", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", *command[1:]]

    def start(self) -> None:
        with open(self.folder / "kafka.log", "ab") as log:
            self.process = subprocess.Popen(
                self._command("kafka.Kafka", "server.properties"), cwd=self.folder, stdout=log, stderr=log
            )
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            assert self.process.poll() is None, (self.folder / "kafka.log").read_text()[-2000:]
            try:
                socket.create_connection(self.address, timeout=1).close()
                return
            except OSError:
                time.sleep(0.1)
        raise TimeoutError("Kafka does not listen")

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(STOP_SECONDS)
            self.process = None


def drive(kafka: Kafka, *args: str) -> object:
    """Run kafka_driver.py, and take what it prints."""
    command = [sys.executable, str(Path(__file__).with_name("kafka_driver.py")), kafka.bootstrap, *args]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr[-3000:]
    return ast.literal_eval(run.stdout)


class Answer(NamedTuple):
    code: int
    base_offset: int
    bad_records: list[int]


def list_offset(address: tuple[str, int], topic: str, timestamp: int) -> tuple[int, int, int]:
    """ListOffsets v11: timestamp, offset and leader epoch of the answer; an error is (0, 0, its code)."""
    name = topic.encode()
    head = pack(">hhih", 2, 11, 1, 4) + b"test" + b"\0"
    body = pack(">ibB", -1, 0, 2) + pack(">B", len(name) + 1) + name
    body += pack(">Biiq", 2, 0, -1, timestamp) + b"\0\0" + pack(">i", 10_000) + b"\0"
    with socket.create_connection(address, timeout=20) as connection:
        connection.sendall(pack(">i", len(head + body)) + head + body)
        answer = _exactly(connection, unpack_from(">i", _exactly(connection, 4))[0])
    at = 4 + 1 + 4 + 1 + 1 + len(name) + 1 + 4
    code, found, offset, epoch = unpack_from(">hqqi", answer, at)
    return (0, 0, code) if code else (found, offset, epoch)


NOT_LEADER = 6


def produce(address: tuple[str, int], topic: str, records: bytes) -> Answer:
    """Produce v8 with these bytes as they are; again, while a new topic has no leader."""
    for _ in range(100):
        answer = _produce(address, topic, records)
        if answer.code != NOT_LEADER:
            break
        time.sleep(0.1)
    return answer


def _produce(address: tuple[str, int], topic: str, records: bytes) -> Answer:
    name = topic.encode()
    body = pack(">hhii", -1, -1, 10_000, 1)
    body += pack(">h", len(name)) + name + pack(">ii", 1, 0) + pack(">i", len(records)) + records
    head = pack(">hhi", 0, 8, 1) + pack(">h", 4) + b"test"
    with socket.create_connection(address, timeout=20) as connection:
        connection.sendall(pack(">i", len(head + body)) + head + body)
        size = unpack_from(">i", _exactly(connection, 4))[0]
        answer = _exactly(connection, size)
    at = 4 + 4 + 2 + len(name) + 4 + 4
    code, base_offset, _, _, errors = unpack_from(">hqqqi", answer, at)
    at += 30
    bad = []
    for _ in range(errors):
        number, length = unpack_from(">ih", answer, at)
        bad.append(number)
        at += 6 + max(length, 0)
    return Answer(code, base_offset, bad)


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionError("hung up")
        data += part
    return data
