"""Programs that do their work beside a test, and say what they have done."""

import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jars

from compat_tests.running import missing_tool

HERE = Path(__file__).parent
PATIENCE_SECONDS = 60


class Worker:
    """A process that says what it has done, line by line, in a file."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self._said, self._log = folder / f"{uuid.uuid4().hex}.out", folder / "worker.log"
        with open(self._said, "wb") as out, open(self._log, "ab") as log:
            self._process = subprocess.Popen(command, stdout=out, stderr=log)

    def said(self, word: str) -> int:
        return self._said.read_text().split().count(word)

    def lines(self) -> list[str]:
        """All that it has said, to the end of a line."""
        return self._said.read_text().rpartition("\n")[0].splitlines()

    def wait_for(self, word: str, times: int) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.said(word) < times:
            self.must_live()
            assert time.monotonic() < deadline, f"no `{word}` number {times}: {self.log()}"
            time.sleep(0.001)

    @property
    def silent_seconds(self) -> float:
        return time.time() - self._said.stat().st_mtime

    @property
    def lives(self) -> bool:
        return self._process.poll() is None

    def must_live(self) -> None:
        assert self.lives, f"the worker ended with {self._process.returncode}: {self.log()}"

    def finish(self) -> None:
        assert self._process.wait(PATIENCE_SECONDS) == 0, self.log()

    def stop(self) -> None:
        """In order."""
        self._process.terminate()
        self.finish()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def log(self) -> str:
        return self._log.read_text()[-3000:]


@contextmanager
def running(command: list[str], folder: Path) -> Iterator[Worker]:
    worker = Worker(command, folder)
    try:
        yield worker
    finally:
        worker.kill()


def java(program: str, jar_set: str, folder: Path) -> list[str]:
    """What runs one of our Java programs, compiled once: it will be started often."""
    try:
        path = jars.classpath(jar_set)
    except jars.Missing as missing:
        missing_tool(missing)
    source = HERE / "programs" / "java" / f"{program}.java"
    subprocess.run(["javac", "-d", folder, "-cp", path, source], check=True, timeout=PATIENCE_SECONDS)
    options = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    return ["java", *options, "-cp", f"{folder}:{path}", program]
