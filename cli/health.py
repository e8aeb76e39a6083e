"""Whether a broker is ready: exit code 0 or 1.

Ready: it answers, it is registered in its cluster, and the cluster has a controller.

trilogue health
trilogue health --wait 30 --bootstrap 10.0.0.1:9092    wait until it is, 30 seconds at most
"""

# Container probes call this every few seconds, so it is to be quick: 40 ms, against 110 through `client`.  Hence one
# request written and read by hand: Metadata in version 1, which every broker since 0.10 answers, without topics.

import argparse
import socket
import struct
import time
from collections.abc import Callable
from typing import NamedTuple

from trilogue.cli import connecting
from trilogue.cli.failed import Failed

METADATA, VERSION, CORRELATION_ID = 3, 1, 7
CLIENT_ID = b"trilogue-health"
ANSWER_BYTES_MAX = 10 << 20
PAUSE_SECONDS = 0.05


class Health(NamedTuple):
    controller: int
    brokers: list[int]


class Unwell(Exception):
    """Why it is not ready."""


def add_to(command: argparse.ArgumentParser) -> None:
    connecting.add_options(command)
    command.add_argument("--wait", metavar="SECONDS", type=float, default=0.0, help="try again for so long")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    address = connecting.addresses(options)[0]
    try:
        health = patiently(lambda: examine(address, options.timeout), options.wait)
    except Unwell as problem:
        if options.json:
            from trilogue.cli.output import show_json

            show_json({"healthy": False, "address": str(address), "problem": str(problem)})
        raise Failed(f"{address} is not ready: {problem}") from None
    if options.json:
        from trilogue.cli.output import show_json

        show_json({"healthy": True, "address": str(address), **health._asdict()})
    else:
        count = len(health.brokers)
        print(f"{address} is ready: {count} broker{'s' * (count > 1)}, the controller is {health.controller}")


def patiently(attempt: Callable[[], Health], seconds: float) -> Health:
    deadline = time.monotonic() + seconds
    while True:
        try:
            return attempt()
        except Unwell:
            if time.monotonic() + PAUSE_SECONDS > deadline:
                raise
        time.sleep(PAUSE_SECONDS)


def examine(where: tuple[str, int], seconds: float) -> Health:
    try:
        with socket.create_connection(where, timeout=seconds) as sock:
            sock.sendall(question())
            (size,) = struct.unpack(">i", read(sock, 4))
            if not 0 <= size <= ANSWER_BYTES_MAX:
                raise Unwell("what listens there does not speak Kafka's protocol")
            health = understand(read(sock, size))
    except OSError as error:
        raise Unwell(error.strerror or str(error)) from None
    if health.controller not in health.brokers:
        raise Unwell("the cluster has no controller yet")
    return health


def question() -> bytes:
    head = struct.pack(">hhih", METADATA, VERSION, CORRELATION_ID, len(CLIENT_ID)) + CLIENT_ID
    no_topics = struct.pack(">i", 0)
    return struct.pack(">i", len(head) + len(no_topics)) + head + no_topics


def read(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = sock.recv(size - len(data))
        if not more:
            raise Unwell("it hung up, as listeners with SASL do: --bootstrap says where another one is")
        data += more
    return data


def understand(data: bytes) -> Health:
    """Brokers (id, host, port, rack), the controller's id, and topics, of which there are none."""
    try:
        at = 8
        correlation_id, count = struct.unpack_from(">ii", data)
        brokers = []
        for _ in range(count):
            node, size = struct.unpack_from(">ih", data, at)
            brokers.append(node)
            at += 6 + size + 4
            (size,) = struct.unpack_from(">h", data, at)
            at += 2 + max(size, 0)
        (controller,) = struct.unpack_from(">i", data, at)
    except struct.error:
        raise Unwell("what listens there does not speak Kafka's protocol") from None
    if correlation_id != CORRELATION_ID:
        raise Unwell("what listens there does not speak Kafka's protocol")
    return Health(controller, brokers)
