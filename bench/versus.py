"""Two trilogues beside each other, in turns: another version, or another setting.

python -m bench.versus ../before/.venv/bin/trilogue             that one, and the one installed here
python -m bench.versus --set trilogue.transport=tasks           as it comes, and with this setting

What exists must not get slower: every figure is better with the second the further it lies above 1.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from bench import brokers, trials
from bench.brokers import Ours, running
from bench.storage import AHEAD_BYTES, GIB, touch_memory
from bench.trial import Row, Trial, measure

KIB = 1 << 10


def chosen() -> Iterator[Trial]:
    """A few of each kind: whole batches, small requests, and waiting."""
    yield trials.produce(KIB, 16 * KIB)
    yield trials.consume(1)
    yield from islice(trials.latencies(), 1)
    yield from islice(trials.requests(), 3)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.versus", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("first", nargs="?", default=brokers.OURS, help="the `trilogue` of another environment")
    parser.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help="of the second")
    parser.add_argument("--rounds", type=int, default=9, help="how often each is measured (default 9)")
    return parser.parse_args()


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
            for trial in chosen():
                rows += measure(trial, (second, first), given.rounds, partial(touch_memory, folder, AHEAD_BYTES))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{'':72} {'first':>10} {'second':>10}   better  (worst and best round)")
    for row in rows:
        second_value, first_value = row.medians
        low, high = row.spread
        better, worst, best = (
            (row.ratio, low, high) if row.figure.more_is_better else (1 / row.ratio, 1 / high, 1 / low)
        )
        name = f"{row.name}: {row.figure.unit}"
        print(f"{name:72.72} {first_value:10,.2f} {second_value:10,.2f}   {better:6.3f}  ({worst:.2f} to {best:.2f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
