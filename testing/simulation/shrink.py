"""Makes a failing plan smaller, as long as it fails in the same way: fewer faults, fewer clients, shorter."""

from collections.abc import Callable, Iterator

from trilogue.testing.simulation.plan import Plan
from trilogue.testing.simulation.run import Outcome

RUNS_MAX = 60


def shrunk(outcome: Outcome, run: Callable[[Plan], Outcome]) -> Outcome:
    """The smallest outcome that is found in so many runs."""
    law = outcome.violations[0].law
    left = RUNS_MAX
    while True:
        for plan in smaller(outcome.plan):
            if not left:
                return outcome
            left -= 1
            found = run(plan)
            if any(each.law == law for each in found.violations):
                outcome = found
                break
        else:
            return outcome


def smaller(plan: Plan) -> Iterator[Plan]:
    """What is tried: the largest pieces first."""
    faults = plan.faults
    half = len(faults) // 2
    if half > 1:
        yield plan._replace(faults=faults[:half])
        yield plan._replace(faults=faults[half:])
    for number in range(len(faults)):
        yield plan._replace(faults=faults[:number] + faults[number + 1 :])
    if len(plan.parties) > 1:
        for number in range(len(plan.parties)):
            yield plan._replace(parties=plan.parties[:number] + plan.parties[number + 1 :])
    last = max((each.at for each in faults), default=0.0)
    if last + 1 < plan.seconds:
        yield plan._replace(seconds=round(last + 1, 3))
