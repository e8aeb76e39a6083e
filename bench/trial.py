"""What a benchmark is: something done to one broker and then to the other, in turns, and the figures of that."""

import contextlib
import os
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from bench.brokers import Broker

SETTLE_SECONDS = 1.0


class Figure(NamedTuple):
    """One number of a trial."""

    key: str
    unit: str
    more_is_better: bool = True
    target: float | None = None
    """What ours divided by Apache Kafka's is to be: at least, or at most where less is better."""

    def met(self, ratio: float) -> bool | None:
        if self.target is None:
            return None
        return ratio >= self.target if self.more_is_better else ratio <= self.target


class Trial(NamedTuple):
    section: str
    name: str
    figures: tuple[Figure, ...]
    run: Callable[[Broker], dict[str, float]]
    """Once; the values of the figures by their keys."""
    prepare: Callable[[Broker], None] = lambda broker: None
    cleanup: Callable[[Broker], None] = lambda broker: None
    alone: bool = False
    """The other broker is held still meanwhile: an idle Kafka's housekeeping made our p99 an eighth longer, while ours
    left Kafka's alone.  For a few seconds only: after nine, Kafka's controller takes its broker for dead."""


class Row(NamedTuple):
    """A figure, measured."""

    section: str
    name: str
    figure: Figure
    ours: list[float]
    theirs: list[float]

    @property
    def medians(self) -> tuple[float, float]:
        return statistics.median(self.ours), statistics.median(self.theirs)

    @property
    def ratio(self) -> float:
        ours, theirs = self.medians
        return ours / theirs if theirs else float("inf")

    @property
    def spread(self) -> tuple[float, float]:
        """The smallest and the largest ratio of two neighbouring measurements."""
        ratios = [one / two for one, two in zip(self.ours, self.theirs, strict=True) if two]
        return (min(ratios), max(ratios)) if ratios else (0.0, 0.0)

    @property
    def verdict(self) -> str:
        met = self.figure.met(self.ratio)
        return "" if met is None else "met" if met else "MISSED"


class Fact(NamedTuple):
    """A figure of ours alone."""

    name: str
    unit: str
    value: float
    most: float

    @property
    def verdict(self) -> str:
        return "met" if self.value <= self.most else "MISSED"


def measure(
    trial: Trial, brokers: Sequence[Broker], rounds: int, before_each: Callable[[], None] = lambda: None
) -> list[Row]:
    """A, B, B, A, A, ...: neither is always the one that comes after the other.  The first turn of each warms it up and
    does not count."""
    values: list[dict[str, list[float]]] = [{each.key: [] for each in trial.figures} for _ in brokers]
    try:
        for broker in brokers:
            trial.prepare(broker)
        for number in range(rounds + 1):
            turns = list(zip(brokers, values, strict=True))
            for broker, kept in turns if number % 2 else reversed(turns):
                before_each()
                with held(each for each in brokers if trial.alone and each is not broker):
                    found = trial.run(broker)
                if number:
                    for key, numbers in kept.items():
                        numbers.append(found[key])
            say(f"  {trial.section}: {trial.name}, round {number} of {rounds}")
    finally:
        for broker in brokers:
            trial.cleanup(broker)
    return [
        Row(trial.section, trial.name, figure, values[0][figure.key], values[1][figure.key]) for figure in trial.figures
    ]


@contextlib.contextmanager
def held(brokers: Iterable[Broker]) -> Iterator[None]:
    """They do nothing for a while, and then have time for what they put off: Kafka's p99.9 doubled without."""
    stopped = [pid for each in brokers for pid in each.pids]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
        if stopped:
            time.sleep(SETTLE_SECONDS)


def say(text: str) -> None:
    """Progress, for whoever waits."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
    elif "round 0" not in text:
        print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)
