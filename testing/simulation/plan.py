"""What is to happen under a seed, as data: who is there, and what goes wrong when.

A plan is made before anything runs, so that parts of it can be taken out (`shrink.py`) and the rest happens again.
Whatever else is left to chance while it runs is drawn from the seed, too.
"""

import json
import random
from typing import Any, NamedTuple

BROKERS = 3
PARTITIONS = 2
SESSION_SECONDS = 2.0

SETTINGS = {
    "zookeeper.session.timeout.ms": "2000",
    "replica.lag.time.max.ms": "1500",
    "replica.fetch.wait.max.ms": "400",
    "replica.fetch.backoff.ms": "100",
    "replica.socket.timeout.ms": "2000",
    "replica.high.watermark.checkpoint.interval.ms": "1000",
    "log.cleaner.backoff.ms": "1000000000",
    "leader.imbalance.check.interval.seconds": "5",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "group.initial.rebalance.delay.ms": "100",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "300",
}


class Fault(NamedTuple):
    at: float
    """Seconds since everybody was there."""
    kind: str
    lasts: float
    """Seconds until it is undone; 0 if there is nothing to undo."""
    of: tuple[Any, ...]
    """Whom or what it concerns, as `faults.py` says."""

    def __str__(self) -> str:
        return f"{self.at:7.3f} {self.kind} {' '.join(map(str, self.of))}" + (
            f" for {self.lasts:.3f} s" if self.lasts else ""
        )


class Party(NamedTuple):
    """A client."""

    kind: str
    name: str
    given: dict[str, Any]


class Plan(NamedTuple):
    seed: int
    seconds: float
    """For so long things go wrong."""
    settings: dict[str, str]
    """Of brokers."""
    configs: dict[str, str]
    """Of the topics that clients write to."""
    parties: tuple[Party, ...]
    faults: tuple[Fault, ...]

    def to_json(self) -> str:
        return json.dumps(
            {
                "seed": self.seed,
                "seconds": self.seconds,
                "settings": self.settings,
                "configs": self.configs,
                "parties": [each._asdict() for each in self.parties],
                "faults": [each._asdict() for each in self.faults],
            }
        )

    @classmethod
    def from_json(cls, text: str) -> "Plan":
        said = json.loads(text)
        parties = tuple(Party(**each) for each in said["parties"])
        faults = tuple(Fault(**{**each, "of": tuple(each["of"])}) for each in said["faults"])
        return cls(said["seed"], said["seconds"], said["settings"], said["configs"], parties, faults)


def plan_of(seed: int) -> Plan:
    chance = random.Random(f"plan {seed}")
    seconds = chance.choice((6.0, 8.0, 12.0))
    configs = {}
    if chance.random() < 0.3:
        configs["segment.ms"] = "1500"
    if chance.random() < 0.3:
        configs["flush.messages"] = chance.choice(("1", "5"))
    return Plan(seed, seconds, SETTINGS, configs, parties_of(chance), faults_of(chance, seconds))


def parties_of(chance: random.Random) -> tuple[Party, ...]:
    """A producer always, for it is what everything else is about; the rest by chance, since each takes its time."""
    found = [Party("producer", "producer-0", {"pause": chance.choice((0.15, 0.3))})]
    if chance.random() < 0.5:
        found.append(Party("reader", "reader-0", {"topic": "t", "committed": chance.random() < 0.5}))
    if chance.random() < 0.5:
        generation = chance.choice((1, 2))
        found.append(Party("transactional", "transactional-0", {"pause": 0.3, "generation": generation}))
        for number, committed in enumerate((True, False)[: chance.choice((1, 1, 2))]):
            found.append(Party("reader", f"reader-x{number}", {"topic": "x", "committed": committed}))
    for kind in ("classic", "modern"):
        if chance.random() < 0.3:
            found += [Party(f"{kind} member", f"{kind}-{number}", {}) for number in range(chance.choice((1, 2, 3)))]
    return tuple(found)


# -- what goes wrong -------------------------------------------------------------------------------

KINDS = {
    "kill": 5,
    "crash": 4,
    "power": 3,
    "stop": 3,
    "freeze": 4,
    "cut": 5,
    "lose": 4,
    "slow": 2,
    "expire": 4,
    "blip": 4,
    "keeper cut": 4,
    "keeper down": 2,
    "keeper slow": 2,
    "full": 2,
    "broken": 2,
    "no sync": 1,
    "clock": 2,
    "kill client": 2,
    "move": 2,
    "prefer": 1,
}
"""How often each is drawn, against the others."""

PARTINGS = 0.3
"""So many seeds are about logs that part."""


def faults_of(chance: random.Random, seconds: float) -> tuple[Fault, ...]:
    """A seed has a taste for some kinds: what comes together by chance alone comes together seldom."""
    if chance.random() < PARTINGS:
        return partings(chance, seconds)
    kinds = chance.sample(list(KINDS), chance.choice((2, 3, 5, len(KINDS))))
    count = chance.choice((1, 2, 4, 6, 9))
    found: list[Fault] = []
    for _ in range(count):
        kind = chance.choices(kinds, [KINDS[each] for each in kinds])[0]
        at = round(chance.random() * seconds, 3)
        if found and chance.random() < 0.4:
            at = round(min(seconds, found[-1].at + chance.random() * 0.6), 3)  # hard on the heels of another
        found.append(fault_of(chance, kind, at))
    return tuple(sorted(found))


def partings(chance: random.Random, seconds: float) -> tuple[Fault, ...]:
    """Leaders that others do not hear, or late, write what nobody else has, and then another leads: where logs part."""
    found: list[Fault] = []
    at = chance.random()
    while at < seconds - 1:
        one, other = chance.sample(range(1, BROKERS + 1), 2)
        lasts = round(0.3 + chance.random() * 2.5, 3)
        way = chance.choice(("alone", "alone", "both ways", "one way", "slow"))
        if way == "slow":
            found.append(Fault(round(at, 3), "slow", lasts, (other, one, chance.choice((200, 1000)))))
        else:
            found.append(Fault(round(at, 3), "cut", lasts, (way, one, other)))
        for _ in range(chance.choice((1, 1, 2))):
            then = round(at + chance.random() * (lasts + 0.3), 3)
            kind = chance.choice(("kill", "expire", "keeper cut", "freeze", "stop", "prefer", "move", "power", "lose"))
            found.append(fault_of(chance, kind, then)._replace(of=of_that(chance, kind, one)))
        at += lasts + chance.random() * 2
    return tuple(sorted(each for each in found if each.at < seconds))


def of_that(chance: random.Random, kind: str, node_id: int) -> tuple[Any, ...]:
    """A fault of this kind that concerns one broker, mostly."""
    if chance.random() < 0.2 or kind in ("prefer", "move", "lose"):
        return fault_of(chance, kind, 0).of
    return (node_id,)


def fault_of(chance: random.Random, kind: str, at: float) -> Fault:
    one, other = chance.sample(range(1, BROKERS + 1), 2)
    short = round(0.1 + chance.random() * 1.5, 3)
    lasts = chance.choice((short, round(short + chance.random() * 4, 3)))
    match kind:
        case "kill" | "stop" | "power" | "freeze" | "keeper cut" | "full" | "no sync":
            return Fault(at, kind, lasts, (one,))
        case "crash":
            return Fault(at, kind, lasts, (one, chance.randrange(1, 40)))
        case "broken":
            return Fault(at, kind, lasts, (one,))
        case "cut":
            who = chance.choice(("one way", "both ways", "alone", "alone with keeper", "clients"))
            return Fault(at, kind, lasts, (who, one, other))
        case "lose":
            return Fault(at, kind, 0, (one, chance.choice((other, "clients"))))
        case "slow":
            return Fault(at, kind, lasts, (one, other, chance.choice((20, 200, 1000))))
        case "expire" | "blip":
            return Fault(at, kind, 0, (one,))
        case "keeper down":
            return Fault(at, kind, lasts, ())
        case "keeper slow":
            return Fault(at, kind, lasts, (chance.choice((20, 200, 800)),))
        case "clock":
            return Fault(at, kind, 0, (one, chance.choice((-3_600_000, -5000, 2000, 60_000, 3_600_000))))
        case "kill client":
            return Fault(at, kind, lasts, (chance.randrange(100),))
        case "move":
            return Fault(at, kind, 0, (chance.randrange(PARTITIONS), chance.sample(range(1, BROKERS + 1), BROKERS)))
        case "prefer":
            return Fault(at, kind, 0, ())
    raise AssertionError(kind)
