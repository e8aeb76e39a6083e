"""A broker's life: open, serve, close.  Every nursery and every long-lived task is on this page.

sockets bound -> directories locked -> store opened -> store read, logs recovered -> registered -> clients let in
"""

import errno
import json
import logging
import os
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from itertools import count
from math import inf
from pathlib import Path
from typing import NamedTuple

import trio

from trilogue.broker.adoption import adopt
from trilogue.broker.broker import Broker
from trilogue.broker.clock import Clock
from trilogue.broker.cluster.image import CLUSTER_ID, Endpoint
from trilogue.broker.cluster.local import LocalStore, stored_cluster_id
from trilogue.broker.cluster.store import UNREACHED, Refused, Session, Store
from trilogue.broker.config import BrokerConfig
from trilogue.broker.coordinators.markers import carry_markers
from trilogue.broker.joining import ensemble_of, join
from trilogue.broker.membership import Member, introduce_cluster
from trilogue.broker.network.guests import Watched
from trilogue.broker.network.listeners import CannotStart, Listener
from trilogue.broker.network.transport import Transport
from trilogue.broker.partitions.replicas import UNREGISTERED
from trilogue.broker.requests import registry
from trilogue.broker.surroundings import Surroundings
from trilogue.storage.checkpoint import META_PROPERTIES, read_properties
from trilogue.storage.directory import DataDirectory, DirectoryInUse, WrongDirectory
from trilogue.storage.files import OPEN_FILES, OpenFiles
from trilogue.storage.passing import lacks_space
from trilogue.wire.ids import uuid_text

logger = logging.getLogger(__name__)

METADATA_FILE = "metadata.sqlite"
LOOK_SECONDS = 1.0
"""How often it is looked whether directories and logs are there.  For so long records may be taken that are lost."""

GRACE_SECONDS = 0.3
"""How long answers in flight may take when we stop."""

FLUSH_SECONDS = 1.0
"""How often it is looked for what `flush.ms` asks for."""

SHORTEST_INTERVAL = 0.01
"""Some intervals may be set to nothing, or to less.  What is done without a pause is all that is done."""

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0
"""Seconds until a task of ours that has failed is begun again."""

SECRET_BYTES = 32

FIRST_NODE_ID = 1
"""Of a broker that is not told who it is."""


class NoDirectoryLeft(Exception):
    """There is no data directory that works, or the one with the metadata does not: we have ended."""


class Server:
    """A broker that is being served, for whoever has started it."""

    def __init__(self, broker: Broker, listeners: Sequence[Listener]) -> None:
        self.broker, self.listeners = broker, listeners
        self.transport: Transport | None = None
        """How they are served; there once clients may come."""
        self.stopped = trio.Event()
        self.stop_asked = trio.Event()
        self.member: Member | None = None
        """As which the cluster knows us, as soon as it is to."""
        self.killed = False
        """We end as if we had been killed."""
        self.lost: OSError | None = None
        """Why we end of ourselves, if so: there is nothing left to write to."""

    def stop(self) -> None:
        """Answer what is in flight, write down where everything is, and end."""
        self.stop_asked.set()

    def kill(self) -> None:
        """End here and now: hand nothing over, answer nobody, and leave the directories as they are.  For tests."""
        self.killed = True
        self.broker.tasks.cancel_scope.cancel()

    def end_without_disk(self, why: OSError) -> None:
        """As Kafka does: somebody has to look, or a supervisor has to try again."""
        if not self.stop_asked.is_set():
            self.lost = why
            self.stop()

    def serve_with(self, watched: Watched) -> None:
        """Let connections be of other kinds: for tests that look at requests, or have their own way with them."""
        if self.transport is not None:
            self.transport.serve_with(watched)

    async def reset(self) -> None:
        """As if newly made: no topics, no settings but those it was started with, no sessions.  For tests."""
        await self.broker.controller.clear()
        self.broker.fetch_sessions.clear()
        self.broker.clock.reset()
        await self.broker.upkeep.remove_doomed(inf)


# -- life ------------------------------------------------------------------------------------------


async def serve(
    config: BrokerConfig,
    *,
    store: Store | None = None,
    clock: Clock | None = None,
    chance: random.Random | None = None,
    adopting: bool = False,
    surroundings: Surroundings | None = None,
    task_status: trio.TaskStatus[Server] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Be a broker until `Server.stop` is called.  `started` is called, with the server, when the first client may come.

    `store` is for brokers that share one in a process; without it, and without ZooKeeper, the broker keeps its own
    beside its data.  `adopting` takes up partitions that the store knows nothing of.  `surroundings` are the system's,
    unless somebody has made others.
    """
    registry.load()
    clock, chance = clock or Clock(), chance or random.SystemRandom()
    around = surroundings or Surroundings()
    async with AsyncExitStack() as ending:  # what was opened last is closed first
        listeners = around.open_listeners(config)
        ending.callback(around.close_listeners, listeners)
        home, session, own = await open_session(config, store, chance, ending, around, adopting=adopting)
        try:
            await introduce_cluster(session, home.cluster_id, chance.randbytes(SECRET_BYTES).hex().encode())
            if adopting:
                await adopt(session, home.directories, config, home.node_id, clock(), partial(chance.randbytes, 16))
        except OSError as error:
            raise cannot_begin(home.directories, error) from None
        async with trio.open_nursery() as tasks:
            broker = Broker(
                config,
                home.node_id,
                session=session,
                directories=home.directories,
                tasks=tasks,
                clock=clock,
                chance=chance,
                carry_markers=carry_markers,
                unadvertised=[each.name for each in listeners if each.advertised is None],
                inter_broker_listener=inter_broker_listener(config, listeners),
                world=around.world(),
            )
            around.met(broker)
            server = Server(broker, listeners)
            ending.callback(close_logs, server)
            ending.callback(broker.links.close)
            tasks.start_soon(supervised, "looking after the disks", partial(look_after_disks, server, own))
            try:
                await live(server, ending, around, task_status)
            except (Refused, *UNREACHED) as problem:  # before the first client came
                raise CannotStart(str(problem)) from None
            tasks.cancel_scope.cancel()
    server.stopped.set()
    if server.lost is not None:
        raise NoDirectoryLeft(f"the broker has ended, for no data directory works any more: {server.lost}")


async def live(
    server: Server, ending: AsyncExitStack, around: Surroundings, task_status: trio.TaskStatus[Server]
) -> None:
    broker, upkeep = server.broker, server.broker.upkeep
    tasks = broker.tasks
    broker.replicas.broker_epoch = UNREGISTERED  # nothing is ours before we are registered
    try:
        await broker.view.load()
        broker.replicas.put_strays_aside(broker.image)
    except OSError as error:
        raise cannot_begin(broker.replicas.directories, error) from None
    for name, work in (
        ("the watchdog", partial(around.watch, broker.view.session)),
        ("the pulse", broker.pulse.run),
        ("groups", broker.groups.run),
        ("transactions", broker.transactions.run),
        ("following the store", broker.view.follow),
        ("the controller", broker.controller.run),
        ("preferred leaders", partial(balance_regularly, broker)),
        ("replicas in sync", broker.in_sync.run),
        ("opening logs", broker.open_the_rest),
    ):
        tasks.start_soon(supervised, name, work)
    member = server.member = Member(broker, [Endpoint(*each.endpoint) for each in server.listeners])
    try:
        await member.register()
    except OSError as error:
        raise cannot_begin(broker.replicas.directories, error) from None
    broker.replicas.in_pieces = True
    tasks.start_soon(supervised, "staying registered", partial(stay_registered, server, member))
    tasks.start_soon(supervised, "saying what is offline", member.say_what_is_offline)
    async with trio.open_nursery() as connections:
        transport = server.transport = around.open_transport(broker, connections)
        ending.callback(transport.close)
        for listener in server.listeners:
            transport.add(listener)
        tasks.start_soon(transport.run)
        for name, work in (
            ("sweeping connections", transport.sweep),
            ("retention", partial(every, broker, "log.retention.check.interval.ms", upkeep.expire)),
            ("compaction", partial(every, broker, "log.cleaner.backoff.ms", upkeep.compact)),
            ("checkpoints", partial(every, broker, "replica.high.watermark.checkpoint.interval.ms", upkeep.checkpoint)),
            ("flushing", partial(flush_regularly, broker)),
        ):
            tasks.start_soon(supervised, name, work)
        task_status.started(server)
        await server.stop_asked.wait()
        await member.hand_over()
        broker.stopping = True
        transport.stop_listening()
        for partition in broker.replicas:
            partition.ring()  # whoever waits for data gets what there is
        connections.cancel_scope.deadline = trio.current_time() + GRACE_SECONDS


async def stay_registered(server: Server, member: Member) -> None:
    why = await member.stay()
    logger.error("%s; this broker ends", why)
    server.stop()


def close_logs(server: Server) -> None:
    """Say up to which broker epoch we have everything.  Not the one that the cluster has: before we are registered that
    is of a run before, which may have been killed and have lost what was not on the disk."""
    server.broker.replicas.close(server.member.had_all if server.member is not None else None, clean=not server.killed)


def cannot_begin(directories: Sequence[DataDirectory], error: OSError) -> CannotStart:
    if lacks_space(error):
        return disk_full([each.path for each in directories])
    return CannotStart(f"{error}: choose another directory with --data")


async def end_session(session: Session) -> None:
    with trio.CancelScope(shield=True):
        await session.close()


async def supervised(name: str, work: Callable[[], Awaitable[None]]) -> None:
    """What fails is said and begun again, after a pause that grows while it goes on failing: no bug in one of the
    broker's own tasks ends all the others."""
    pause = FIRST_PAUSE
    while True:
        begun = trio.current_time()
        try:
            return await work()
        except Exception:
            if trio.current_time() - begun > LONGEST_PAUSE:
                pause = FIRST_PAUSE  # it was well for a long time
            logger.exception("%s failed, and is begun again in %g s", name, pause)
        await trio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)


async def every(broker: Broker, setting: str, work: Callable[[], Awaitable[None]]) -> None:
    while True:
        await trio.sleep(max(broker.config[setting] / 1000, SHORTEST_INTERVAL))
        await work()


async def look_after_disks(server: Server, own: LocalStore | None) -> None:
    """`own` is the store that lies in our first directory, which we then cannot do without."""
    replicas = server.broker.replicas
    while True:
        await trio.sleep(LOOK_SECONDS)
        await server.broker.look_after_disks()
        why = replicas.none_left
        if own is not None:
            first = replicas.directories[0]
            if not own.is_there() and first.failed is None:
                first.fail(FileNotFoundError(errno.ENOENT, f"{METADATA_FILE} was removed under us", first.path))
            why = first.failed or why
        if why is not None:
            server.end_without_disk(why)


async def flush_regularly(broker: Broker) -> None:
    while True:
        await trio.sleep(FLUSH_SECONDS)
        await broker.upkeep.flush_due()


async def balance_regularly(broker: Broker) -> None:
    while broker.config["auto.leader.rebalance.enable"]:
        await trio.sleep(broker.config["leader.imbalance.check.interval.seconds"])
        await broker.controller.balance()


# -- opening ---------------------------------------------------------------------------------------


class Home(NamedTuple):
    """Who we are, and where our data is."""

    node_id: int
    cluster_id: str
    directories: list[DataDirectory]


async def open_session(
    config: BrokerConfig,
    store: Store | None,
    chance: random.Random,
    ending: AsyncExitStack,
    around: Surroundings,
    *,
    adopting: bool,
) -> tuple[Home, Session, LocalStore | None]:
    """The directories and the store, one after the other: each says which cluster the other has to be of.

    The last of the answer is the store, if it is in our own directories.
    """
    ensemble = ensemble_of(config) if store is None else None
    if ensemble is not None:
        if adopting:
            raise CannotStart("--adopt is for a broker that keeps its metadata itself, and not in ZooKeeper")
        known, new = known_cluster_id(data_paths(config)), wanted_cluster_id(config, chance)
        remote, cluster_id = await join(ensemble, known, new, ending, around.new_link)
        check_cluster_id(config, cluster_id, str(ensemble))
        return open_home(config, chance, cluster_id), remote, None
    home = open_home(config, chance)
    own = None
    if store is None:
        try:
            store = own = open_store(home, adopting=adopting)
        except CannotStart:
            for each in home.directories:
                each.let_go()  # here and now: who keeps the error keeps their locks with it
            raise
        ending.callback(store.close)
    session = store.session()
    ending.push_async_callback(end_session, session)
    return home, session, own


def data_paths(config: BrokerConfig) -> Sequence[str]:
    return config["log.dirs"] or config["log.dir"]  # type: ignore[no-any-return]


def open_home(config: BrokerConfig, chance: random.Random, cluster_id: str | None = None) -> Home:
    node_id = config["node.id"] if config["node.id"] >= 0 else FIRST_NODE_ID
    paths = data_paths(config)
    pool = OpenFiles(awake_files())
    refuse_twins(paths)
    try:
        cluster_id = cluster_id or known_cluster_id(paths) or stored_cluster_id(Path(paths[0], METADATA_FILE))
        cluster_id = cluster_id or wanted_cluster_id(config, chance)
        check_cluster_id(config, cluster_id, paths[0])
        directories = [
            DataDirectory(path, cluster_id=cluster_id, node_id=node_id, new_id=chance.randbytes(16), pool=pool)
            for path in paths
        ]
    except (DirectoryInUse, WrongDirectory) as problem:
        raise CannotStart(f"{problem}: choose another with --data") from None
    except OSError as error:
        if lacks_space(error):
            raise disk_full(paths) from None
        raise CannotStart(
            f"cannot use {error.filename or paths}: {error.strerror}; choose another with --data"
        ) from None
    return Home(node_id, cluster_id, directories)


def awake_files() -> int:
    """Half of the descriptors that we may have are for files of partitions, the rest for connections."""
    try:
        import resource
    except ImportError:
        return OPEN_FILES
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return OPEN_FILES if soft == resource.RLIM_INFINITY else max(1, min(OPEN_FILES, soft // 2))


def disk_full(paths: Sequence[str]) -> CannotStart:
    return CannotStart(f"disk full: there is no room in {', '.join(paths)}; make some, or choose another with --data")


def refuse_twins(paths: Sequence[str]) -> None:
    """One directory under two names would have every partition twice, and so put one of each aside."""
    found: dict[str, str] = {}
    for path in paths:
        real = os.path.normcase(os.path.realpath(path))
        if real in found:
            raise CannotStart(f"log.dirs: {found[real]} and {path} are one directory; name it once")
        found[real] = path


def known_cluster_id(paths: Sequence[str]) -> str | None:
    """The cluster that the directories belong to; None if they are new."""
    known = {read_properties(str(Path(path, META_PROPERTIES))).get("cluster.id") for path in paths} - {None}
    if len(known) > 1:
        raise CannotStart(f"the data directories belong to different clusters: {', '.join(sorted(map(str, known)))}")
    return known.pop() if known else None


def wanted_cluster_id(config: BrokerConfig, chance: random.Random) -> str:
    """Of a cluster that begins here and now."""
    return config["trilogue.cluster.id"] or uuid_text(chance.randbytes(16))


def check_cluster_id(config: BrokerConfig, found: str, where: str) -> None:
    wanted = config["trilogue.cluster.id"]
    if wanted not in (None, found):
        raise CannotStart(
            f"{where} is of cluster {found}, and trilogue.cluster.id is {wanted}: leave it out, or {CHOOSE}"
        )


def open_store(home: Home, *, adopting: bool) -> LocalStore:
    """The broker's own, in its first directory.  To one that is not theirs all partitions there would be strays."""
    file = Path(home.directories[0].path, METADATA_FILE)
    has_partitions = any(each.partitions() for each in home.directories)
    if has_partitions and not file.exists() and not adopting:  # Apache Kafka's, most likely
        raise CannotStart(
            f"there are partitions in {file.parent}, but no {file.name}: choose another with --data, or {ADOPT}"
        )
    try:
        store = LocalStore(file)
        problem = misplaced(store, file, home.cluster_id) if has_partitions else None
        if problem is not None:
            store.close()
    except OSError as error:
        if lacks_space(error):
            raise disk_full([str(file.parent)]) from None
        problem = str(error)
    if problem is None:
        return store
    if not adopting:
        remedy = f"bring back the one they belong to, {CHOOSE}, or {ADOPT}" if has_partitions else CHOOSE
        raise CannotStart(f"{problem}: {remedy}")
    put_aside(file, problem)
    return LocalStore(file)


CHOOSE = "choose another directory with --data"
ADOPT = "have their topics made again from what lies there with --adopt"


def misplaced(store: LocalStore, file: Path, cluster_id: str) -> str | None:
    """What is wrong with a store beside partitions of this cluster."""
    node = store.nodes.get(CLUSTER_ID)
    if node is None:
        return f"{file} is empty, and there are partitions beside it"
    theirs = json.loads(node.data)["id"]
    return (
        f"{file} is of cluster {theirs}, and what lies beside it of cluster {cluster_id}"
        if theirs != cluster_id
        else None
    )


def put_aside(file: Path, why: str) -> None:
    """The store with the files that SQLite has beside it, under a name that nobody has."""
    number = next(each for each in count(1) if not file.with_name(f"{file.name}.aside-{each}").exists())
    for suffix in ("", "-wal", "-shm"):
        part = file.with_name(file.name + suffix)
        if part.exists():
            part.rename(file.with_name(f"{file.name}.aside-{number}{suffix}"))
    logger.warning("%s; it is now %s.aside-%d", why, file.name, number)


def inter_broker_listener(config: BrokerConfig, listeners: Sequence[Listener]) -> str:
    """The listener that other brokers come to: the one that is named, or the first."""
    named, protocol = config["inter.broker.listener.name"], config.static.get("security.inter.broker.protocol")
    if named is not None and protocol is not None:
        raise CannotStart("only one of inter.broker.listener.name and security.inter.broker.protocol should be set")
    if protocol is not None:
        found = next((each.name for each in listeners if each.protocol == protocol.strip()), None)
        if found is None:
            raise CannotStart(f"security.inter.broker.protocol={protocol}: no listener speaks it")
        return found
    if named is None:
        return listeners[0].name
    if named.upper() not in (each.name for each in listeners):
        raise CannotStart(f"inter.broker.listener.name={named}: listeners does not have it")
    return str(named.upper())
