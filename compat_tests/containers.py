"""Brokers in containers, through testcontainers: an engine, a base image, our image, and containers of it.

An engine that answers is used as it is.  Otherwise, where `dockerd` is installed and we are root, one is started for
the tests alone: data, socket and process end with them.  Images come from a registry if one can be reached; if not, the
base is imported from a root file system that debootstrap makes once, and everything else from wheels made outside.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import apache
import debian
import docker
import docker.errors
from testcontainers.core.config import ConnectionMode, testcontainers_config
from testcontainers.core.container import DockerContainer
from testcontainers.core.image import DockerImage
from testcontainers.core.network import Network

ROOT = Path(__file__).parents[1]
BASE = "python:3.11-slim"
SUITE = "bookworm"  # the Debian with Python 3.11
LOCAL_BASE = f"trilogue-base:{SUITE}"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
APACHE = f"apache/kafka:{apache.VERSION}"

OUTSIDE, INSIDE = 9092, 19092
ALIAS = "broker"
START_SECONDS = 60
STOP_SECONDS = 60


class NoEngine(Exception):
    """No containers here; the message says what is missing."""


@contextmanager
def engine() -> Iterator[docker.DockerClient]:
    """A client of an engine, which is started if need be."""
    if engine_answers():
        with closing(docker.from_env()) as client:
            yield client
        return
    program = shutil.which("dockerd")
    if program is None or os.geteuid() != 0:
        raise NoEngine("no Docker engine answers, and none can be started (as root, `make docker-ready`)")
    with tempfile.TemporaryDirectory(prefix="trilogue-docker-") as name, started(program, Path(name)) as client:
        yield client


def engine_answers() -> bool:
    try:
        with closing(docker.from_env()) as client:
            return bool(client.ping())
    except docker.errors.DockerException:
        return False


@contextmanager
def started(program: str, folder: Path) -> Iterator[docker.DockerClient]:
    address = f"unix://{folder}/docker.sock"
    options = {
        "data-root": folder / "data",
        "exec-root": folder / "exec",
        "pidfile": folder / "pid",
        "host": address,
        "bridge": "none",  # networks are made by the tests, and leave nothing behind
        "ip": "127.0.0.1",  # published ports are for this machine alone
    }
    log = folder / "log"
    with open(log, "wb") as out:
        command = [program, *(f"--{name}={value}" for name, value in options.items())]
        process = subprocess.Popen(command, stdout=out, stderr=out)
    before = os.environ.get("DOCKER_HOST")
    os.environ["DOCKER_HOST"] = address
    testcontainers_config.ryuk_disabled = True  # its image cannot be had; the engine ends with the tests
    testcontainers_config.connection_mode_override = ConnectionMode.docker_host
    testcontainers_config.tc_host_override = "localhost"
    try:
        deadline = time.monotonic() + START_SECONDS
        while not engine_answers():
            if process.poll() is not None or time.monotonic() > deadline:
                raise NoEngine(f"dockerd does not start here: {last_line(log)}")
            time.sleep(0.1)
        with closing(docker.from_env()) as client:
            yield client
    finally:
        if before is None:
            del os.environ["DOCKER_HOST"]
        else:
            os.environ["DOCKER_HOST"] = before
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise


def last_line(log: Path) -> str:
    return (log.read_text().strip().splitlines() or ["(it said nothing)"])[-1]


@contextmanager
def our_image(client: docker.DockerClient) -> Iterator[tuple[str, str]]:
    """The name of an image made by docker/Dockerfile, and what it was made from."""
    with tempfile.TemporaryDirectory(prefix="trilogue-build-") as name:
        context = Path(name) / "context"
        copy_sources(context)
        offline = not can_be_had(client, BASE)
        if offline:
            make_wheels(context / "docker" / "wheels")
        build = DockerImage(
            context,
            tag=f"trilogue-test:{uuid.uuid4().hex[:8]}",  # an engine may serve several runs
            dockerfile_path="docker/Dockerfile",
            buildargs={"BASE": import_base(client) if offline else BASE},
            network_mode="none" if offline else None,
        )
        made_from = f"a debootstrap of {SUITE}: no registry is reachable" if offline else BASE
        with build as image:
            yield str(image), made_from


def can_be_had(client: docker.DockerClient, image: str) -> bool:
    try:
        client.images.get(image)
    except docker.errors.ImageNotFound:
        try:
            client.images.pull(image)
        except docker.errors.APIError:
            return False
    return True


def copy_sources(context: Path) -> None:
    """What .dockerignore lets through, copied: wheels are laid beside it, and the source tree stays as it is."""
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        source = ROOT / line.removeprefix("!")
        if not line.startswith("!") or not source.exists():
            continue
        context.mkdir(exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, context / source.name, symlinks=True)
        else:
            shutil.copy(source, context)


def make_wheels(place: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", f"--wheel-dir={place}", f"{ROOT}[zookeeper]"]
    environment = {**os.environ, "PIP_CONSTRAINT": str(ROOT / "constraints.txt")}
    subprocess.run(command, check=True, env=environment, stdout=sys.stderr)


def import_base(client: docker.DockerClient) -> str:
    client.api.import_image_from_file(
        str(root_file_system()), *LOCAL_BASE.split(":"), changes=[f"ENV PATH={PATH}", "ENV LANG=C.UTF-8"]
    )
    return LOCAL_BASE


def root_file_system() -> Path:
    """A tar file with a small Debian and its Python, made once."""
    try:
        return debian.root_file_system(SUITE)
    except (debian.Missing, RuntimeError) as problem:
        raise NoEngine(f"no image registry is reachable, and no Debian can be made: {problem}") from None


class Trilogue:
    """Our broker in a container.  `bootstrap` is for clients out here, `inside` for those in the same network."""

    inside = f"{ALIAS}:{INSIDE}"

    def __init__(self, image: str, network: Network, volume: str | None = None, **settings: str) -> None:
        # The port is known when the container runs: until it is written into that file, the entry point waits.
        self.container = DockerContainer(image, network=network, network_aliases=[ALIAS])
        self.container.with_exposed_ports(OUTSIDE).with_envs(TRILOGUE_ADVERTISE="@/tmp/advertise", **settings)
        if volume is not None:
            self.container.with_volume_mapping(volume, "/data", "rw")
        self.bootstrap = ""

    def start(self) -> None:
        self.container.start()
        self.bootstrap = f"localhost:{self.container.get_exposed_port(OUTSIDE)}"
        self.run("sh", "-c", f"echo {self.bootstrap} > /tmp/advertise")
        self.run("trilogue", "health", f"--wait={START_SECONDS}")

    def run(self, *command: str) -> str:
        """What a command inside says."""
        code, said = self.container.exec(list(command))
        assert code == 0, f"{command}: {said.decode()}{self.log()}"
        return said.decode()

    def log(self) -> str:
        return b"".join(self.container.get_logs()).decode()[-2000:]

    def __enter__(self) -> "Trilogue":
        try:
            self.start()
        except BaseException:
            self.container.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.container.stop()


def has_apache_kafka() -> bool:
    """Whether an engine runs that has Apache Kafka's image or can fetch it.  None is started just to ask."""
    if not engine_answers():
        return False
    with closing(docker.from_env()) as client:
        return can_be_had(client, APACHE)


@contextmanager
def apache_kafka(given: Mapping[str, str]) -> Iterator[str]:
    """Apache Kafka's own image with the settings that it also gets from the jars; where it listens."""
    port = apache.free_port()
    settings = apache.settings(port=OUTSIDE, controller=INSIDE, data="/tmp/data")
    del settings["controller.quorum.bootstrap.servers"]  # the image formats its storage without --standalone
    settings |= {
        **given,
        "controller.quorum.voters": f"1@localhost:{INSIDE}",
        "listeners": f"PLAINTEXT://:{OUTSIDE},CONTROLLER://:{INSIDE}",
        "advertised.listeners": f"PLAINTEXT://localhost:{port}",
    }
    variables = {"KAFKA_" + name.upper().replace(".", "_"): value for name, value in settings.items()}
    container = DockerContainer(APACHE, env={**variables, "CLUSTER_ID": apache.CLUSTER_ID})
    with container.with_bind_ports(OUTSIDE, port):
        apache.wait_for(("localhost", port))
        yield f"localhost:{port}"
