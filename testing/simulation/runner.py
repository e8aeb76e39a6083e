"""Many seeds, in one process or several: progress, figures, and what is wrong."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from time import perf_counter
from typing import NamedTuple

from trilogue.testing.simulation.mutations import mutated
from trilogue.testing.simulation.plan import Plan, plan_of
from trilogue.testing.simulation.run import Outcome, run
from trilogue.testing.simulation.shrink import shrunk
from trilogue.testing.simulation.transcript import transcript

HASH_SEED = "0"
"""Sets of strings have an order, and it has to be the same in every process."""

Say = Callable[[str], None]


def with_hashes_fixed() -> None:
    """Begin this program again if the order of sets is left to chance."""
    if os.environ.get("PYTHONHASHSEED") != HASH_SEED:
        os.environ["PYTHONHASHSEED"] = HASH_SEED
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


class Brief(NamedTuple):
    """What of an outcome goes from one process to another."""

    seed: int
    fingerprint: str
    laws: tuple[str, ...]
    violations: tuple[str, ...]
    virtual_seconds: float
    real_seconds: float
    looks: int


def brief(outcome: Outcome) -> Brief:
    return Brief(
        outcome.plan.seed,
        outcome.fingerprint,
        tuple(each.law for each in outcome.violations),
        tuple(map(str, outcome.violations)),
        outcome.virtual_seconds,
        outcome.real_seconds,
        outcome.looks,
    )


def run_mutated(mutation: str | None, plan: Plan) -> Outcome:
    with mutated(mutation):
        return run(plan)


def run_seed(mutation: str | None, seed: int) -> Brief:
    return brief(run_mutated(mutation, plan_of(seed)))


def briefs(seeds: Iterable[int], workers: int, mutation: str | None = None) -> Iterator[Brief]:
    """In the order of the seeds."""
    work = partial(run_seed, mutation)
    if workers <= 1:
        yield from map(work, seeds)
        return
    with ProcessPoolExecutor(workers) as pool:
        yield from pool.map(work, seeds, chunksize=4)


def simulate(seeds: range, workers: int, say: Say, *, mutation: str | None = None, shrink: bool = True) -> list[Brief]:
    """All of them.  Those that fail."""
    begun, done, virtual, failed = perf_counter(), 0, 0.0, []
    said = begun
    for each in briefs(seeds, workers, mutation):
        done += 1
        virtual += each.virtual_seconds
        if each.laws:
            failed.append(each)
            say(f"seed {each.seed}: {each.violations[0]}")
        if perf_counter() - said > 5:
            said = perf_counter()
            say(figures(done, len(seeds), virtual, said - begun, len(failed)))
    say(figures(done, len(seeds), virtual, perf_counter() - begun, len(failed)))
    for each in failed[:3] if shrink else ():
        explain(each.seed, say, mutation)
    return failed


def figures(done: int, of: int, virtual: float, real: float, failed: int) -> str:
    return (
        f"{done} of {of} seeds, {failed} failed; {done / real:.1f} seeds/s, {virtual / real:.0f} s of a cluster's life "
        f"in a second ({virtual / 60:.0f} minutes in {real:.0f} s)"
    )


def explain(seed: int, say: Say, mutation: str | None = None, *, every: bool = False, shrink: bool = True) -> Outcome:
    """Run it again, make it smaller, and tell."""
    outcome = run_mutated(mutation, plan_of(seed))
    if outcome.violations and shrink:
        outcome = shrunk(outcome, partial(run_mutated, mutation))
    for line in transcript(outcome, every=every):
        say(line)
    say(
        f"to replay: python -m trilogue.testing.simulation --seed {seed}"
        + (f" --mutate {mutation}" if mutation else "")
    )
    return outcome
