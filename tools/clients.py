"""Kafka clients of other worlds than this virtual environment, from their package registries into the cache folder.

    python3 tools/clients.py              bring and build every client
    python3 tools/clients.py sarama       bring one, and print the command that runs it

Each client is a small program in `compat_tests/programs`; `command("sarama")` is what starts it.  What has to be
installed or compiled for it is made once, under the name and a hash of its sources, and appears whole or not at all;
of several processes that want the same, one makes it and the others wait.
"""

import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import jars

PROGRAMS = Path(__file__).resolve().parents[1] / "compat_tests" / "programs"
BUILD_SECONDS = 900
"""Far more than the slowest takes (a minute and a half, with librdkafka in C): a registry may be slow."""

CODECS = ["python-snappy==0.7.3", "cramjam==2.14.0", "lz4==4.4.5", "zstandard==0.25.0"]


class Missing(Exception):
    """A compiler or a package manager is not on this machine; the message says which."""


class Client(NamedTuple):
    folder: str
    """Its sources, below `programs`."""
    needs: tuple[str, ...]
    """Commands without which it cannot be made."""
    make: Callable[[Path, Path], None]
    """Makes it out of a copy of its sources, in an empty folder."""
    run: Callable[[Path], list[str]]
    """The command, when it lies in that folder."""
    salt: str = ""
    """What it depends on besides its sources."""


# -- how to make them --------------------------------------------------------------------------------


def run(*command: object, cwd: Path | None = None, **environment: str) -> None:
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=BUILD_SECONDS,
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]} {command[1]} failed:\n{done.stdout[-3000:]}")


def python_client(*requirements: str) -> Client:
    """The program for kafka-python, in a virtual environment with another version of it."""

    def make(sources: Path, place: Path) -> None:
        run(sys.executable, "-m", "venv", place)
        run(place / "bin" / "python", "-m", "pip", "install", "--quiet", *requirements, PIP_CONSTRAINT="")

    def command(place: Path) -> list[str]:
        return [str(place / "bin" / "python"), "-W", "ignore", str(PROGRAMS / "python" / "kafka_python.py")]

    return Client("python", (), make, command, salt=f"{requirements} {sys.version}")


def java_client(jar_set: str) -> Client:
    def make(sources: Path, place: Path) -> None:
        run("javac", "-nowarn", "-d", place, "-cp", jars.classpath(jar_set), sources / "Client.java")

    def command(place: Path) -> list[str]:
        options = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"]
        return ["java", *options, "-cp", f"{place}{os.pathsep}{jars.classpath(jar_set)}", "Client"]

    return Client("java", ("java", "javac", "mvn"), make, command, salt=jar_set)


def make_kafkajs(sources: Path, place: Path) -> None:
    shutil.copytree(sources, place, dirs_exist_ok=True)
    run("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", cwd=place)


def make_sarama(sources: Path, place: Path) -> None:
    run("go", "build", "-o", place / "client", ".", cwd=sources)


def make_rdkafka(sources: Path, place: Path) -> None:
    # Unoptimised: what is tested is what it says, not how fast; and librdkafka is most of the time.
    run("cargo", "build", "--quiet", cwd=sources, CARGO_TARGET_DIR=str(sources / "target"), CFLAGS="-O0")
    shutil.copy(sources / "target" / "debug" / "trilogue-rdkafka", place / "client")


CLIENTS = {
    "kafka-python-2.0.2": python_client("kafka-python==2.0.2", *CODECS),
    "kafka-python-1.4.7": python_client("kafka-python==1.4.7", *CODECS),
    "java-4.4.0": java_client("clients-4.4.0"),
    "java-3.9.1": java_client("clients-3.9.1"),
    "java-2.8.2": java_client("clients-2.8.2"),
    "kafkajs": Client("js", ("node", "npm"), make_kafkajs, lambda place: ["node", str(place / "client.js")]),
    "sarama": Client("go", ("go",), make_sarama, lambda place: [str(place / "client")]),
    "rdkafka": Client("rust", ("cargo", "cc", "make"), make_rdkafka, lambda place: [str(place / "client")]),
}

HERE = {
    # Clients of this virtual environment: nothing to bring.
    "kafka-python": "kafka_python.py",
    "confluent-kafka": "librdkafka.py",
    "aiokafka": "asyncio_kafka.py",
}


# -- bringing them -----------------------------------------------------------------------------------


def command(name: str) -> list[str]:
    """What starts a client's program.  Makes it first, if it is not there yet."""
    if name in HERE:
        return [sys.executable, "-W", "ignore", str(PROGRAMS / "python" / HERE[name])]
    return CLIENTS[name].run(bring(name))


def bring(name: str) -> Path:
    client = CLIENTS[name]
    for tool in client.needs:
        if shutil.which(tool) is None:
            raise Missing(f"`{tool}` is not installed, and {name} needs it")
    place = jars.folder() / "clients" / f"{name}-{digest(client)}"
    place.parent.mkdir(parents=True, exist_ok=True)
    with alone(place.parent / f".{name}.lock"):
        if not place.is_dir():
            print(f"clients: making {name} ...", file=sys.stderr)
            with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
                sources, made = Path(scratch, "sources"), Path(scratch, "made")
                shutil.copytree(PROGRAMS / client.folder, sources, ignore=shutil.ignore_patterns("__pycache__"))
                made.mkdir()
                client.make(sources, made)
                made.rename(place)
    return place


def digest(client: Client) -> str:
    """Of a client's sources, and of what else it depends on; but a Python program is run from where it lies."""
    hashed = hashlib.sha256(client.salt.encode())
    if client.folder != "python":
        for path in sorted((PROGRAMS / client.folder).rglob("*")):
            if path.is_file():
                hashed.update(f"{path.relative_to(PROGRAMS)}\0".encode() + path.read_bytes())
    return hashed.hexdigest()[:12]


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """One process at a time.  The system lets go of the lock when its holder dies."""
    with open(lock, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in CLIENTS | HERE]
    if unknown:
        print(f"clients: none named {', '.join(unknown)}; there are {', '.join(CLIENTS | HERE)}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("clients: ended"))  # and what is half made is removed
    problems = 0
    for name in names or CLIENTS:
        try:
            print(f"{name}: {' '.join(command(name))[:200]}")
        except (Missing, jars.Missing, RuntimeError) as problem:
            print(f"clients: {name}: {problem}", file=sys.stderr)
            problems += 1
    return min(problems, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
