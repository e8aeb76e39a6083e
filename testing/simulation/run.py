"""Runs a plan: a cluster is begun, things go wrong, all is healed, and what is there is looked at."""

import gc
import logging
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import trio

from trilogue.broker.requests import registry
from trilogue.testing.simulation.agenda import BEGINNING, Agenda
from trilogue.testing.simulation.clients.member import ClassicMember, ModernMember
from trilogue.testing.simulation.clients.party import TROUBLES
from trilogue.testing.simulation.clients.party import Party as Client
from trilogue.testing.simulation.clients.producer import Producer
from trilogue.testing.simulation.clients.reader import Reader
from trilogue.testing.simulation.clients.transactional import Transactional
from trilogue.testing.simulation.cluster import Cluster, Sayings, Violation
from trilogue.testing.simulation.disks import Disks, installed
from trilogue.testing.simulation.ending import Ending, until_well
from trilogue.testing.simulation.faults import Faults
from trilogue.testing.simulation.history import Event
from trilogue.testing.simulation.laws import Laws
from trilogue.testing.simulation.lives import Life
from trilogue.testing.simulation.patches import Frozen, patched
from trilogue.testing.simulation.plan import BROKERS, PARTITIONS, Party, Plan
from trilogue.wire.apis.create_topics import CreateTopicsRequest, CreateTopicsResponse
from trilogue.wire.errors import ErrorCode

MEMORY = "/dev/shm"
BEGIN_SECONDS = 30.0
END_SECONDS = 60.0
TOPIC, TRANSACTIONAL = "t", "x"


class Outcome(NamedTuple):
    plan: Plan
    violations: list[Violation]
    events: list[Event]
    fingerprint: str
    virtual_seconds: float
    real_seconds: float
    looks: int


def run(plan: Plan) -> Outcome:
    """The same plan has the same outcome."""
    registry.load()
    begun = perf_counter()
    agenda, disks, kept = Agenda(), Disks(), list[Cluster]()
    gc.disable()  # it is a fifth of the time, and cycles go when the seed is over
    try:
        with scratch() as folder, installed(disks), quiet(), patched(f"scheduler {plan.seed}") as frozen:
            story = Story(plan, agenda, disks, frozen, folder, kept)
            trio.run(story.tell, clock=agenda)
    finally:
        gc.enable()
    cluster = kept[0]
    history = cluster.history
    virtual = agenda.now - BEGINNING
    return Outcome(
        plan, cluster.violations, history.events, history.fingerprint(), virtual, perf_counter() - begun, story.looks
    )


@contextmanager
def scratch() -> Iterator[Path]:
    where = MEMORY if Path(MEMORY).is_dir() else None
    path = tempfile.mkdtemp(prefix="trilogue-simulation-", dir=where)
    try:
        yield Path(path)
    finally:
        shutil.rmtree(path, ignore_errors=True)


class Story:
    def __init__(
        self, plan: Plan, agenda: Agenda, disks: Disks, frozen: Frozen, folder: Path, kept: list[Cluster]
    ) -> None:
        self._plan, self._agenda, self._disks, self._frozen, self._folder = plan, agenda, disks, frozen, folder
        self._kept = kept
        self.looks = 0

    async def tell(self) -> None:
        plan = self._plan
        async with trio.open_nursery() as tasks:
            cluster = Cluster(
                plan.seed, self._agenda, self._frozen, self._disks, self._folder, tasks, BROKERS, plan.settings
            )
            self._kept.append(cluster)
            laws = Laws(cluster, unclean=plan.settings.get("unclean.leader.election.enable") == "true")
            logging.getLogger("trilogue").addHandler(Sayings(cluster, str(self._folder)))
            try:
                async with trio.open_nursery() as play:
                    play.start_soon(self._until_over, cluster, play.cancel_scope)
                    play.start_soon(self._play, cluster, laws)
            finally:
                self._agenda.before_time_moves = None
                self.looks = laws.looks
                for host in cluster.hosts.values():
                    host.kill()
            tasks.cancel_scope.cancel()

    async def _until_over(self, cluster: Cluster, scope: trio.CancelScope) -> None:
        await cluster.over.wait()
        scope.cancel()

    async def _play(self, cluster: Cluster, laws: Laws) -> None:
        for host in cluster.hosts.values():
            host.start()
        topics = {TOPIC, *(TRANSACTIONAL for each in self._plan.parties if each.kind == "transactional")}
        if not await make_topics(cluster, sorted(topics), self._plan.configs):
            return
        parties = [party_of(cluster, each) for each in self._plan.parties]
        faults = Faults(cluster, laws, parties)
        for party in parties:
            cluster.tasks.start_soon(party.run)
        async with trio.open_nursery() as nursery:
            for fault in self._plan.faults:
                nursery.start_soon(faults.bring_about, fault)
            await trio.sleep(self._plan.seconds)
        cluster.history.add("plan", "healed")
        for party in parties:
            party.ending.set()
        for party in parties:
            with trio.move_on_after(END_SECONDS) as patience:
                await party.ended.wait()
            if patience.cancelled_caught:
                cluster.blame("Ends", f"{party.name} cannot come to an end in {END_SECONDS:g} s")
                return
        if await until_well(cluster, laws):
            laws.look()
            Ending(cluster, laws).check()
        cluster.over.set()


@contextmanager
def quiet() -> Iterator[None]:
    """What brokers say goes to the history, and nowhere else."""
    logger = logging.getLogger("trilogue")
    before, handlers = logger.propagate, list(logger.handlers)
    logger.propagate = False
    try:
        yield
    finally:
        logger.propagate = before
        logger.handlers[:] = handlers


async def make_topics(cluster: Cluster, names: list[str], configs: dict[str, str]) -> bool:
    client = cluster.client(Life("admin", 0), 2.0)
    Topic = CreateTopicsRequest.Topic
    given = [Topic.Config(name=key, value=value) for key, value in configs.items()]
    topics = [
        Topic(name=each, num_partitions=PARTITIONS, replication_factor=BROKERS, assignments=[], configs=given)
        for each in names
    ]
    with trio.move_on_after(BEGIN_SECONDS):
        while True:
            try:
                request = CreateTopicsRequest(topics=topics, timeout_ms=2000)
                answer = await client.call(request, CreateTopicsResponse)
                made = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
                if all(each.error_code in made for each in answer.topics):
                    client.close()
                    return True
            except TROUBLES:
                client.close()
            await trio.sleep(0.1)
    cluster.blame("Begins", "no topic could be made")
    return False


def party_of(cluster: Cluster, party: Party) -> Client:
    given = party.given
    match party.kind:
        case "producer":
            return Producer(cluster, party.name, TOPIC, PARTITIONS, given["pause"])
        case "reader":
            return Reader(cluster, party.name, given["topic"], PARTITIONS, committed=given["committed"])
        case "transactional":
            return Transactional(cluster, party.name, TRANSACTIONAL, PARTITIONS, given["pause"], given["generation"])
        case "classic member":
            return ClassicMember(cluster, party.name, TOPIC, PARTITIONS)
        case "modern member":
            return ModernMember(cluster, party.name, TOPIC, PARTITIONS)
    raise ValueError(party.kind)
