"""What a message costs our broker as other things grow: partitions, connections, the log, groups.  Flat within 1.5x."""

import resource
import shutil
import socket
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench import groups, native, storage
from bench.asking import Connection
from bench.brokers import Ours, running
from bench.trial import say
from bench.trials import KIB, fresh
from trilogue.wire.apis.heartbeat import HeartbeatRequest

RECORDS = 200_000
FLAT = 1.5
ROUNDS = 3
LOOKS = 2000
HEARTBEATS = 10_000


class Grown(NamedTuple):
    """Costs at several sizes of one thing."""

    what: str
    cost: str
    sizes: list[int]
    costs: list[float]

    @property
    def factor(self) -> float:
        """The largest cost over that at the smallest size."""
        return max(self.costs) / self.costs[0]

    @property
    def verdict(self) -> str:
        return "met" if self.factor <= FLAT else "MISSED"


def cost(broker: Ours, topic: str, folder: Path) -> float:
    """CPU microseconds of the broker for a record, produced in batches of 16 KiB; the best of some rounds."""
    settings = ["batch.size=16384", "linger.ms=5", "acks=1"]
    costs = []
    for _ in range(ROUNDS):
        storage.touch_memory(folder, storage.AHEAD_BYTES)
        before = broker.cpu_seconds()
        native.run("driver", "produce", broker.bootstrap, topic, 1, RECORDS, KIB, *settings)
        costs.append((broker.cpu_seconds() - before) / RECORDS * 1e6)
    return min(costs)


def partitions(folder: Path) -> Grown:
    sizes, costs = [1, 100, 1000, 10_000], []
    with running(Ours(folder / "partitions")) as broker:
        assert isinstance(broker, Ours)
        topic = fresh(broker)
        there = 1
        for size in sizes:
            while there < size:
                step = min(size - there, 1000)
                fresh(broker, step)
                there += step
            say(f"  growth: {size} partitions")
            costs.append(cost(broker, topic, folder))
    return Grown("partitions", "CPU-us per record produced", sizes, costs)


def connections(folder: Path) -> Grown:
    sizes, costs = [1, 100, 1000, 5000], []
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = sizes[-1] + 200
    if hard < wanted:
        sizes = [size for size in sizes if size + 200 <= hard]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, wanted), hard), hard))
    idle: list[socket.socket] = []
    with running(Ours(folder / "connections")) as broker:
        assert isinstance(broker, Ours)
        topic = fresh(broker)
        for size in sizes:
            while len(idle) < size:
                idle.append(socket.create_connection(("127.0.0.1", broker.port), timeout=10))
            say(f"  growth: {size} connections")
            costs.append(cost(broker, topic, folder))
        for each in idle:
            each.close()
    return Grown("idle connections", "CPU-us per record produced", sizes, costs)


def log_size(folder: Path) -> Grown:
    """The log by itself: full of holes, or fifty gibibytes would have to be written."""
    sizes, costs = [1, 10, 50], []
    for size in sizes:
        say(f"  growth: a log of {size} GiB")
        log = storage.sparse(folder / f"sparse-{size}", size * storage.GIB)
        step = max(log.end_offset * 7919 // 10_000, 1)
        offsets = [number * step % (log.end_offset - 1) for number in range(LOOKS)]
        found = []
        for _ in range(storage.ROUNDS):
            begun = time.perf_counter()
            for offset in offsets:
                log.read(offset, 100, up_to=log.end_offset)
            found.append((time.perf_counter() - begun) / LOOKS * 1e6)
        costs.append(statistics.median(found))
        log.close(clean=False)
        shutil.rmtree(folder / f"sparse-{size}")
    return Grown("GiB of log", "us to find an offset at random", sizes, costs)


def group_count(folder: Path) -> Grown:
    """The same number of heartbeats, as fast as they are answered, spread over ever more groups of two."""
    sizes, costs = [1, 10, 100, 1000], []
    for size in sizes:
        say(f"  growth: {size} groups")
        with running(Ours(folder / f"groups-{size}")) as broker:
            groups.find_coordinators(broker)
            pair = [Connection(broker.address) for _ in range(2)]
            beats = [beat for number in range(size) for beat in groups.join(pair, f"growth-{number}")]
            found = []
            for _ in range(ROUNDS):
                before = broker.cpu_seconds()
                for number in range(HEARTBEATS):
                    pair[0].send(beats[number % len(beats)])
                    answer = pair[0].hear(HeartbeatRequest.api_key, 3)
                    assert answer.error_code == 0, answer
                found.append((broker.cpu_seconds() - before) / HEARTBEATS * 1e6)
            costs.append(min(found))
    return Grown("groups", "CPU-us per heartbeat", sizes, costs)


def all_growth(folder: Path) -> Iterator[Grown]:
    yield partitions(folder)
    yield connections(folder)
    yield log_size(folder)
    yield group_count(folder)
