"""The jars that Spark's connectors live in: which, from where, and what to say if they cannot be had.

They are resolved by Spark itself (Ivy, from Maven Central) the first time, and found in the cache from then on: asking
Ivy again at every start would cost seconds, and a network.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from trilogue.pipeline.errors import PipelineError
from trilogue.pipeline.model import Delta, Pipeline

SCALA = "2.13"
DELTA = {"4.0": "4.0.0"}
"""Which Delta Lake belongs to which PySpark."""

RESOLVER = """
from pyspark import SparkConf, SparkContext
SparkContext._ensure_initialized()
print("jars=" + SparkConf().get("spark.jars"))
"""


def coordinates(pipeline: Pipeline, spark_version: str) -> list[str]:
    """Only what the pipeline uses."""
    found = [f"org.apache.spark:spark-sql-kafka-0-10_{SCALA}:{spark_version}"]
    if uses_avro(pipeline):
        found.append(f"org.apache.spark:spark-avro_{SCALA}:{spark_version}")
    if uses_delta(pipeline):
        minor = spark_version.rpartition(".")[0]
        if minor not in DELTA:
            known = ", ".join(DELTA)
            raise PipelineError(
                f"no Delta Lake is known for PySpark {spark_version} (only {known}); give its jars: --jars"
            )
        found.append(f"io.delta:delta-spark_{SCALA}:{DELTA[minor]}")
    return found


def uses_avro(pipeline: Pipeline) -> bool:
    return "avro" in {each.format for each in (pipeline.decode, *(one.decode for one in pipeline.inputs))}


def uses_delta(pipeline: Pipeline) -> bool:
    return any(isinstance(sink, Delta) for sink in pipeline.sinks) or any(
        each.path and each.format == "delta" for each in pipeline.inputs
    )


def cache() -> Path:
    return Path(os.environ.get("TRILOGUE_CACHE") or Path.home() / ".cache" / "trilogue") / "ivy"


def from_folder(folder: Path) -> list[str]:
    """For machines without a network: whatever lies there."""
    found = sorted(str(jar) for jar in folder.glob("*.jar"))
    if not found:
        raise PipelineError(f"{folder}: there are no jars in this folder")
    return found


def resolve(wanted: list[str], repositories: str = "") -> list[str]:
    """The paths of these coordinates and of what they need."""
    place = cache()
    place.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256("\n".join(wanted).encode()).hexdigest()[:16]
    listing = place / f"resolved-{digest}.txt"
    with locked(place / "lock"):
        if listing.exists():
            known = listing.read_text().split("\n")
            if all(Path(jar).exists() for jar in known):
                return known
        found = ask_ivy(wanted, place, repositories)
        draft = listing.with_suffix(".draft")
        draft.write_text("\n".join(found))
        draft.rename(listing)
    return found


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Two Ivies at once on one folder spoil it."""
    with open(path, "a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def ask_ivy(wanted: list[str], place: Path, repositories: str) -> list[str]:
    print(f"trilogue: bringing {', '.join(wanted)} ...", file=sys.stderr)
    script = place / "resolve.py"
    script.write_text(RESOLVER)
    import pyspark

    submit = [
        str(Path(pyspark.__file__).with_name("bin") / "spark-submit"),
        "--master",
        "local[1]",
        "--packages",
        ",".join(wanted),
    ]
    submit += ["--conf", f"spark.jars.ivy={place}"]
    if repositories:
        submit += ["--repositories", repositories]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run([*submit, str(script)], capture_output=True, text=True, env=environment)
    answer = re.search(r"^jars=(.*)$", done.stdout, re.MULTILINE)
    if done.returncode or not answer:
        raise PipelineError(unavailable(wanted, done.stdout + done.stderr))
    return [jar.removeprefix("file://") for jar in answer[1].split(",")]


def unavailable(wanted: Iterable[str], output: str) -> str:
    """Names what could not be had: by Ivy's own list, or all of it if Ivy has none."""
    missing = dict.fromkeys(re.findall(r"unresolved dependency: ([^\s;]+)#([^\s;]+);([^\s:]+):", output))
    names = [":".join(each) for each in missing] or list(wanted)
    last = next((line for line in reversed(output.splitlines()) if "Exception" in line), "")
    why = "" if missing else f" ({last.strip()[:200]})" if last else ""
    return (
        f"cannot be had from Maven Central: {', '.join(names)}{why}; offline, put the jars into a folder and say --jars"
    )


def demand_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if not (home and Path(home, "bin", "java").exists()) and shutil.which("java") is None:
        raise PipelineError("Spark needs Java 17 or newer, and there is no `java` here")
