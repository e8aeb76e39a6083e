"""The drivers that are written in C, so that the client is not what is measured: compiled on first use.

`run("driver", "produce", ...)` and `run("replay", ...)` answer what the program prints, read as JSON.
"""

import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jars

SOURCES = Path(__file__).parent / "native"
RUN_SECONDS = 180


class NoCompiler(Exception):
    """There is no C compiler here; the rows that need one are left out, and say so."""


def librdkafka() -> Path:
    """The library inside confluent-kafka's wheel."""
    import confluent_kafka

    folder = Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs"
    return next(folder.glob("librdkafka*.so*"))


def program(name: str) -> Path:
    """The compiled program, from the cache if its source has not changed."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise NoCompiler("no C compiler (cc or gcc)")
    source = SOURCES / f"{name}.c"
    library = librdkafka() if name == "driver" else None
    sign = hashlib.sha256(source.read_bytes() + str(library).encode()).hexdigest()[:12]
    place = jars.folder() / "native" / f"{name}-{sign}"
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        linked = [str(library), f"-Wl,-rpath,{library.parent}", "-Wl,--allow-shlib-undefined"] if library else []
        made = place.with_suffix(".new")
        subprocess.run([compiler, "-O2", "-Wall", "-o", str(made), str(source), *linked, "-lpthread"], check=True)
        made.rename(place)
    return place


def run(name: str, *arguments: object, stdin: bytes = b"") -> dict[str, Any]:
    done = subprocess.run(
        [str(program(name)), *map(str, arguments)], input=stdin, capture_output=True, timeout=RUN_SECONDS
    )
    if done.returncode:
        said = done.stderr.decode().strip()[-500:]
        raise RuntimeError(f"{name} {' '.join(map(str, arguments))} ended with {done.returncode}: {said}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
