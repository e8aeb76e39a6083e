"""Apache Kafka itself, for the tests that compare: bytes that no client would send, and what it says to them."""

import ast
import socket
import subprocess
import sys
import time
from pathlib import Path
from struct import pack, unpack_from
from typing import NamedTuple

from apache import Kafka

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "num.partitions": "1",
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.io.buffer.size": "131072",
    "log.cleaner.dedupe.buffer.size": "4000000",
    "log.segment.delete.delay.ms": "100",
}
"""A broker that compacts and deletes while a test can wait for it."""


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
