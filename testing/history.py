"""`broker.history`: what clients have sent, for tests to assert on.

    with broker.history.recording():
        ...
    assert [sent.client_id for sent in broker.history.of("Produce", topic="orders")] == ["shop"]

Nothing is recorded unless asked for: by `recording()`, or by `Broker(history=True)` from the start on.  What is kept is
bounded; the oldest goes first, and `forgotten` says how much.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

from trilogue.testing.faults.fault import wanted
from trilogue.testing.faults.faults import nothing
from trilogue.testing.faults.shapes import Subject
from trilogue.wire.apis.produce import ProduceRequest
from trilogue.wire.legacy import up_convert
from trilogue.wire.records import batches

BATCHES = 3
"""From this version of Produce on records come in batches."""

REQUESTS_MAX = 100_000
BYTES_MAX = 64 << 20
"""Of records; what else there is in a request is little, and there are no more than `REQUESTS_MAX`."""


class Record(NamedTuple):
    """As a producer has sent it; once more if it has sent it again."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int


class Sent(NamedTuple):
    """A request of a client."""

    at_ms: int
    """By the broker's clock."""
    api: str
    version: int
    client_id: str | None
    about: tuple[Subject, ...]
    """Topics, partitions, groups and transactional ids, as far as it says."""
    request: Any
    """With Kafka's names for its fields."""

    @property
    def topics(self) -> set[str]:
        return {each.topic for each in self.about if each.topic is not None}

    @property
    def partitions(self) -> set[tuple[str, int]]:
        """Those that it names."""
        return {
            (each.topic, each.partition) for each in self.about if each.topic is not None and each.partition is not None
        }

    def records(self) -> Iterator[Record]:
        """Of a Produce; nothing of others."""
        if not isinstance(self.request, ProduceRequest):
            return
        places = iter(self.about)
        for topic in self.request.topic_data:
            if not topic.partition_data:
                next(places)  # which it is about all the same
            for data in topic.partition_data:
                about = next(places)
                if data.records:
                    yield from decoded(about.topic or "", data.index, data.records, self.version)


def decoded(topic: str, partition: int, data: memoryview, version: int) -> Iterator[Record]:
    for batch in batches(data if version >= BATCHES else memoryview(up_convert(data))):
        for each in batch.records():
            headers = tuple((name, None if value is None else bytes(value)) for name, value in each.headers)
            key, value = (None if part is None else bytes(part) for part in (each.key, each.value))
            yield Record(topic, partition, key, value, headers, each.timestamp)


def weight(request: Any) -> int:
    if not isinstance(request, ProduceRequest):
        return 0
    return sum(len(data.records or b"") for topic in request.topic_data for data in topic.partition_data)


class History:
    """May be used from any thread."""

    def __init__(self, *, always: bool = False) -> None:
        self._depth = int(always)
        self._kept: deque[tuple[Sent, int]] = deque()
        self._bytes = 0
        self._lock = threading.Lock()
        self.forgotten = 0
        """So many were the oldest when there were too many."""
        self.changed: Callable[[], None] = nothing
        """Told when it begins and ends, and waited for."""

    @property
    def is_recording(self) -> bool:
        return self._depth > 0

    @contextmanager
    def recording(self) -> Iterator[Self]:
        """From here to the end of the block.  What was recorded stays, until `clear` or `reset`."""
        self._deepen(1)
        try:
            yield self
        finally:
            self._deepen(-1)

    def _deepen(self, by: int) -> None:
        with self._lock:
            self._depth += by
        self.changed()

    def add(self, sent: Sent) -> None:
        size = weight(sent.request)
        with self._lock:
            self._kept.append((sent, size))
            self._bytes += size
            while len(self._kept) > REQUESTS_MAX or self._bytes > BYTES_MAX:
                self._bytes -= self._kept.popleft()[1]
                self.forgotten += 1

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()
            self._bytes = self.forgotten = 0

    def __iter__(self) -> Iterator[Sent]:
        with self._lock:
            return iter([sent for sent, _ in self._kept])

    def __len__(self) -> int:
        return len(self._kept)

    def of(
        self,
        api: str,
        *,
        topic: str | None = None,
        partition: int | None = None,
        group: str | None = None,
        transactional_id: str | None = None,
        client_id: str | None = None,
    ) -> list[Sent]:
        """Requests of this API, and about that as far as it is said; in the order in which they came."""
        which = wanted(
            api, topic=topic, partition=partition, group=group, transactional_id=transactional_id, client_id=client_id
        )
        return [sent for sent in self if which.api == sent.api and which.is_of(sent.client_id, sent.about)]

    def records(self, topic: str, *, partition: int | None = None) -> list[Record]:
        """What was sent to be written there, whether it was or not."""
        return [
            record
            for sent in self.of("Produce", topic=topic, partition=partition)
            for record in sent.records()
            if record.topic == topic and partition in (None, record.partition)
        ]
