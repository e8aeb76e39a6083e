"""A plain socket that asks a broker through `wire`, and the two brokers that are asked side by side."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from trilogue.wire.catalog import responses
from trilogue.wire.frame import Frames, read_response, write_request
from trilogue.wire.schema import Request

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))  # for Apache Kafka and its jars

import apache
import jars

LARGEST_ANSWER = 100 << 20


class Connection:
    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, timeout=30)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._frames = Frames(LARGEST_ANSWER)
        self._ready: list[bytes] = []

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def receive(self) -> bytes:
        while not self._ready:
            self._ready += self._frames.feed(self._socket.recv(1 << 20))
        return self._ready.pop(0)

    def ask(self, request: Request, version: int) -> Any:
        self.send(encoded(request, version))
        return self.hear(request.api_key, version)

    def hear(self, api_key: int, version: int) -> Any:
        return read_response(memoryview(self.receive()), responses()[api_key], version)[1]


def encoded(request: Request, version: int) -> bytes:
    return b"".join(bytes(part) for part in write_request(request, version, 1, "bench"))


class Broker(NamedTuple):
    name: str
    address: tuple[str, int]
    pid: int

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def both() -> Iterator[list[Broker]]:
    """Ours, and Apache Kafka where there is Java."""
    with TemporaryDirectory() as folder, ExitStack() as running:
        brokers = [running.enter_context(trilogue(Path(folder, "trilogue")))]
        try:
            kafka = running.enter_context(apache.Kafka(Path(folder, "kafka")))
        except jars.Missing as missing:
            print(f"without Apache Kafka: {missing}")
        else:
            assert kafka.process is not None
            brokers.append(Broker("Apache Kafka", kafka.address, kafka.process.pid))
        yield brokers


@contextmanager
def trilogue(folder: Path) -> Iterator[Broker]:
    folder.mkdir()
    port_file = folder / "port"
    command = [str(Path(sys.executable).with_name("trilogue")), "start", "--port=0", f"--port-file={port_file}"]
    process = subprocess.Popen([*command, f"--data={folder / 'data'}"], stdout=subprocess.DEVNULL)
    try:
        while not port_file.exists():
            assert process.poll() is None, "trilogue does not start"
            time.sleep(0.02)
        yield Broker("trilogue", ("127.0.0.1", int(port_file.read_text())), process.pid)
    finally:
        process.terminate()
        process.wait(20)
