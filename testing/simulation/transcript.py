"""What somebody who has to find out why a seed fails reads first: the faults, who led when, the last events."""

from collections.abc import Iterator

from trilogue.testing.simulation.history import Event
from trilogue.testing.simulation.run import Outcome

LAST_EVENTS = 25
QUIET = ("sent", "acked", "read", "wrote", "commits", "resumes")


def transcript(outcome: Outcome, *, every: bool = False) -> Iterator[str]:
    """`every`: all events, and not only those that tell the story."""
    plan = outcome.plan
    yield f"seed {plan.seed}: {'; '.join(map(str, outcome.violations)) or 'nothing is wrong'}"
    names = ", ".join(each.name for each in plan.parties)
    yield f"  {len(plan.parties)} clients ({names}), {plan.seconds:g} s of faults:"
    for fault in plan.faults:
        yield f"    {fault}"
    if every:
        yield from (f"  {each}" for each in outcome.events)
        return
    last = len(outcome.events) - LAST_EVENTS
    story = [each for number, each in enumerate(outcome.events) if number >= last or each.what not in QUIET]
    yield "  what happened:"
    for event in story:
        yield from told(event)


def told(event: Event) -> Iterator[str]:
    more = event.more
    if event.what == "trace":
        yield from (f"      {line}" for line in more["text"].splitlines())
        return
    match event.what:
        case "leads":
            text = (
                f"{more['topic']}-{more['partition']}: leader {more['leader']} epoch {more['epoch']} ISR {more['isr']}"
            )
            text += f" ELR {more['elr']}" if more["elr"] else ""
        case "says":
            text = f"{more['level'].lower()}: {more['text']}"
        case "read":
            found = more["found"]
            text = f"read {more['topic']}-{more['partition']} {found[0]}..{found[-1]} ({more['isolation']})"
        case _:
            text = " ".join([event.what, *(f"{name}={value}" for name, value in more.items())])
    yield f"    {event.t:10.6f} {event.who:<12} {text[:400]}"
