"""Stories that are told of more than one set of clients, and the words they are told in."""

import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any

from compat_tests.program import Program, Record

Start = Callable[..., Program]
MakeTopic = Callable[..., str]

REBALANCE_SECONDS = 40
METADATA_SECONDS = 20


def fresh(kind: str) -> str:
    return f"{kind}-{uuid.uuid4().hex[:10]}"


def numbered(count: int, first: int = 0) -> list[Record]:
    return [Record(b"k%d" % index, b"value %d" % index) for index in range(first, first + count)]


def eventually(look: Callable[[], object], wanted: object) -> None:
    """Kafka's brokers hear of what its controller has done a little later."""
    deadline = time.monotonic() + METADATA_SECONDS
    while (found := look()) != wanted and time.monotonic() < deadline:
        time.sleep(0.05)
    assert found == wanted


def poll_until(members: list[Program], enough: Callable[[list[dict[str, Any]]], bool]) -> None:
    """Everybody polls, at the same time, until their answers are what we wait for."""
    deadline = time.monotonic() + REBALANCE_SECONDS
    with ThreadPoolExecutor(len(members)) as pool:
        while True:
            answers = list(pool.map(lambda each: each.ask("poll", seconds=0.3), members))
            if enough(answers):
                return
            assert time.monotonic() < deadline, answers


def read_as_member(member: Program, count: int) -> list[str]:
    found: list[str] = []

    def enough(answers: list[dict[str, Any]]) -> bool:
        found.extend(answers[0]["values"])
        return len(found) >= count

    poll_until([member], enough)
    return sorted(found)


def hexes(records: list[Record]) -> list[str]:
    return sorted((each.value or b"").hex() for each in records)


def goes_on_where_it_was(program: Program, topic: str, **how: str) -> None:
    """A group reads two partitions, commits and leaves; when it comes back it reads what is new."""
    group = fresh("group")
    for partition in (0, 1):
        program.write(topic, numbered(20, first=20 * partition), partition=partition)

    program.ask("join", topic=topic, group=group, **how)
    assert read_as_member(program, 40) == hexes(numbered(40))
    program.ask("commit")
    program.ask("leave")
    program.write(topic, numbered(5, first=40), partition=1)
    program.ask("join", topic=topic, group=group, **how)
    assert read_as_member(program, 5) == hexes(numbered(5, first=40))
    program.ask("leave")


def come_and_go(first: Program, second: Program, topic: str, **how: str) -> None:
    """Two members share four partitions, and the second has them all when the first has left."""
    group = fresh("group")

    def shared(answers: list[dict[str, Any]]) -> bool:
        parts = [each["assignment"] for each in answers]
        return all(parts) and sorted(chain(*parts)) == [0, 1, 2, 3]

    first.ask("join", topic=topic, group=group, **how)
    poll_until([first], shared)
    second.ask("join", topic=topic, group=group, **how)
    poll_until([first, second], shared)
    first.ask("leave")
    poll_until([second], shared)
    second.ask("leave")
