"""The same seed is the same story, everywhere; what seeds have found stays mended."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from trilogue.testing.simulation.plan import Plan, plan_of

FOUND = sorted((Path(__file__).parent / "found").glob("*.json"))
PROGRAM = """
import sys
from trilogue.testing.simulation.plan import Plan
from trilogue.testing.simulation.run import run
outcome = run(Plan.from_json(sys.stdin.read()))
print(outcome.fingerprint, len(outcome.events), *map(str, outcome.violations), sep="\\n")
"""


def run_elsewhere(plan: Plan, **environment: str) -> list[str]:
    """Fingerprint, number of events, and what is wrong."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=plan.to_json(),
        env={**os.environ, "PYTHONHASHSEED": "0", **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout.splitlines()


def test_the_same_seed_has_the_same_history_in_every_process(tmp_path: Path):
    plan = plan_of(7)
    plain = run_elsewhere(plan)
    other = run_elsewhere(plan, PADDING="x" * 50_000, HOME=str(tmp_path), PYTHONMALLOC="malloc", TZ="Asia/Tokyo")
    assert plain == other
    assert int(plain[1]) > 100


def test_another_seed_has_another_history():
    assert run_elsewhere(plan_of(7)) != run_elsewhere(plan_of(8))


def test_a_plan_is_data():
    plan = plan_of(3)
    assert Plan.from_json(plan.to_json()) == plan
    assert Plan.from_json(json.dumps(json.loads(plan.to_json()))) == plan


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_what_a_seed_has_found_stays_mended(path: Path):
    assert run_elsewhere(Plan.from_json(path.read_text()))[2:] == []
