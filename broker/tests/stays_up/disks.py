"""Disks that are small, or that fail when they are told to."""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def small_disk(path: Path, size: str = "16m") -> Iterator[Path]:
    """A file system of its own at `path`, where the machine lets us mount one."""
    path.mkdir(parents=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount a small tmpfs: {mounted.stderr.strip()}")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


def fill(path: Path) -> None:
    """Other people's data, until there is no room for a byte."""
    with open(path, "wb", buffering=0) as blocker:
        for size in (1 << 20, 4096, 1):
            with contextlib.suppress(OSError):
                while blocker.write(bytes(size)):
                    pass


class Injected:
    """Makes calls of a running broker fail, by strace; nothing else of what it does changes."""

    def __init__(self, pid: int, *words: str, traces: Path) -> None:
        self._words = ["strace", "-f", "-qq", "-o", str(traces), "-p", str(pid), *words]

    def __enter__(self) -> "Injected":
        self._process = subprocess.Popen(self._words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.communicate(timeout=20)


needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="makes calls of the system fail with strace")
