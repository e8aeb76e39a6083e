"""The change log of a table of customers: a compacted topic, in which a key without a value is a customer who left."""

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from trilogue.pipeline.examples.sending import NewTopic, Outgoing

TOPICS = {"customers": NewTopic(2, {"cleanup.policy": "compact"})}

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
CUSTOMERS = 600
CHANGES = 6000
PLANS = ["free", "basic", "pro"]
COUNTRIES = ["DE", "FR", "IT", "PL"]
LEAVING = 0.06


def records(seed: int = 5) -> Iterator[Outgoing]:
    """Customers begin with the free plan, mostly move up, and some leave; of those, some come back."""
    chance = random.Random(seed)
    plans: dict[int, int] = {}
    for change in range(CHANGES):
        customer = min(int(chance.expovariate(1 / 150)), CUSTOMERS - 1)
        at = BEGIN + timedelta(minutes=20 * change)
        if customer in plans and chance.random() < LEAVING:
            del plans[customer]
            yield Outgoing("customers", f"c{customer:04}", None, int(at.timestamp() * 1000))
            continue
        step = chance.choices([-1, 0, 1], [1, 4, 2])[0]
        plans[customer] = 0 if customer not in plans else min(max(plans[customer] + step, 0), len(PLANS) - 1)
        said = {
            "country": COUNTRIES[customer % len(COUNTRIES)],
            "plan": PLANS[plans[customer]],
            "changed": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        yield Outgoing("customers", f"c{customer:04}", json.dumps(said), int(at.timestamp() * 1000))
