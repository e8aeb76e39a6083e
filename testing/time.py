"""What `advance` does to a broker: every clock that a test waits for is put forward.

Records, retention, compaction and everything that is stored go by the wall's clock; sessions, rebalances and
transactions by the time that machines are told.  Both move.  Whatever is between brokers, or between a request and its
answer, does not.

Clients cannot be put forward: a member that is alive heartbeats every three seconds, whatever we say.  So whose session
the jump has passed has a moment of grace, by the real clock, to be heard from; until it is over nobody is put out.
Transactions have none: nobody heartbeats for them.
"""

from collections.abc import Sequence

from trilogue.broker.broker import Broker
from trilogue.broker.clock import Clock

CLASSIC_HEARTBEAT_SECONDS = 3.0
"""Every client of the classic protocol heartbeats so often unless told otherwise."""

LATE_SECONDS = 0.5
"""So much later it may be on a busy machine."""


def advance(clock: Clock, brokers: Sequence[Broker], seconds: float, grace: float | None) -> None:
    """Brokers that share a clock.  It comes first: what is done because time has passed looks at it."""
    if seconds < 0:
        raise ValueError(f"time does not go back: {seconds} s")
    clock.advance(seconds)
    for broker in brokers:
        broker.transactions.advance(seconds)
        usual = usual_grace(broker) if has_members(broker) else 0
        broker.groups.advance(seconds, usual if grace is None else grace)


def has_members(broker: Broker) -> bool:
    return any(not group.is_empty for shard in broker.groups.shards() for group in shard.machine.groups.values())


def usual_grace(broker: Broker) -> float:
    """In which every member that is alive is heard from."""
    told_seconds: float = broker.config["group.consumer.heartbeat.interval.ms"] / 1000
    return max(CLASSIC_HEARTBEAT_SECONDS, told_seconds) + LATE_SECONDS
