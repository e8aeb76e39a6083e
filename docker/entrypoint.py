"""What a container runs: a broker with two doors, set up by variables.

9092     for clients outside, through a published port.  They are told $TRILOGUE_ADVERTISE: HOST:PORT as seen from there
         (localhost:9092), or @FILE to wait until that file says it, for a port that is known only when it is published.
19092    for clients in other containers.  They are told the address they came in by.

KAFKA_NUM_PARTITIONS=3 and the like are settings by Kafka's names: one underscore is a dot, two are an underscore, three
a hyphen, as in Apache Kafka's own image.  The words of other images are understood as well (environment.py).  Whoever
sets KAFKA_LISTENERS replaces both doors, and should set TRILOGUE_BOOTSTRAP for the health check.

Without arguments, or with options only, the broker is started; anything else is another command of `trilogue`.
"""

import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from environment import Refused, Understood, understand, understand_redpanda

from trilogue.broker.config.catalog import find

OUTSIDE, INSIDE = ":9092", ":19092"
WAIT_SECONDS = 300


def command(environment: Mapping[str, str], arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """What is run, and what of all that was said means nothing here."""
    if "redpanda" in arguments[:1]:
        return start(understand_redpanda(arguments[2:]), environment, ())
    if arguments and not arguments[0].startswith("-"):
        return ["trilogue", *arguments], []
    return start(understand(environment, lambda name: find(name) is not None), environment, arguments)


def start(
    understood: Understood, environment: Mapping[str, str], arguments: Sequence[str]
) -> tuple[list[str], list[str]]:
    words = ["trilogue", "start", "--data=/data"]
    if not understood.has_doors:
        words += [f"--listen={OUTSIDE}", f"--listen={INSIDE}"]
        words.append(f"--advertise={environment.get('TRILOGUE_ADVERTISE') or 'localhost:9092'}")
    words += [f"--set={name}={value}" for name, value in understood.settings.items()]
    words += [f"--topic={each}" for each in understood.topics]
    return [*words, *arguments], understood.unused


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
    try:
        found, unused = command(environment, sys.argv[1:])
    except Refused as refused:
        sys.exit(f"trilogue: {refused}")
    if unused:
        print(f"trilogue: these mean nothing here: {', '.join(unused)}", file=sys.stderr, flush=True)
    os.execvp(found[0], found)  # the broker itself is process 1: it hears SIGTERM, and its exit code counts


if __name__ == "__main__":
    main()
