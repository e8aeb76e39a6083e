"""What happened, one event after the other: for the checker, for whoever reads why a seed fails, and to be compared.

As JSON, a line for each event:

    {"t": 12.345678, "who": "producer-0", "what": "acked", ...}

`t` is in seconds since the beginning, `who` a client, a broker ("broker-2"), "keeper" (ZooKeeper) or "plan" (a fault).
What clients say:

    sent     topic, partition, sequence, values     a batch; sent again it is not said again
    acked    topic, partition, offset, values       offset is that of the first; null if nobody knows it
    refused  topic, partition, values, why          for good: a producer that does everything right hears no such thing
    began    number, producer, epoch                a transaction
    wrote    number, topic, partition, values       in a transaction; said before it is sent
    ended    number, outcome                        "committed" or "aborted"; what was asked for last may say neither
    read     topic, partition, isolation, found     offsets and values, in the order in which they came
    owns     group, member, generation, partitions  what a member of a group may read from now on
    commits  group, member, partition, offset       acknowledged by the coordinator
    resumes  group, member, partition, offset       where a member was told to go on

What ZooKeeper says: `leads` (topic, partition, leader, epoch, isr), `controller`, `there` and `gone` (a broker).  What
the plan says: the fault by its name.  What brokers say: `says` (level, text), from warnings on.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple


class Event(NamedTuple):
    t: float
    who: str
    what: str
    more: dict[str, Any]

    def __str__(self) -> str:
        return json.dumps({"t": self.t, "who": self.who, "what": self.what, **self.more}, separators=(",", ":"))


class History:
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.events: list[Event] = []

    def add(self, who: str, what: str, **more: Any) -> None:
        self.events.append(Event(round(self._now(), 6), who, what, more))

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def of(self, *kinds: str) -> Iterator[Event]:
        return (each for each in self.events if each.what in kinds)

    def lines(self) -> Iterator[str]:
        return map(str, self.events)

    def fingerprint(self) -> str:
        return fingerprint(self.lines())


def fingerprint(lines: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line.encode() + b"\n")
    return digest.hexdigest()
