"""Two days of a web site's clicks: people come, look around, and come back."""

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from trilogue.pipeline.examples.sending import NewTopic, Outgoing

TOPICS = {"clicks": NewTopic(2)}

BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
USERS = 400
DAYS = 2
PAGES = ["/", "/search", "/product", "/basket", "/checkout", "/help"]
SECONDS_ON_PAGE = 70
LATE_SECONDS = 240


def records(seed: int = 4) -> Iterator[Outgoing]:
    chance = random.Random(seed)
    arriving = []
    for number in range(USERS):
        for visit in visits(chance):
            for page, at in clicks(chance, visit):
                arrives = at + timedelta(seconds=chance.random() * LATE_SECONDS)
                arriving.append((arrives, f"user-{number}", page, at))
    arriving.sort()
    # One more, much later: it closes the last visits.
    end = BEGIN + timedelta(days=DAYS + 1)
    for arrives, user, page, at in [*arriving, (end, "user-0", "/", end)]:
        said = {"user": user, "page": page, "at": at.strftime("%Y-%m-%dT%H:%M:%SZ")}
        yield Outgoing("clicks", user, json.dumps(said), int(arrives.timestamp() * 1000))


def visits(chance: random.Random) -> list[datetime]:
    """Some in the lunch break, more in the evening."""
    found = []
    for _ in range(chance.randrange(1, 5)):
        hour = chance.gauss(12.5, 1.2) if chance.random() < 0.35 else chance.gauss(20, 2)
        found.append(BEGIN + timedelta(days=chance.randrange(DAYS), hours=min(23.5, max(0.0, hour))))
    return sorted(found)


def clicks(chance: random.Random, visit: datetime) -> Iterator[tuple[str, datetime]]:
    at, page = visit.replace(microsecond=0), "/"
    while True:
        yield page, at
        if chance.random() < 0.18:
            return
        page = chance.choices(PAGES, [2, 4, 6, 2, 1, 1])[0]
        at += timedelta(seconds=1 + int(chance.expovariate(1 / SECONDS_ON_PAGE)))
