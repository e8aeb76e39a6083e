"""A commit as ZooKeeper can do it: parents are made first, and what lies below a node is deleted before it.

A parent that nobody has asked for is a place: it has no data, not even empty data, and is not shown as a node.
Pure: what is there comes in as an argument.  If that was not so any more, the commit fails as a whole.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from trilogue.broker.cluster.store import ANY_VERSION, Create, Delete, Op, Update


class Place(NamedTuple):
    """A parent to be made."""

    path: str


class Step(NamedTuple):
    """One op of the multi."""

    op: Op | Place
    asked: bool
    """It is what somebody wants.  Otherwise it is on the way to that, and if it fails we only have to look again."""


def ancestors(path: str) -> list[str]:
    """From the top down, without the root and without itself."""
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(2, len(parts))]


def doubtful_places(ops: Sequence[Op], known: Collection[str]) -> list[str]:
    """The parents that may have to be made: those below a node that is to be made are missing for certain."""
    created = dict.fromkeys(op.path for op in ops if isinstance(op, Create))  # in their order
    found: dict[str, None] = {}
    for path in created:
        for each in ancestors(path):
            if each in created:
                break
            if each not in known:
                found[each] = None
    return list(found)


def plan(ops: Sequence[Op], there: Iterable[str], below: Mapping[str, Sequence[str]]) -> list[Step]:
    """`there` are the parents that exist; `below` has everything under each node that is to be deleted."""
    standing, made, gone, steps = set(there), set[str](), set[str](), list[Step]()
    for op in ops:
        if isinstance(op, Create):
            for each in ancestors(op.path):
                if each not in standing:
                    steps.append(Step(Place(each), asked=False))
                    standing.add(each)
                    made.add(each)
            standing.add(op.path)
            made.add(op.path)
        elif isinstance(op, Delete):
            doomed = {each for each in below.get(op.path, ()) if each not in gone}
            doomed |= {each for each in made if each.startswith(op.path + "/")}
            deepest_first = sorted(doomed, key=lambda path: (-path.count("/"), path))
            steps += [Step(Delete(each, ANY_VERSION), asked=False) for each in deepest_first]
            standing -= doomed | {op.path}
            made -= doomed | {op.path}
            gone |= doomed | {op.path}
        steps.append(Step(op, asked=True))
    return steps


def touched(steps: Iterable[Step]) -> list[str]:
    """The nodes that a commit changes, each once."""
    return list(dict.fromkeys(step.op.path for step in steps if isinstance(step.op, Create | Update | Delete)))
