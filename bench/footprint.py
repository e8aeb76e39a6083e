"""How long the brokers take to start, and how much memory they hold."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from bench.brokers import Apache, Ours
from bench.trial import Figure, Row, say

SECTION = "footprint"
SETTLE_SECONDS = 2.0
START = Figure("start", "ms", False, 0.2)
IDLE = Figure("idle", "MiB", False, 0.15)
LOADED = Figure("loaded", "MiB", False)


def starts(folder: Path, rounds: int) -> list[Row]:
    """From exec to the first answer, with nothing in the data folder, and memory two seconds later."""
    times: list[list[float]] = [[], []]
    idle: list[list[float]] = [[], []]
    kinds: tuple[Callable[[Path], Ours | Apache], ...] = (Ours, Apache)
    for number in range(rounds + 1):
        for place, kind in enumerate(kinds):
            home = folder / f"start-{place}-{number}"
            broker = kind(home)
            begun = time.perf_counter()
            broker.start()
            took = (time.perf_counter() - begun) * 1000
            time.sleep(SETTLE_SECONDS)
            memory = broker.rss_mib()
            broker.stop()
            shutil.rmtree(home)
            if number:  # the first warms the file cache and compiles our modules
                times[place].append(took)
                idle[place].append(memory)
        say(f"  {SECTION}: start, round {number} of {rounds}")
    return [
        Row(SECTION, "exec to the first answer", START, *times),
        Row(SECTION, "memory when idle", IDLE, *idle),
    ]


def loaded(ours: Ours, theirs: Apache) -> Row:
    """At the end of everything."""
    return Row(SECTION, "memory after all of the above", LOADED, [ours.rss_mib()], [theirs.rss_mib()])
