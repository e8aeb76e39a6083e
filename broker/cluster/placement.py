"""Where the replicas of new partitions go.  Pure.

Two replicas of a partition are in one rack only if there are fewer racks than replicas.  First replicas, who lead, go
round the racks, and in each rack round its brokers: racks are meant to be alike.  Brokers without a rack are a rack
of their own, as in Kafka; so where nobody has one, everybody is in the same.
"""

from collections.abc import Iterable, Sequence
from itertools import chain

from trilogue.broker.cluster.image import BrokerInfo

Rack = Sequence[int]
"""Its brokers."""


def racks_of(brokers: Iterable[BrokerInfo]) -> list[Rack]:
    """In the order of their names."""
    racks: dict[str, list[int]] = {}
    for each in sorted(brokers, key=lambda each: each.id):
        racks.setdefault(each.rack or "", []).append(each.id)
    return [racks[name] for name in sorted(racks)]


def place(racks: Sequence[Rack], count: int, factor: int, start: int) -> list[tuple[int, ...]]:
    """`count` times `factor` brokers, each of them once; `start` says with whom to begin."""
    if len(racks) == 1:
        return place_in_turn(racks[0], count, factor, start)
    everybody = len(list(chain(*racks)))
    led, followed = [start] * len(racks), [start] * len(racks)
    placed = []
    for index in range(count):
        # Everybody has led once: shift, so that not always the same are together.
        rounds, begins = divmod(index, everybody)
        if begins == 0:
            followed = [each + 1 for each in followed]
        first = (start + index) % len(racks)
        leader = racks[first][led[first] % len(racks[first])]
        led[first] += 1
        placed.append((leader, *followers(racks, first, leader, factor - 1, followed, index // len(racks) + rounds)))
    return placed


def followers(
    racks: Sequence[Rack], first: int, leader: int, wanted: int, followed: list[int], shift: int
) -> list[int]:
    """From one rack after the other, that of the leader last; `followed` says whose turn it is in each of them."""
    others = [*range(first + 1, len(racks)), *range(first)]
    shift %= len(others)
    chosen = [leader]
    while len(chosen) <= wanted:
        for rack in (*others[shift:], *others[:shift], first):
            brokers = racks[rack]
            free = [each for each in (*brokers, *brokers)[followed[rack] % len(brokers) :] if each not in chosen]
            if len(chosen) <= wanted and free:
                chosen.append(free[0])
                followed[rack] += 1
    return chosen[1:]


def place_in_turn(brokers: Rack, count: int, factor: int, start: int) -> list[tuple[int, ...]]:
    """Leaders in turn; followers at a distance that grows by one with every round, so that pairs differ."""
    n = len(brokers)
    placed = []
    for index in range(count):
        leader, shift = (start + index) % n, (start + index) // n
        followers = [(leader + 1 + (shift + i) % (n - 1)) % n for i in range(factor - 1)]
        placed.append(tuple(brokers[i] for i in (leader, *followers)))
    return placed
