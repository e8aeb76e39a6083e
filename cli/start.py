"""Run a broker, until SIGTERM, SIGHUP or Ctrl-C.  SIGUSR1 has it say what it is doing.

trilogue start                           on 127.0.0.1:9092, data in ./trilogue-data
trilogue start --ephemeral --port 0      a free port, nothing kept
trilogue start --config server.properties --set num.partitions=3
trilogue start --zookeeper host:2181/kafka --node-id 2      one of several brokers
trilogue start --topic orders:3 --topic state:1:1:compact   with these topics
"""

import argparse
import gc
import logging
import signal
import sys
import tempfile
from collections.abc import Iterable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from trilogue import __version__
from trilogue.cli.failed import Failed

if TYPE_CHECKING:
    import trio

    from trilogue.broker.cluster.decisions import NewTopic
    from trilogue.broker.server import Server

ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGBREAK") if hasattr(signal, name)]
"""Ctrl-Break is what one process can send to another on Windows, where SIGTERM kills."""

TELLING = getattr(signal, "SIGUSR1", None)

logger = logging.getLogger(__name__)

SWITCH_SECONDS = 0.0005
"""How long a thread of ours that does long work keeps the interpreter from the loop.  Python's own 5 ms, which each
call to the system waits for anew, would be felt by every client."""

COLLECTED_AFTER = (20_000, 5, 100)
"""When Python looks for garbage that holds itself.  We make hardly any, and with 10,000 partitions to look through it
would stop everybody for a quarter of a second, ten times as often."""

DEFAULT_PORT = 9092
PORT_MAX = 65535
FAULTS_PORT = 9099
DEFAULT = -1
"""Of partitions and replicas: as many as the broker's settings say."""


def add_to(start: argparse.ArgumentParser) -> None:
    start.add_argument("--listen", metavar="HOST:PORT", action="append", help="where clients connect (127.0.0.1:9092)")
    start.add_argument("--port", type=int, help="only the port; 0 is any that is free")
    start.add_argument("--advertise", metavar="HOST:PORT", help="what clients are told; without it, where they came in")
    start.add_argument("--data", metavar="DIR", help="where everything is kept (./trilogue-data)")
    start.add_argument("--ephemeral", action="store_true", help="keep nothing: the data goes when the broker does")
    start.add_argument("--node-id", metavar="N", type=int, help="which broker of the cluster this is (1)")
    start.add_argument(
        "--zookeeper", metavar="HOST:PORT[,...][/PATH]", help="where brokers keep what they know of their cluster"
    )
    start.add_argument(
        "--adopt", action="store_true", help="make topics again for partitions there that the metadata does not know"
    )
    start.add_argument("--config", metavar="FILE", type=Path, help="settings, in a file of Kafka's format")
    start.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help="one setting, by Kafka's name")
    start.add_argument(
        "--topic",
        metavar="NAME[:PARTITIONS[:REPLICAS[:CLEANUP_POLICY]]]",
        type=new_topic,
        action="append",
        default=[],
        help="make this topic if it is not there",
    )
    start.add_argument("--port-file", metavar="FILE", type=Path, help="write the port there when ready")
    start.add_argument(
        "--faults",
        metavar="PORT",
        type=int,
        nargs="?",
        const=FAULTS_PORT,
        help=f"for tests: let `trilogue faults` on this machine say what goes wrong, at this port ({FAULTS_PORT})",
    )
    start.add_argument("--verbose", action="store_true", help="log more")
    start.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    from trilogue.broker.config import DEVELOPMENT, BrokerConfig, ConfigError
    from trilogue.broker.network.listeners import CannotStart

    logging.basicConfig(
        level=logging.INFO if options.verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(message)s",
        stream=sys.stderr,
    )
    if TELLING is not None:
        signal.signal(TELLING, signal.SIG_IGN)  # until there is something to tell of
    raise_file_limit()
    settings = {**DEVELOPMENT, **heeded(options.config), **dict(pair(each) for each in options.set)}
    settings |= addresses(options, settings) | membership(options)
    if options.ephemeral and settings.get("zookeeper.connect"):
        raise Failed("--ephemeral keeps nothing, and ZooKeeper would: choose a directory with --data")
    if options.ephemeral and options.data:
        raise Failed("--ephemeral keeps nothing, and --data says where to keep it: leave out one of them")
    with tempfile.TemporaryDirectory(prefix="trilogue-", ignore_cleanup_errors=True) as scratch:
        if options.ephemeral:
            settings["log.dirs"] = scratch
        elif options.data:
            settings["log.dirs"] = options.data
        elif "log.dirs" not in settings and "log.dir" not in settings:
            settings["log.dirs"] = "trilogue-data"
        try:
            run_until_stopped(BrokerConfig.parse(settings), options)
        except (CannotStart, ConfigError) as problem:
            raise Failed(str(problem)) from None


def new_topic(text: str) -> "NewTopic":
    from trilogue.broker.cluster.decisions import NewTopic

    name, *more = text.split(":")
    numbers, policy = more[:2], more[2:]
    if not name or len(policy) > 1 or not all(each.isdigit() and int(each) for each in numbers if each):
        raise argparse.ArgumentTypeError(f"write NAME, NAME:3, NAME:3:1 or NAME:3:1:compact, not {text!r}")
    partitions, replicas = ([int(each) if each else DEFAULT for each in numbers] + [DEFAULT] * 2)[:2]
    return NewTopic(name, partitions, replicas, {}, {"cleanup.policy": policy[0]} if policy else {})


def heeded(path: Path | None) -> dict[str, str]:
    """What a file says, but for what we do not know: it may be there for others."""
    from trilogue.broker.config.unheeded import is_known, said_of_unknown, sounds_like_security

    found = from_file(path)
    passed_over = [name for name in found if not is_known(name, found) and not sounds_like_security(name)]
    for name in passed_over:
        logger.warning("%s: %s", path, said_of_unknown(name))
        del found[name]
    return found


def from_file(path: Path | None) -> dict[str, str]:
    if path is None:
        return {}
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError as error:
        raise Failed(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Failed(f"{path} is not a file of settings: write lines like NAME=VALUE, in UTF-8") from None
    return dict(properties(path, lines))


def properties(path: Path, lines: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Kafka's format: NAME=VALUE, comments behind # or !, a backslash goes on with the next line."""
    pending = ""
    for number, line in enumerate(lines, 1):
        line = pending + line.strip()
        if line.endswith("\\"):
            pending = line[:-1]
            continue
        pending = ""
        if line and not line.startswith(("#", "!")):
            name, mark, value = line.partition("=")
            if not mark:
                raise Failed(f"{path}, line {number}: write NAME=VALUE, not {line!r}")
            yield name.strip(), value.strip()


def pair(text: str) -> tuple[str, str]:
    name, mark, value = text.partition("=")
    if not mark:
        raise Failed(f"--set {text}: write NAME=VALUE")
    return name.strip(), value.strip()


def membership(options: argparse.Namespace) -> dict[str, str]:
    found: dict[str, str] = {}
    if options.node_id is not None:
        if options.node_id < 0:
            raise Failed(f"--node-id {options.node_id}: choose 0 or more")
        found |= {"node.id": str(options.node_id), "broker.id": str(options.node_id)}
    if options.zookeeper is not None:
        found["zookeeper.connect"] = options.zookeeper
    return found


def addresses(options: argparse.Namespace, settings: dict[str, str]) -> dict[str, str]:
    found = {}
    if options.listen:
        found["listeners"] = ",".join(f"{listener_name(i)}://{each}" for i, each in enumerate(options.listen))
    elif options.port is not None or "listeners" not in settings:
        port = DEFAULT_PORT if options.port is None else options.port
        if not 0 <= port <= PORT_MAX:
            raise Failed(f"--port {port}: choose one up to {PORT_MAX}, or 0 for any that is free")
        found["listeners"] = f"PLAINTEXT://127.0.0.1:{port}"
    if options.advertise:
        found["advertised.listeners"] = f"PLAINTEXT://{options.advertise}"
    if len(options.listen or ()) > 1:
        names = (f"{listener_name(i)}:PLAINTEXT" for i in range(len(options.listen)))
        found["listener.security.protocol.map"] = ",".join(names)
    return found


def listener_name(number: int) -> str:
    return "PLAINTEXT" if number == 0 else f"PLAINTEXT{number + 1}"


def run_until_stopped(config: object, options: argparse.Namespace) -> None:
    import trio

    from trilogue.broker.cluster.local import LocalStore
    from trilogue.broker.config import BrokerConfig
    from trilogue.broker.network.listeners import CannotStart
    from trilogue.broker.server import NoDirectoryLeft, Server, serve
    from trilogue.broker.stacks import everybody

    assert isinstance(config, BrokerConfig)

    async def main() -> None:
        # What keeps nothing needs no file for its metadata either.
        store = LocalStore() if options.ephemeral else None
        async with trio.open_nursery() as nursery:
            if TELLING is not None:
                nursery.start_soon(tell_at_signal, TELLING)
            with trio.open_signal_receiver(*wanted(ENDING)) as signals:
                begun: list[Server] = []
                nursery.start_soon(stop_at_signal, begun, signals, nursery.cancel_scope)
                running: Server = await nursery.start(partial(serve, config, store=store, adopting=options.adopt))
                begun.append(running)
                faults = options.faults
                if faults is not None:
                    faults = await take_faults_too(nursery, running, faults)
                await make_topics(running, options.topic)
                announce(running, options.port_file, faults)
                nursery.start_soon(settle_down)
                await running.stopped.wait()
                nursery.cancel_scope.cancel()

    async def stop_at_signal(begun: list[Server], signals: object, life: trio.CancelScope) -> None:
        async for _ in signals:  # type: ignore[attr-defined]
            for server in begun:
                server.stop()
            if not begun:  # it may wait for a store that is gone, and nobody is served yet
                life.cancel()

    async def settle_down() -> None:
        """What would hold up the loop once clients are there is done beside it, or not at all."""
        gc.freeze()
        gc.set_threshold(*COLLECTED_AFTER)
        await trio.to_thread.run_sync(import_module, "crc32c")  # which the first batch needs: 25 ms

    async def tell_at_signal(number: signal.Signals) -> None:
        with trio.open_signal_receiver(number) as signals:
            async for _ in signals:
                logger.warning("what everybody is doing:\n%s", everybody())

    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        trio.run(main)
    except BaseExceptionGroup as group:
        # Nurseries wrap what went wrong; a single reason for not starting is all that the user needs.
        reasons, rest = group.split((CannotStart, Failed, NoDirectoryLeft, OSError))
        if reasons is None or rest is not None:
            raise
        raise Failed(str(first(reasons))) from None


async def make_topics(running: "Server", topics: "Sequence[NewTopic]") -> None:
    from trilogue.broker.config.validate import validate_topic_config
    from trilogue.broker.requests.making import make_topic
    from trilogue.wire.errors import BrokerError, ErrorCode

    for each in topics:
        try:
            validate_topic_config(each.configs, running.broker.config)
            await make_topic(running.broker, None, each, running.broker.topic_defaults)
        except BrokerError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise Failed(f"--topic {each.name}: {error}") from None


async def take_faults_too(nursery: "trio.Nursery", running: "Server", port: int) -> int:
    """At which port."""
    from trilogue.testing.control import HOST, take_faults

    try:
        taken: int = await nursery.start(take_faults, running, port)
    except OSError as error:
        raise Failed(f"--faults {port}: {HOST}:{port} cannot be used ({error.strerror or error})") from None
    return taken


def wanted(ending: Iterable[signal.Signals]) -> list[signal.Signals]:
    """Not the hangup that `nohup` has taken from us."""
    hangup = getattr(signal, "SIGHUP", None)
    return [each for each in ending if each != hangup or signal.getsignal(each) != signal.SIG_IGN]


def raise_file_limit() -> None:
    """Every connection and every file of a partition takes a descriptor; what we may have, we take."""
    try:
        import resource
    except ImportError:
        return  # a system without such limits
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError) as error:
        logger.info("the limit of open files stays at %d: %s", soft, error)
    else:
        logger.info("the limit of open files is raised from %d to %d", soft, hard)


def first(group: BaseException) -> BaseException:
    while isinstance(group, BaseExceptionGroup):
        group = group.exceptions[0]
    return group


def announce(running: "Server", port_file: Path | None, faults: int | None) -> None:
    where = ", ".join(f"{each.host or '*'}:{each.port}" for each in running.listeners)
    kept = ", ".join(directory.path for directory in running.broker.replicas.directories)
    more = "" if faults is None else f"; faults at 127.0.0.1:{faults}"
    print(f"trilogue {__version__} listens on {where}; data in {kept}{more}", flush=True)
    if port_file is not None:
        temporary = port_file.with_name(f"{port_file.name}.tmp")
        try:
            temporary.write_text(f"{running.listeners[0].port}\n")
            temporary.replace(port_file)  # whoever waits for the file finds it whole
        except OSError as error:
            raise Failed(f"--port-file {port_file} cannot be written: {error.strerror}") from None
