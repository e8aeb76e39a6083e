"""Command line: many seeds, or one of them told.

python -m trilogue.testing.simulation --seeds 0-499 --workers 2
python -m trilogue.testing.simulation --seed 17 --transcript
"""

import argparse
import sys
from pathlib import Path

from trilogue.testing.simulation.mutations import MUTATIONS
from trilogue.testing.simulation.plan import Plan
from trilogue.testing.simulation.runner import explain, run_mutated, simulate, with_hashes_fixed
from trilogue.testing.simulation.transcript import transcript


def seeds_of(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def say(line: str) -> None:
    print(line, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m trilogue.testing.simulation", description=__doc__)
    parser.add_argument("--seeds", type=seeds_of, default=range(100), help="0-499")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--seed", type=int, help="only this one, made smaller if it fails, and told")
    parser.add_argument("--transcript", action="store_true", help="with --seed: every event")
    parser.add_argument("--whole", action="store_true", help="with --seed: do not make it smaller")
    parser.add_argument("--history", type=Path, help="with --seed: write the history there, as JSON lines")
    parser.add_argument("--plan", type=Path, help="a plan from a file in place of a seed's own")
    parser.add_argument("--mutate", choices=sorted(MUTATIONS), help="break the product in this way first")
    given = parser.parse_args()
    if given.plan is not None:
        outcome = run_mutated(given.mutate, Plan.from_json(given.plan.read_text()))
        for line in transcript(outcome, every=given.transcript):
            say(line)
        return bool(outcome.violations)
    if given.seed is not None:
        outcome = explain(
            given.seed, say, given.mutate, every=given.transcript, shrink=not given.whole and given.history is None
        )
        if given.history is not None:
            given.history.write_text("".join(f"{each}\n" for each in outcome.events))
        say(f"plan: {outcome.plan.to_json()}")
        say(f"fingerprint: {outcome.fingerprint}")
        return bool(outcome.violations)
    return bool(simulate(given.seeds, given.workers, say, mutation=given.mutate))


if __name__ == "__main__":
    with_hashes_fixed()
    sys.exit(main())
