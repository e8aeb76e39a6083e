"""A month of a shop's orders.  Some are sent twice, some come late, some are broken."""

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from trilogue.pipeline.examples.sending import NewTopic, Outgoing

TOPICS = {"orders": NewTopic(3), "orders.dead": NewTopic(1)}

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
DAYS = 31
ORDERS = 9000
COUNTRIES = {"DE": 5, "FR": 3, "IT": 2}
"""And how much they buy."""
WEEKEND = 1.7
"""How much more is bought on a Saturday or Sunday."""
LATE_MINUTES = 90
TWICE, BROKEN, NEGATIVE = 0.02, 0.004, 0.004


def records(seed: int = 9) -> Iterator[Outgoing]:
    """In the order in which they arrive, which is not quite the one in which they happened."""
    chance = random.Random(seed)
    arriving = []
    for number in range(ORDERS):
        at = when(chance)
        for _ in range(1 + (chance.random() < TWICE)):
            arrives = at + timedelta(minutes=chance.expovariate(1 / 10) % LATE_MINUTES)
            arriving.append((arrives, number, at))
    arriving.sort()
    for arrives, number, at in arriving:
        yield Outgoing("orders", f"order-{number}", order(number, at, seed), int(arrives.timestamp() * 1000))


def when(chance: random.Random) -> datetime:
    """More at weekends, more in the evening."""
    while True:
        at = BEGIN + timedelta(days=chance.randrange(DAYS), seconds=int(chance.triangular(0, 86_399, 68_000)))
        if at.weekday() >= 5 or chance.random() < 1 / WEEKEND:
            return at


def order(number: int, at: datetime, seed: int) -> str:
    """The same order whenever it is sent."""
    chance = random.Random(f"{seed}/{number}")
    if chance.random() < BROKEN:
        return '{"order_id": ' + str(number)
    amount = chance.lognormvariate(3.5, 0.6)
    said = {
        "order_id": number,
        "country": chance.choices(list(COUNTRIES), list(COUNTRIES.values()))[0],
        "amount": round(-amount if chance.random() < NEGATIVE else amount, 2),
        "at": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    return json.dumps(said)
