"""A broker as users have it, in a process of its own: killed, starved, damaged and started again.

Everything is seen from outside, so the same tests run on any trilogue: `TRILOGUE_COMMAND=../before/.venv/bin/trilogue`
shows that they fail on one that does not stay up.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from trilogue.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from trilogue.wire.apis.create_topics import CreateTopicsRequest, CreateTopicsResponse
from trilogue.wire.apis.fetch import FetchRequest, FetchResponse
from trilogue.wire.apis.produce import ProduceRequest, ProduceResponse
from trilogue.wire.frame import Frames, read_response, write_request
from trilogue.wire.records import Record, batches, build
from trilogue.wire.schema import Request, Response

START_SECONDS = STOP_SECONDS = ANSWER_SECONDS = 30.0
NOW_MS = 1_700_000_000_000
LARGEST_ANSWER = 200 << 20

T = TypeVar("T")
R = TypeVar("R", bound=Response)


def command() -> list[str]:
    given = os.environ.get("TRILOGUE_COMMAND")
    return [given] if given else [sys.executable, "-m", "trilogue"]


def eventually(look: Callable[[], T], seconds: float = 20.0) -> T:
    """What `look` answers as soon as that is true."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, f"not within {seconds} s; last seen: {found!r}"
        time.sleep(0.02)
    return found


class Client:
    """One connection that says exactly what it is told to."""

    def __init__(self, port: int) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=ANSWER_SECONDS)
        self._frames = Frames(LARGEST_ANSWER)
        self._ready: list[bytes] = []

    def send(self, request: Request, version: int, client_id: str = "test") -> None:
        self.sock.sendall(b"".join(bytes(part) for part in write_request(request, version, 1, client_id)))

    def receive(self, answer: type[R], version: int) -> R:
        while not self._ready:
            data = self.sock.recv(1 << 20)
            assert data, "the broker has hung up"
            self._ready += self._frames.feed(data)
        return read_response(memoryview(self._ready.pop(0)), answer, version)[1]

    def ask(self, request: Request, version: int, answer: type[R], client_id: str = "test") -> R:
        self.send(request, version, client_id)
        return self.receive(answer, version)

    # -- what most tests ask ---------------------------------------------------------------------

    def api_versions(self) -> None:
        assert self.ask(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == 0

    def create(self, topic: str, partitions: int = 1, **settings: str) -> int:
        """The error code."""
        configs = [
            CreateTopicsRequest.Topic.Config(name=name.replace("_", "."), value=value)
            for name, value in settings.items()
        ]
        wanted = CreateTopicsRequest.Topic(
            name=topic, num_partitions=partitions, replication_factor=1, assignments=[], configs=configs
        )
        made = self.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=10_000), 5, CreateTopicsResponse)
        return made.topics[0].error_code

    def produce(self, topic: str, *values: bytes, partition: int = 0, key: bytes | None = None, acks: int = -1) -> int:
        records = [Record(number, NOW_MS, key, value) for number, value in enumerate(values)]
        return self.produce_batch(topic, bytes(build(records)), partition=partition, acks=acks)

    def produce_batch(
        self, topic: str, batch: bytes, *, partition: int = 0, acks: int = -1, client_id: str = "test", version: int = 9
    ) -> int:
        """The error code."""
        data = ProduceRequest.Topic.Partition(index=partition, records=batch)
        asked = ProduceRequest(
            acks=acks, timeout_ms=10_000, topic_data=[ProduceRequest.Topic(name=topic, partition_data=[data])]
        )
        told = self.ask(asked, version, ProduceResponse, client_id)
        return told.responses[0].partition_responses[0].error_code

    def fetch(self, topic: str, offset: int = 0, *, partition: int = 0, version: int = 11) -> FetchResponse:
        wanted = FetchRequest.Topic.Partition(
            partition=partition, fetch_offset=offset, partition_max_bytes=LARGEST_ANSWER
        )
        asked = FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=LARGEST_ANSWER,
            topics=[FetchRequest.Topic(topic=topic, partitions=[wanted])],
        )
        return self.ask(asked, version, FetchResponse)

    def values(self, topic: str, partition: int = 0) -> list[bytes | None]:
        """All the records of a partition."""
        found: list[bytes | None] = []
        offset = 0
        while True:
            answer = self.fetch(topic, offset, partition=partition).responses[0].partitions[0]
            assert answer.error_code == 0, answer.error_code
            read = [record for batch in batches(memoryview(bytes(answer.records or b""))) for record in batch.records()]
            if not read:
                return found
            found += [None if record.value is None else bytes(record.value) for record in read]
            offset = read[-1].offset + 1

    def close(self) -> None:
        self.sock.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Process:
    """`trilogue start` on a folder, which stays when the process goes."""

    def __init__(self, folder: Path, *words: str, **settings: str) -> None:
        self.folder, self.words = folder, words
        self.settings = {name.replace("_", "."): value for name, value in settings.items()}
        self.data = folder / "data"
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def launch(self, *words: str, before: tuple[str, ...] = ()) -> None:
        """Only begin to start; `before` stands in front of the command."""
        self.folder.mkdir(parents=True, exist_ok=True)
        port_file = self.folder / "port"
        port_file.unlink(missing_ok=True)
        given = [*before, *command(), "start", "--port=0", f"--port-file={port_file}", f"--data={self.data}"]
        given += [f"--set={name}={value}" for name, value in self.settings.items()]
        with open(self.folder / "broker.log", "ab") as log:
            self._process = subprocess.Popen([*given, *self.words, *words], stdout=log, stderr=log)

    def start(self, *words: str, before: tuple[str, ...] = ()) -> None:
        self.launch(*words, before=before)
        port_file = self.folder / "port"
        eventually(lambda: port_file.exists() or self.ended is not None, START_SECONDS)
        assert self.ended is None, f"ended with {self.ended}: {self.log()[-2000:]}"
        self.port = int(port_file.read_text())

    @property
    def ended(self) -> int | None:
        """The exit code, if there is one."""
        assert self._process is not None
        return self._process.poll()

    def wait(self, seconds: float = STOP_SECONDS) -> int:
        assert self._process is not None
        return self._process.wait(seconds)

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self) -> int:
        self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.wait()

    def restart(self) -> None:
        self.stop()
        self.start()

    def restart_with(self, **settings: str) -> None:
        """With other settings than before."""
        self.settings |= {name.replace("_", "."): value for name, value in settings.items()}
        self.restart()

    def log(self) -> str:
        return (self.folder / "broker.log").read_text(errors="replace")

    def client(self) -> Client:
        return Client(self.port)

    def rss_mib(self) -> float:
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise AssertionError("no VmRSS")


@contextlib.contextmanager
def process(folder: Path, *words: str, **settings: str) -> Iterator[Process]:
    """Started, and ended whatever happens."""
    running = Process(folder, *words, **settings)
    running.start()
    try:
        yield running
    finally:
        if running.ended is None:
            running.kill()
