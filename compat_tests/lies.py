"""What a process is made to believe of the time and of its disks: `programs/lies.c`, in front of its libc.

The truth until it is told otherwise; `told` may be changed at any time, and is believed at once.
"""

import shutil
import struct
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("programs") / "lies.c"
LAYOUT = struct.Struct("<qqiii244s")
SECOND = 1_000_000_000


def compiled(folder: Path) -> Path:
    """The library, made by the C compiler that is here."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("lies about time and disks are compiled with gcc, which is not here")
    library = folder / "lies.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", str(library), str(SOURCE), "-ldl"], check=True
    )
    return library


class Lies:
    def __init__(self, library: Path, told: Path) -> None:
        self._told = told
        told.write_bytes(bytes(LAYOUT.size))
        self.variables: Mapping[str, str] = {"LD_PRELOAD": str(library), "TRILOGUE_LIES": str(told)}
        """Of the environment of whoever is to believe them."""

    def _tell(
        self, wall_ns: int = 0, frozen_ns: int = 0, write: int = 0, sync: int = 0, most: int = 0, where: str = ""
    ) -> None:
        with open(self._told, "r+b") as file:  # in place: it is mapped
            file.write(LAYOUT.pack(wall_ns, frozen_ns, write, sync, most, where.encode()))

    @contextmanager
    def wall_clock_ahead(self, seconds: float) -> Iterator[None]:
        self._tell(wall_ns=int(seconds * SECOND))
        try:
            yield
        finally:
            self._tell()

    @contextmanager
    def time_stands_still(self) -> Iterator[None]:
        self._tell(frozen_ns=time.monotonic_ns())
        try:
            yield
        finally:
            self._tell()

    @contextmanager
    def disk_fails(self, where: Path, *, write: int = 0, sync: int = 0, most: int = 0) -> Iterator[None]:
        """Every write and every sync fails with these numbers, or at `most` so many bytes of a write are taken."""
        self._tell(write=write, sync=sync, most=most, where=f"{where}/")
        try:
            yield
        finally:
            self._tell()
