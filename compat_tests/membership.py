"""Groups under faults: members read and commit while others write, and what they say must not contradict itself."""

import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from compat_tests.inquiry import Question, committed
from compat_tests.trial import Trial
from compat_tests.workers import HERE, Worker

LOOK_SECONDS = 0.1


class Read(NamedTuple):
    """A record that a member was given, in which generation of its group."""

    generation: int
    partition: int
    offset: int
    time: float


class Member(Worker):
    """See `programs/member.py`."""

    def __init__(self, command: list[str], folder: Path) -> None:
        super().__init__(command, folder)
        self.reads: list[Read] = []
        self.failed: list[str] = []
        self._at = 0

    def look(self) -> None:
        """Take over what it has said since."""
        with open(self._said, "rb") as said:
            said.seek(self._at)
            news = said.read().rpartition(b"\n")[0]
        self._at += len(news)
        for line in news.decode().splitlines():
            match line.split():
                case ["read", generation, partition, offset, at]:
                    self.reads.append(Read(int(generation), int(partition), int(offset), float(at)))
                case ["failed", *why]:
                    self.failed.append(" ".join(why))


class Group:
    """So many members with the same settings; `{}` in a setting is which of them it is."""

    def __init__(self, it: Trial, folder: Path, name: str, topic: str, count: int, settings: Mapping[str, str]) -> None:
        self.name, self._folder, self._partitions = name, folder, it.topics[topic]
        program = [sys.executable, str(HERE / "programs" / "member.py"), it.cluster.bootstrap, name, topic]
        self._commands = [
            [*program, *(f"{key}={value.format(number)}" for key, value in settings.items())] for number in range(count)
        ]
        self.members = [Member(command, folder) for command in self._commands]
        self._killed: list[Member] = []

    def kill(self, number: int) -> None:
        """As a power switch would."""
        self.members[number].kill()
        self._killed.append(self.members[number])

    def revive(self, number: int) -> None:
        self.members[number] = Member(self._commands[number], self._folder)

    def everybody(self) -> list[Member]:
        found = list(dict.fromkeys([*self._killed, *self.members]))
        for each in found:
            each.look()
        return found

    def works(self, since: float) -> bool:
        """Every partition has been read from since then, and whoever was not killed lives."""
        for each in self.members:
            if each not in self._killed:
                each.must_live()
        last: dict[int, float] = {}
        for member in self.everybody():
            for read in reversed(member.reads):
                if read.time < since:
                    break
                last[read.partition] = read.time
        return len(last) == self._partitions

    def stop(self) -> None:
        for each in self.members:
            each.stop()

    def kill_all(self) -> None:
        for each in self.members:
            each.kill()

    def failed(self) -> list[str]:
        return [why for member in self.everybody() for why in member.failed]

    def problems(self, ends: Sequence[int]) -> list[str]:
        """What cannot be, when everything was to be read up to these ends."""
        owners: dict[tuple[int, int], set[int]] = defaultdict(set)
        seen: dict[int, set[int]] = defaultdict(set)
        for number, member in enumerate(self.everybody()):
            for read in member.reads:
                owners[read.generation, read.partition].add(number)
                seen[read.partition].add(read.offset)
        wrong = [
            f"{self.name}: partition {partition} had {len(who)} owners in generation {generation}"
            for (generation, partition), who in owners.items()
            if len(who) > 1
        ]
        for partition, end in enumerate(ends):
            missed = sorted(set(range(end)) - seen[partition])
            if missed:
                wrong.append(f"{self.name}: {len(missed)} of {partition} were not read: {missed[:5]}")
        return wrong


class Offsets:
    """Asks again and again what groups have committed: that never goes back, whoever answers."""

    def __init__(self, it: Trial, groups: Sequence[str]) -> None:
        self._it, self._groups = it, groups
        self.went_back: list[str] = []
        self.answers = 0
        self._known: dict[tuple[str, int], int] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            for group in self._groups:
                for broker in self._it.awake.split(","):
                    self.heard(group, broker, committed(broker, group))

    def heard(self, group: str, broker: str, found: Mapping[int, int] | None) -> None:
        if found is None:
            return
        self.answers += 1
        for place, before in self._known.items():
            if place[0] == group and found.get(place[1], -1) < before:
                now = found.get(place[1], "nothing")
                self.went_back.append(f"{time.monotonic():.3f} {broker}: {place} from {before} to {now}")
        self._known |= {(group, partition): offset for partition, offset in found.items()}

    @contextmanager
    def asked_while_hanging(self, victim: int) -> Iterator[None]:
        """It answers when it goes on, and what it says has to be true then."""
        broker = self._it.cluster.brokers[victim].bootstrap
        questions = {group: Question(broker, group) for group in self._groups}
        with self._it.hanging(victim):
            for each in questions.values():
                each.ask()
            yield
        for group, each in questions.items():
            self.heard(group, broker, each.answer())
