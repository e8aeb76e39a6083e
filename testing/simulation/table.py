"""Breaks the product in every way of `mutations.py`, and writes into docs/simulation.md which seed finds each first.

python -m trilogue.testing.simulation.table [--only NAME ...] [--seeds 0-1999]
"""

import argparse
import re
import sys
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from trilogue.testing.simulation.mutations import MUTATIONS
from trilogue.testing.simulation.runner import briefs, with_hashes_fixed

PAGE = Path(__file__).resolve().parents[2] / "docs" / "simulation.md"
BEGIN, END = "<!-- mutations: made by `make simulate-mutations` -->", "<!-- end of mutations -->"
SEEDS_MAX = 2000
TOGETHER = 16


class Row(NamedTuple):
    name: str
    seed: int | None
    law: str
    tried: int

    def __str__(self) -> str:
        found = f"{self.seed} ({self.law})" if self.seed is not None else f"**not in {self.tried}**"
        return f"| {self.name} | {MUTATIONS[self.name].breaks} | {found} |"


def first_seed(name: str, last: int, workers: int) -> Row:
    tried = 0
    for first in range(0, last, TOGETHER):
        for each in briefs(range(first, min(first + TOGETHER, last)), workers, name):
            tried += 1
            if each.laws:
                return Row(name, each.seed, each.laws[0], tried)
    return Row(name, None, "", tried)


def written(page: str, rows: list[Row]) -> str:
    """The page with these rows in place of those of the same names; others stay."""
    known = {
        row.split(" | ")[0].strip("| "): row
        for row in re.findall(r"^\| (?!---|mutation).*$", between(page), re.MULTILINE)
    }
    known |= {row.name: str(row) for row in rows}
    lines = ["| mutation | what is not so any more | first seed, and the law it breaks |", "| --- | --- | --- |"]
    lines += [known[name] for name in MUTATIONS if name in known]
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    return "\n".join([before + BEGIN, *lines, END + after])


def between(page: str) -> str:
    return page.split(BEGIN)[1].split(END)[0]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m trilogue.testing.simulation.table", description=__doc__)
    parser.add_argument("--only", nargs="*", choices=sorted(MUTATIONS), default=list(MUTATIONS))
    parser.add_argument("--last", type=int, default=SEEDS_MAX, help="so many seeds at most")
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    missed = 0
    for name in given.only:
        begun = perf_counter()
        row = first_seed(name, given.last, given.workers)
        missed += row.seed is None
        print(f"{row}  {perf_counter() - begun:.0f} s", flush=True)
        PAGE.write_text(written(PAGE.read_text(), [row]))
    return missed


if __name__ == "__main__":
    with_hashes_fixed()
    sys.exit(main())
