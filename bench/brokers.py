"""The two brokers that are measured: ours as installed, and Apache Kafka from the jars, with the same settings."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apache

from bench.asking import Connection
from trilogue.wire.apis.create_topics import CreateTopicsRequest
from trilogue.wire.apis.delete_topics import DeleteTopicsRequest
from trilogue.wire.apis.list_offsets import ListOffsetsRequest
from trilogue.wire.schema import Request

START_SECONDS = 60.0
SETTINGS = {
    "log.segment.delete.delay.ms": "100",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    "message.max.bytes": str(8 << 20),
}
"""What both are started with.  All else is as it comes."""

API_VERSIONS = bytes.fromhex("0000000a0012000000000001ffff")
"""A whole request: version 0, by a client without a name."""


class Broker:
    """A running broker, whichever it is."""

    name = ""
    pid: int
    port: int
    replication = 1

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self.port

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pids(self) -> list[int]:
        """Of all that it consists of."""
        return [self.pid]

    def cpu_seconds(self) -> float:
        """What its process has used so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss_mib(self) -> float:
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise AssertionError("no VmRSS")

    # -- what is asked of both ---------------------------------------------------------------------

    def ask(self, request: Request, version: int) -> Any:
        connection = Connection(self.address)
        try:
            return connection.ask(request, version)
        finally:
            connection.close()

    def exchange(self, frame: bytes) -> bytes:
        """Send a whole frame; the answer without its size."""
        connection = Connection(self.address)
        try:
            connection.send(frame)
            return connection.receive()
        finally:
            connection.close()

    def create(self, topic: str, partitions: int = 1, **settings: str) -> None:
        configs = [
            CreateTopicsRequest.Topic.Config(name=name.replace("_", "."), value=value)
            for name, value in settings.items()
        ]
        wanted = CreateTopicsRequest.Topic(
            name=topic, num_partitions=partitions, replication_factor=self.replication, assignments=[], configs=configs
        )
        made = self.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=60_000), 5).topics[0]
        if made.error_code:
            raise RuntimeError(f"{self.name}: {topic} cannot be made: {made}")
        deadline = time.monotonic() + START_SECONDS
        while not self._is_led(topic, partitions):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.name}: {topic} does not get its leaders")
            time.sleep(0.02)

    def _is_led(self, topic: str, partitions: int) -> bool:
        """Whether all leaders know that they are: Kafka's metadata says so a little earlier."""
        asked = [
            ListOffsetsRequest.Topic.Partition(partition_index=index, current_leader_epoch=-1, timestamp=-1)
            for index in range(partitions)
        ]
        topics = [ListOffsetsRequest.Topic(name=topic, partitions=asked)]
        found = self.ask(ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=topics), 7).topics[0].partitions
        return all(each.error_code == 0 for each in found)

    def delete(self, topic: str) -> None:
        self.ask(DeleteTopicsRequest(topic_names=[topic], timeout_ms=60_000), 4)


OURS = str(Path(sys.executable).with_name("trilogue"))


class Ours(Broker):
    name = "trilogue"
    port = 0
    """Any, at its first start; afterwards the same again."""

    def __init__(self, folder: Path, *, name: str = name, command: str = OURS, **settings: str) -> None:
        self._folder, self.name, self._command = folder, name, command
        self._settings = {**SETTINGS, **{name.replace("_", "."): value for name, value in settings.items()}}

    def start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        port_file = self._folder / "port"
        port_file.unlink(missing_ok=True)  # of one that was killed
        command = [self._command, "start", f"--port={self.port}", f"--port-file={port_file}"]
        command += [f"--data={self._folder / 'data'}"]
        command += [f"--set={name}={value}" for name, value in self._settings.items()]
        # As installed, where modules are compiled; whatever this environment says about writing bytecode.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = str(Path(self._folder.parent, "compiled"))
        with open(self._folder / "broker.log", "ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        self.pid = self._process.pid
        deadline = time.monotonic() + START_SECONDS
        while not port_file.exists():
            if self._process.poll() is not None:
                raise RuntimeError(f"ours ended: {(self._folder / 'broker.log').read_text()[-1000:]}")
            if time.monotonic() > deadline:
                raise TimeoutError("ours does not start")
            time.sleep(0.001)
        self.port = int(port_file.read_text())
        self.exchange(API_VERSIONS)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(60)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(60)


class Apache(Broker):
    name = "Apache Kafka"

    def __init__(self, folder: Path, **settings: str) -> None:
        given = {name.replace("_", "."): value for name, value in settings.items()}
        self._kafka = apache.Kafka(folder, {**SETTINGS, **given})
        self.port = self._kafka.port

    def start(self) -> None:
        self._kafka.start()
        assert self._kafka.process is not None
        self.pid = self._kafka.process.pid
        self.exchange(API_VERSIONS)

    def stop(self) -> None:
        self._kafka.stop()


@contextlib.contextmanager
def running(broker: Ours | Apache) -> Iterator[Ours | Apache]:
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()
