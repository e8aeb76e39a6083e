"""The whole of it: hosts with their brokers, the network, ZooKeeper, and what has happened."""

import json
import logging
import random
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import trio

from trilogue.broker.cluster.zookeeper import Found
from trilogue.client.client import Client
from trilogue.client.world import Address
from trilogue.testing.simulation.agenda import BEGINNING, Agenda
from trilogue.testing.simulation.clients.member import Groups
from trilogue.testing.simulation.disks import Disks
from trilogue.testing.simulation.history import History
from trilogue.testing.simulation.hosts import PORT, WALL_MS, Host
from trilogue.testing.simulation.keeper import Keeper
from trilogue.testing.simulation.lives import LIFE, Life
from trilogue.testing.simulation.network import Network, NetworkWorld
from trilogue.testing.simulation.patches import Frozen

STATE = "/state"


class Violation(NamedTuple):
    t: float
    law: str
    """By which others of its kind are known."""
    text: str

    def __str__(self) -> str:
        return f"{self.t:.6f} {self.law}: {self.text}"


VIOLATIONS_MAX = 20


class Cluster:
    def __init__(
        self,
        seed: int,
        agenda: Agenda,
        frozen: Frozen,
        disks: Disks,
        folder: Path,
        tasks: trio.Nursery,
        brokers: int,
        settings: dict[str, str],
    ) -> None:
        self.seed, self.agenda, self.frozen, self.tasks = seed, agenda, frozen, tasks
        self.history = History(lambda: agenda.now - BEGINNING)
        self.violations: list[Violation] = []
        self.network = Network(agenda, random.Random(f"network {seed}"))
        self.keeper = Keeper(agenda, random.Random(f"keeper {seed}"), self._changed)
        self.watchers: list[Callable[[dict[str, Found | None]], None]] = []
        """Told of every change in ZooKeeper."""
        self.ack_listeners: list[Callable[[str, int, int], None]] = []
        """Told of what was acknowledged, by the offset behind it."""
        self.hosts = {number: Host(self, number, str(folder), settings) for number in range(1, brokers + 1)}
        for host in self.hosts.values():
            disks.add(host.disk)
        self.bootstrap = [Address(host.name, PORT) for host in self.hosts.values()]
        self.groups = Groups(self)
        self.over = trio.Event()
        """Something is wrong, or everything is done."""

    def client(self, life: Life, timeout: float) -> Client:
        return Client(self.bootstrap, NetworkWorld(self.network, life), client_id=life.host, timeout=timeout)

    def wall_ms(self) -> int:
        """Of a clock that is right."""
        return WALL_MS + int(self.agenda.now * 1000)

    def leader(self, topic: str, index: int) -> tuple[str, int]:
        """The host of who leads now, as ZooKeeper has it, and its epoch."""
        node = self.keeper.nodes.get(f"/brokers/topics/{topic}/partitions/{index}/state")
        said = json.loads(node.data) if node is not None and node.data else {"leader": -1, "leader_epoch": -1}
        return f"broker-{said['leader']}", said["leader_epoch"]

    def blame(self, law: str, text: str, error: BaseException | None = None) -> None:
        """Something is so that must not be."""
        if len(self.violations) < VIOLATIONS_MAX:
            self.violations.append(Violation(round(self.agenda.now - BEGINNING, 6), law, text))
            self.history.add("plan", "violated", law=law, text=text)
            if error is not None:
                self.history.add("plan", "trace", text=told(error))
        self.over.set()

    # -- what ZooKeeper tells ------------------------------------------------------------------

    def _changed(self, after: dict[str, Found | None]) -> None:
        for path, node in after.items():
            if path.endswith(STATE) and node is not None and node.data is not None:
                said = json.loads(node.data)
                _, _, _, topic, _, index, _ = path.split("/")
                self.history.add(
                    "keeper",
                    "leads",
                    topic=topic,
                    partition=int(index),
                    leader=said["leader"],
                    epoch=said["leader_epoch"],
                    isr=said["isr"],
                    elr=said.get("elr", []),
                )
            elif path == "/controller":
                self.history.add(
                    "keeper", "controller", broker=json.loads(node.data or b"")["brokerid"] if node else -1
                )
            elif path.startswith("/brokers/ids/"):
                self.history.add("keeper", "there" if node else "gone", broker=int(path.rpartition("/")[2]))
        for each in self.watchers:
            each(after)


class Sayings(logging.Handler):
    """What brokers say, as part of the history.  A bug that was survived is one all the same."""

    def __init__(self, cluster: Cluster, folder: str) -> None:
        super().__init__(logging.WARNING)
        self._cluster, self._folder = cluster, folder

    def emit(self, record: logging.LogRecord) -> None:
        life = LIFE.get()
        if life is None or not life.alive:
            return
        text = record.getMessage().replace(self._folder, "")
        self._cluster.history.add(life.host, "says", level=record.levelname, text=text)
        if record.exc_info is not None and record.exc_info[1] is not None:
            self._cluster.blame("bug", f"{life.host}: {text}: {record.exc_info[1]!r}", record.exc_info[1])


def told(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))
