"""Kafka Connect and MirrorMaker 2 from the jars: a worker as a process, with its settings as files."""

import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import apache

VERSION = "4.3.1"
JARS = f"connect-{VERSION}"
START_SECONDS = 120
STOP_SECONDS = 60
OPTIONS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class Worker:
    """A process that is asked for an outcome while it runs."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process, self._log = process, log

    def until(self, what: str, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not done():
            assert self._process.poll() is None, f"the worker ended with {self._process.returncode}: {self.log()}"
            assert time.monotonic() < deadline, f"not within {START_SECONDS} seconds: {what}: {self.log()}"
            time.sleep(0.1)

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise

    def log(self) -> str:
        return self._log.read_text()[-3000:]


@contextmanager
def running(main: str, folder: Path, **files: Mapping[str, object]) -> Iterator[Worker]:
    """`main` with one file of settings for every keyword, in their order.  Stopped at the end, as by an operator."""
    for name, settings in files.items():
        lines = "".join(f"{key}={value}\n" for key, value in settings.items())
        (folder / f"{name}.properties").write_text(lines)
    command = apache.command(main, *(f"{name}.properties" for name in files), options=OPTIONS, jar_set=JARS)
    log = folder / "worker.log"
    with open(log, "ab") as out:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=out)
    worker = Worker(process, log)
    try:
        yield worker
    finally:
        worker.stop()
