"""How fast replicas that are not in sync may copy, so that moving partitions leaves room for clients.

Two limits for each broker, one for what it sends as leader and one for what it fetches as follower, and two lists for
each topic that name the replicas they are about: `partition:broker`, or `*`.  Who is in sync is never held back, but
what he copies counts.  Rates are taken over samples, as Kafka takes them.  Where no replica is named nothing is
counted, and nobody is asked.
"""

from collections import deque
from collections.abc import Mapping
from math import inf

from trilogue.broker.cluster.image import Image
from trilogue.broker.config import BrokerConfig

EVERYBODY = "*"
LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
LEADERS, FOLLOWERS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"


class Throttle:
    """One limit.  True if it is about any replica."""

    def __init__(self, samples: int, sample_seconds: float) -> None:
        self._samples, self._sample_seconds = samples, sample_seconds
        self._rate = inf
        self._named: Mapping[str, frozenset[int] | None] = {}
        """Partitions by topic; None for all of them."""
        self._counted: deque[tuple[float, int]] = deque()
        """When each sample began, and how many bytes it has."""

    def __bool__(self) -> bool:
        return bool(self._named)

    def update(self, rate: float, named: Mapping[str, frozenset[int] | None]) -> None:
        self._rate, self._named = rate, named

    def covers(self, topic: str, index: int) -> bool:
        partitions = self._named.get(topic, frozenset())
        return partitions is None or index in partitions

    def count(self, size: int, now: float) -> None:
        if self._counted and now - self._counted[-1][0] < self._sample_seconds:
            begun, before = self._counted.pop()
            self._counted.append((begun, before + size))
        else:
            self._counted.append((now, size))

    def exceeded(self, now: float) -> bool:
        while self._counted and now - self._counted[0][0] >= self._samples * self._sample_seconds:
            self._counted.popleft()
        if not self._counted:
            return False
        # The sample that is being filled counts as a whole one: otherwise the first bytes would be an endless rate.
        seconds = max(now - self._counted[0][0], self._sample_seconds)
        return sum(size for _, size in self._counted) / seconds > self._rate


class Throttles:
    def __init__(self, node_id: int, config: BrokerConfig) -> None:
        self._node_id = node_id
        samples, seconds = config["replication.quota.window.num"], config["replication.quota.window.size.seconds"]
        self.leader, self.follower = Throttle(samples, seconds), Throttle(samples, seconds)

    def update(self, image: Image) -> None:
        """The settings have changed."""
        for throttle, rate, replicas in (
            (self.leader, LEADER_RATE, LEADERS),
            (self.follower, FOLLOWER_RATE, FOLLOWERS),
        ):
            throttle.update(self._rate(image, rate), self._named(image, replicas))

    def _rate(self, image: Image, setting: str) -> float:
        for name in (str(self._node_id), "<default>"):
            text = image.config("brokers", name).get(setting, "")
            if text.isdecimal():  # who writes into the store by hand may write anything
                return float(text)
        return inf

    def _named(self, image: Image, setting: str) -> dict[str, frozenset[int] | None]:
        found = {}
        for (kind, name), settings in image.configs.items():
            if kind == "topics" and setting in settings:
                named = replicas_here(settings[setting], self._node_id)
                if named is None or named:
                    found[name] = named
        return found


def replicas_here(text: str, node_id: int) -> frozenset[int] | None:
    """The partitions of a list like `0:1,1:2` whose replica on this broker is meant; None for all."""
    if text.strip() == EVERYBODY:
        return None
    pairs = (each.strip().partition(":") for each in text.split(","))
    return frozenset(
        int(partition) for partition, _, broker in pairs if broker == str(node_id) and partition.isdecimal()
    )
