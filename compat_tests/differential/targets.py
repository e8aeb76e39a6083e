"""Starts a broker, either of them, with the same settings and two data directories."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apache

SETTINGS = {
    "node.id": "1",
    "num.partitions": "2",
    "log.retention.ms": "-1",  # the records of the scenarios are old
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",  # or answers depend on how quickly we ask
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
START_SECONDS = 20
STOP_SECONDS = 20

Address = tuple[str, int]


def settings(folder: Path) -> dict[str, str]:
    return SETTINGS | {"log.dirs": f"{folder}/data-1,{folder}/data-2"}


@contextmanager
def apache_kafka(folder: Path) -> Iterator[Address]:
    """The reference.  Raises `jars.Missing` where there is no Java."""
    with apache.Kafka(folder, settings(folder)) as kafka:
        yield "127.0.0.1", kafka.port


@contextmanager
def trilogue(folder: Path) -> Iterator[Address]:
    """Ours, from the installed command, as a user would start it."""
    port_file, log = folder / "port", folder / "trilogue.log"
    command = [str(Path(sys.executable).with_name("trilogue")), "start", "--port=0", f"--port-file={port_file}"]
    command += [f"--set={name}={value}" for name, value in settings(folder).items()]
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not port_file.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"trilogue does not start:\n{log.read_text()[-2000:]}")
            time.sleep(0.01)
        yield "127.0.0.1", int(port_file.read_text())
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
