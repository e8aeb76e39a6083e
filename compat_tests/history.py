"""What a producer was told and readers have seen while brokers died, and whether it can be true of one log.

Every partition has its own sequence of numbers as values, sent in order by one idempotent producer; a reader follows
from the beginning.  At the end the log is read once more: every acknowledged number has to be where it was
acknowledged, once, in order, and what a reader has seen has to be there as it was seen.
"""

import threading
import time
from collections import defaultdict

import confluent_kafka

Place = tuple[int, int]
"""Partition and offset."""


class History:
    """Writes and reads from `start` to `stop`; `check` says what is wrong."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, per_second: float) -> None:
        self._bootstrap, self._topic, self._partitions, self._pause = bootstrap, topic, partitions, 1 / per_second
        self.acknowledged: dict[Place, int] = {}
        self.placeless: set[Place] = set()
        """Partition and value of what is acknowledged too, but nobody knows where: what the producer has heard of is a
        later batch, and batches are in order."""
        self.seen: dict[Place, int] = {}
        self.errors: list[str] = []
        """Of batches that the producer gave up."""
        self.went_back: list[str] = []
        """Offsets that a reader was given twice, or another value."""
        self.longest_gap = 0.0
        """Without an acknowledgement, in seconds."""
        self._last = time.monotonic()
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=each) for each in (self._write, self._read)]

    def start(self) -> None:
        self._last = time.monotonic()
        for each in self._threads:
            each.start()

    def stop(self) -> None:
        self._ended.set()
        for each in self._threads:
            each.join()

    def begin_gap(self) -> None:
        """The longest gap is counted from here on."""
        self.longest_gap = 0.0

    def _write(self) -> None:
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 0,
                "delivery.timeout.ms": 120_000,
                "retry.backoff.ms": 50,
                "socket.timeout.ms": 3000,  # of a broker that hangs; a minute as it comes
            }
        )

        def told(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
            if error is not None:
                self.errors.append(str(error))
                return
            if message.offset() is None:
                self.placeless.add((message.partition(), int(message.value())))
            else:
                self.acknowledged[message.partition(), message.offset()] = int(message.value())
            now = time.monotonic()
            self.longest_gap = max(self.longest_gap, now - self._last)
            self._last = now

        number = 0
        while not self._ended.is_set():
            try:
                producer.produce(self._topic, b"%d" % number, partition=number % self._partitions, on_delivery=told)
                number += 1
            except BufferError:
                pass
            producer.poll(self._pause)
        producer.flush(120)

    def _read(self) -> None:
        consumer = self._consumer()
        following: dict[int, int] = defaultdict(int)
        while not self._ended.is_set():
            message = consumer.poll(0.1)
            if message is None or message.error():
                continue
            place, value = (message.partition(), message.offset()), int(message.value())
            if place[1] < following[place[0]]:
                self.went_back.append(
                    f"{place} came again after {following[place[0]] - 1}, with {value}: {time.strftime('%X')}"
                )
            following[place[0]] = place[1] + 1
            self.seen[place] = value
        consumer.close()

    def _consumer(self) -> confluent_kafka.Consumer:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "nobody",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "isolation.level": "read_committed",
                "socket.timeout.ms": 3000,
            }
        )
        beginning = confluent_kafka.OFFSET_BEGINNING
        parts = range(self._partitions)
        consumer.assign([confluent_kafka.TopicPartition(self._topic, each, beginning) for each in parts])
        return consumer

    def log(self) -> dict[int, list[tuple[int, int]]]:
        """Everything that is there now: by partition, offsets and values."""
        consumer = self._consumer()
        found: dict[int, list[tuple[int, int]]] = {each: [] for each in range(self._partitions)}
        ends = {}
        deadline = time.monotonic() + 60
        while len(ends) < len(found):
            try:
                place = confluent_kafka.TopicPartition(self._topic, len(ends))
                _, ends[len(ends)] = consumer.get_watermark_offsets(place, timeout=30)
            except confluent_kafka.KafkaException:  # brokers may be about to register again, and nobody leads
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
        while any(end and (not found[each] or found[each][-1][0] < end - 1) for each, end in ends.items()):
            assert time.monotonic() < deadline, f"not everything can be read: {ends}"
            message = consumer.poll(0.5)
            if message is not None and not message.error():
                found[message.partition()].append((message.offset(), int(message.value())))
        consumer.close()
        return found

    def check(self) -> list[str]:
        """What cannot be."""
        log = self.log()
        there = {(part, offset): value for part, records in log.items() for offset, value in records}
        wrong = list(self.went_back)
        wrong += (
            f"acknowledged {value} at {place}: there is {there.get(place)}"
            for place, value in self.acknowledged.items()
            if there.get(place) != value
        )
        wrong += (
            f"read {value} at {place}: there is {there.get(place)}"
            for place, value in self.seen.items()
            if there.get(place) != value
        )
        known = {(part, value) for (part, _), value in there.items()}
        wrong += (
            f"acknowledged {value} in partition {part}: it is not there" for part, value in self.placeless - known
        )
        for part, records in log.items():
            values = [value for _, value in records]
            if sorted(set(values)) != values:
                wrong.append(f"partition {part} is out of order, or has something twice")
        return wrong[:20]
