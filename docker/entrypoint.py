"""What a container runs: a broker with two doors, set up by variables.

9092     for clients outside, through a published port.  They are told $TRILOGUE_ADVERTISE: HOST:PORT as seen from there
         (localhost:9092), or @FILE to wait until that file says it, for a port that is known only when it is published.
19092    for clients in other containers.  They are told the address they came in by.

KAFKA_NUM_PARTITIONS=3 and the like are settings by Kafka's names: one underscore is a dot, two are an underscore, three
a hyphen, as in Apache Kafka's own image.  Whoever sets KAFKA_LISTENERS replaces both doors, and should set
TRILOGUE_BOOTSTRAP for the health check.

Without arguments, or with options only, the broker is started; anything else is another command of `trilogue`.
"""

import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

OUTSIDE, INSIDE = ":9092", ":19092"
PREFIX = "KAFKA_"
NOT_SETTINGS = re.compile(r"KAFKA_(VERSION|.*OPTS?|JMX_.*|(TOOLS_)?LOG4J_.*)")
"""Of other images: about their JVM and its logging, not about the broker."""
WAIT_SECONDS = 300


def command(environment: Mapping[str, str], arguments: Sequence[str]) -> list[str]:
    if arguments and not arguments[0].startswith("-"):
        return ["trilogue", *arguments]
    settings = {
        setting(name): value
        for name, value in sorted(environment.items())
        if name.startswith(PREFIX) and not NOT_SETTINGS.fullmatch(name)
    }
    start = ["trilogue", "start", "--data=/data"]
    if "listeners" not in settings:
        start += [f"--listen={OUTSIDE}", f"--listen={INSIDE}"]
        if "advertised.listeners" not in settings:
            start.append(f"--advertise={environment.get('TRILOGUE_ADVERTISE') or 'localhost:9092'}")
    return [*start, *(f"--set={name}={value}" for name, value in settings.items()), *arguments]


def setting(variable: str) -> str:
    """KAFKA_A_B__C___D is a.b_c-d."""
    text = variable.removeprefix(PREFIX).lower()
    return text.replace("___", "-").replace("__", "\0").replace("_", ".").replace("\0", "_")


def told_by(place: Path) -> str:
    """What somebody writes into a file once the port is known."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not (place.exists() and place.read_text().endswith("\n")):
        if time.monotonic() > deadline:
            sys.exit(f"trilogue: nobody has written into {place} where clients are to come")
        time.sleep(0.02)
    return place.read_text().strip()


def main() -> None:
    environment = dict(os.environ)
    advertise = environment.get("TRILOGUE_ADVERTISE", "")
    if advertise.startswith("@"):
        environment["TRILOGUE_ADVERTISE"] = told_by(Path(advertise[1:]))
    found = command(environment, sys.argv[1:])
    os.execvp(found[0], found)  # the broker itself is process 1: it hears SIGTERM, and its exit code counts


if __name__ == "__main__":
    main()
