"""Where the replicas of new partitions go.  Pure.

Two replicas of a partition are in one rack only if there are fewer racks than replicas.  First replicas, who lead, go
round the racks, and in each rack round its brokers: racks are meant to be alike.  Brokers without a rack are a rack
of their own, as in Kafka; so where nobody has one, everybody is in the same.
"""

from collections.abc import Collection, Iterable, Sequence

from trilogue.broker.cluster.image import BrokerInfo

Rack = Sequence[int]
"""Its brokers."""


def racks_of(brokers: Iterable[BrokerInfo]) -> list[Rack]:
    """In the order of their names."""
    racks: dict[str, list[int]] = {}
    for each in sorted(brokers, key=lambda each: each.id):
        racks.setdefault(each.rack or "", []).append(each.id)
    return [racks[name] for name in sorted(racks)]


def place(
    racks: Sequence[Rack], count: int, factor: int, start: int, gone: Collection[int] = ()
) -> list[tuple[int, ...]]:
    """`count` times `factor` brokers, each of them once; `start` says with whom to begin.

    Who is `gone` does not lead, and follows only if his rack has nobody else.
    """
    if len(racks) == 1 and not gone:
        return place_in_turn(racks[0], count, factor, start)
    leading = [living for rack in racks if (living := [each for each in rack if each not in gone])]
    led, followed = [start] * len(leading), [start] * len(racks)
    everybody = sum(map(len, leading))
    placed = []
    for index in range(count):
        # Everybody has led once: shift, so that not always the same are together.
        rounds, begins = divmod(index, everybody)
        if begins == 0:
            followed = [each + 1 for each in followed]
        turn = (start + index) % len(leading)
        leader = leading[turn][led[turn] % len(leading[turn])]
        led[turn] += 1
        placed.append((leader, *followers(racks, leader, factor - 1, followed, index // len(racks) + rounds, gone)))
    return placed


def followers(
    racks: Sequence[Rack], leader: int, wanted: int, followed: list[int], shift: int, gone: Collection[int]
) -> list[int]:
    """From one rack after the other, that of the leader last; `followed` says whose turn it is in each of them."""
    first = next(number for number, rack in enumerate(racks) if leader in rack)
    others = [*range(first + 1, len(racks)), *range(first)]
    shift %= max(len(others), 1)
    chosen = [leader]
    while len(chosen) <= wanted:
        for number in (*others[shift:], *others[:shift], first):
            rack = racks[number]
            turn = followed[number] % len(rack)
            free = [each for each in (*rack[turn:], *rack[:turn]) if each not in chosen]
            if len(chosen) <= wanted and free:
                chosen.append(min(free, key=lambda each: each in gone))
                followed[number] += 1
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
