"""Two trilogues beside each other, in turns: another version, or another setting.

python -m bench.versus ../before/.venv/bin/trilogue             that one, and the one installed here
python -m bench.versus --set trilogue.transport=tasks           as it comes, and with this setting

What exists must not get slower: every figure is better with the second the further it lies above 1.

Brokers have the last core to themselves and drivers the others: where the scheduler happens to put them is worth three
times the time of an acknowledgement (28 us on one core, 82 on two), and hides what is looked for.  So does how a
machine is now and a minute later: turns are a fraction of a second, many, and each is compared with its neighbour.
"""

import argparse
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench import brokers, trials
from bench.brokers import Ours, running
from bench.storage import GIB, touch_memory
from bench.trial import Row, Trial, measure

KIB, MIB = 1 << 10, 1 << 20


def chosen() -> Iterator[Trial]:
    """A few of each kind: whole batches, small requests, and waiting."""
    yield trials.produce(KIB, 16 * KIB, total=96 * MIB)
    yield trials.consume(1)
    yield trials.acknowledgement(1500, alone=False)
    yield from trials.small_requests(0.4)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.versus", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("first", nargs="?", default=brokers.OURS, help="the `trilogue` of another environment")
    parser.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help="of the second")
    parser.add_argument("--only", metavar="WORDS", default="", help="rows whose names have this in them")
    parser.add_argument("--rounds", type=int, default=40, help="how often each is measured (default 40)")
    return parser.parse_args()


def keep_apart(*both: Ours) -> None:
    *drivers, last = sorted(os.sched_getaffinity(0))
    if not drivers:
        return  # there is one core
    os.sched_setaffinity(0, drivers)
    for broker in both:
        for thread in Path(f"/proc/{broker.pid}/task").iterdir():
            os.sched_setaffinity(int(thread.name), {last})


def main() -> int:
    given = arguments()
    settings = dict(each.split("=", 1) for each in given.set)
    folder = Path(tempfile.mkdtemp(prefix="versus-"))
    rows: list[Row] = []
    try:
        touch_memory(folder, 4 * GIB)
        first = Ours(folder / "first", name="first", command=given.first)
        second = Ours(folder / "second", name="second", **settings)
        with running(second), running(first):
            keep_apart(first, second)
            for trial in (each for each in chosen() if given.only in f"{each.section}: {each.name}"):
                rows += measure(trial, (second, first), given.rounds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{'':72} {'first':>10} {'second':>10}   better  (a quarter of the turns below, above)")
    for row in rows:
        second_value, first_value = row.medians
        lower, middle, upper = statistics.quantiles(betters(row), n=4)
        name = f"{row.name}: {row.figure.unit}"
        print(f"{name:72.72} {first_value:10,.2f} {second_value:10,.2f}   {middle:6.3f}  ({lower:.2f}, {upper:.2f})")
    return 0


def betters(row: Row) -> list[float]:
    """How much better the second was, turn by turn."""
    pairs = zip(row.ours, row.theirs, strict=True)
    if row.figure.more_is_better:
        return [second / first for second, first in pairs if first]
    return [first / second for second, first in pairs if second]


if __name__ == "__main__":
    sys.exit(main())
