"""The same seed is the same story, everywhere; what seeds have found stays mended."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from posix_only import posix_only

from trilogue.testing.simulation.plan import Plan, plan_of

pytestmark = posix_only("disks are simulated on positional reads and writes")

FOUND = sorted((Path(__file__).parent / "found").glob("*.json"))
PROGRAM = """
import sys
from trilogue.testing.simulation.plan import Plan
from trilogue.testing.simulation.runner import run_mutated
plan = Plan.from_json(sys.stdin.read())
for name in sys.argv[1:]:
    outcome = run_mutated(name or None, plan)
    print(outcome.fingerprint, len(outcome.events), *(each.law for each in outcome.violations[:1]))
"""


def run_elsewhere(plan: Plan, *mutations: str, **environment: str) -> list[list[str]]:
    """For each: fingerprint, number of events, and what law was broken first, if any."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *(mutations or ("",))],
        input=plan.to_json(),
        env={**os.environ, "PYTHONHASHSEED": "0", **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return [line.split() for line in done.stdout.splitlines()]


def test_the_same_seed_has_the_same_history_in_every_process(tmp_path: Path):
    plan = plan_of(7)
    plain = run_elsewhere(plan)
    other = run_elsewhere(plan, PADDING="x" * 50_000, HOME=str(tmp_path), PYTHONMALLOC="malloc", TZ="Asia/Tokyo")
    assert plain == other
    assert int(plain[0][1]) > 100


def test_the_same_seed_has_the_same_history_again_in_one_process_and_another_has_another():
    first, again = run_elsewhere(plan_of(8), "", "")
    assert first == again
    assert run_elsewhere(plan_of(9)) != [first]


def test_a_plan_is_data():
    plan = plan_of(3)
    assert Plan.from_json(plan.to_json()) == plan


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_what_is_broken_is_found_and_what_is_not_is_well(path: Path):
    """Each plan was made smaller under a mutation.  Some of those are bugs that seeds have found, and are mended."""
    well, broken = run_elsewhere(Plan.from_json(path.read_text()), "", path.stem)
    assert len(well) == 2
    assert len(broken) == 3
