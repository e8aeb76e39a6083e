"""Exactly once under faults: a feeder writes, copiers copy in transactions, and in the end everything is there once."""

import itertools
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import confluent_kafka

from compat_tests.inquiry import open_transactions
from compat_tests.trial import SECONDS_MAX, Trial
from compat_tests.workers import HERE, Worker

SOURCE, SINK = "in", "out"
PARTITIONS = 2
PER_SECOND = 150
COPIERS = "copy"
"""The group of librdkafka's; their transactional ids are made of it and their numbers."""


class Feeder:
    """Writes numbers, each partition its own, from `start` to `stop`; all of them are acknowledged then."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self.given: list[list[str]] = [[] for _ in range(PARTITIONS)]
        self.errors: list[str] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._write)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _write(self) -> None:
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "enable.idempotence": True,
                "delivery.timeout.ms": 120_000,
                "retry.backoff.ms": 50,
                "socket.timeout.ms": 3000,  # of a broker that hangs; a minute as it comes
            }
        )

        def told(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
            if error is not None:
                self.errors.append(str(error))

        number = 0
        while not self._ended.is_set():
            part, value = number % PARTITIONS, f"n{number}"
            producer.produce(SOURCE, value, partition=part, on_delivery=told)
            self.given[part].append(value)
            number += 1
            producer.poll(1 / PER_SECOND)
        assert producer.flush(120) == 0


def fill(bootstrap: str, given: list[list[str]]) -> None:
    """All at once, a list for every partition."""
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for part, values in enumerate(given):
        for value in values:
            producer.produce(SOURCE, value, partition=part)
    assert producer.flush(30) == 0


def copier_commands(bootstrap: str, count: int, settings: Mapping[str, str]) -> list[list[str]]:
    program = [sys.executable, str(HERE / "programs" / "copier.py"), bootstrap, COPIERS]
    given = [f"{name}={value}" for name, value in settings.items()]
    return [[*program, str(number), SOURCE, SINK, *given] for number in range(count)]


SILENT_SECONDS = 20.0
"""Whoever says nothing for so long hangs.  librdkafka does: `send_offsets_to_transaction` never returns if the group's
coordinator is gone in that moment (confluentinc/librdkafka#5511, and #5456 for its time-out)."""


class Copiers:
    """Whoever of them has ended, or hangs, is started again by `revive`."""

    def __init__(self, commands: list[list[str]], folder: Path) -> None:
        self._commands, self._folder = commands, folder
        self._workers: list[Worker] = []
        self._before: list[Worker] = []
        """Those that have ended."""
        self.ended = self.hung = 0
        """How many could not go on, and how many hung."""

    def start(self) -> None:
        self._workers = [Worker(command, self._folder) for command in self._commands]

    def revive(self) -> None:
        for number, worker in enumerate(self._workers):
            if not worker.lives:
                self.ended += 1
                self._replace(number)
            elif worker.silent_seconds > SILENT_SECONDS:
                self.hung += 1
                self.kill(number)

    def kill(self, number: int) -> None:
        """As a power switch would; another takes its place."""
        self._workers[number].kill()
        self._replace(number)

    def _replace(self, number: int) -> None:
        self._before.append(self._workers[number])
        self._workers[number] = Worker(self._commands[number], self._folder)

    def said(self, word: str) -> int:
        return sum(each.said(word) for each in (*self._before, *self._workers))

    def stop(self) -> None:
        for each in self._workers:
            each.stop()

    def kill_all(self) -> None:
        for each in self._workers:
            each.kill()

    def log(self) -> str:
        return self._workers[0].log()


def go_on(it: Trial, copiers: Copiers) -> None:
    """Ten more transactions are committed."""
    before = copiers.said("committed")

    def so() -> bool:
        copiers.revive()
        return copiers.said("committed") >= before + 10

    it.until(f"copying goes on; {copiers.log()}", so)


def copied(bootstrap: str, isolation: str = "read_committed") -> list[list[str]]:
    """What is in the output, by partition, up to where such a reader can read now."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "nobody",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(SINK, part, 0) for part in range(PARTITIONS)])
    found: list[list[str]] = [[] for _ in range(PARTITIONS)]
    ended: set[int] = set()
    deadline = time.monotonic() + SECONDS_MAX
    while len(ended) < PARTITIONS:
        assert time.monotonic() < deadline, f"only partitions {ended} have an end"
        message = consumer.poll(1)
        if message is not None and not message.error():
            found[message.partition()].append(message.value().decode())
        elif message is not None and message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:
            ended.add(message.partition())
    consumer.close()
    return found


def check(it: Trial, given: list[list[str]]) -> None:
    """When nothing more is written: everything is there once, in its order, and no transaction is open."""
    it.until("no transaction is open", lambda: open_transactions(it) == [])
    assert differences([[value.upper() for value in part] for part in given], copied(it.cluster.bootstrap)) == []


def differences(expected: list[list[str]], found: list[list[str]]) -> list[str]:
    """Where they part, for each partition: thousands of values are not read by anybody."""
    wrong = []
    for part, (wanted, there) in enumerate(zip(expected, found, strict=True)):
        same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(wanted, there, strict=False)))
        if wanted != there:
            counts = f"{len(wanted)} were written, {len(there)} are there"
            wrong.append(f"partition {part}: {counts}; at {same} {wanted[same : same + 5]}, {there[same : same + 5]}")
    return wrong
