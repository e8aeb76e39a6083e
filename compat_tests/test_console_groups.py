"""Java's console consumer in groups of both protocols, one member killed: what it had is the other's soon after."""

import re
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import apache
import confluent_kafka
import jars
import pytest

from compat_tests.brokers import BEAT_SECONDS, SESSION_SECONDS
from compat_tests.running import missing_tool
from compat_tests.test_groups import new_topic, tell_rebalance

PARTITIONS = 4
PATIENCE_SECONDS = 60
LATELY_SECONDS = 1.0


class Console:
    """A member.  What it has been given is where its records come from."""

    def __init__(self, bootstrap: str, topic: str, group: str, protocol: str) -> None:
        properties = {"group.protocol": protocol, "fetch.max.wait.ms": "50"}
        if protocol == "classic":
            properties |= {
                "session.timeout.ms": str(SESSION_SECONDS * 1000),
                "heartbeat.interval.ms": str(int(BEAT_SECONDS * 1000)),
            }
        told = [word for pair in properties.items() for word in ("--command-property", "=".join(pair))]
        command = apache.command(
            "org.apache.kafka.tools.consumer.ConsoleConsumer",
            *("--bootstrap-server", bootstrap, "--topic", topic, "--group", group),
            *("--formatter-property", "print.partition=true"),
            *told,
        )
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self._last: dict[int, float] = {}
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if found := re.match(r"Partition:(\d+)", line):
                self._last[int(found[1])] = time.monotonic()

    def reads(self) -> set[int]:
        """The partitions that it has had records of lately."""
        now = time.monotonic()
        return {index for index, last in list(self._last.items()) if now - last < LATELY_SECONDS}

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()


@contextmanager
def flowing(bootstrap: str, topic: str) -> Iterator[None]:
    """A record in every partition, twenty times a second."""
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    stops = threading.Event()

    def run() -> None:
        while not stops.wait(0.05):
            for index in range(PARTITIONS):
                producer.produce(topic, b"x", partition=index)
            producer.poll(0)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stops.set()
        thread.join()
        producer.flush(20)


@pytest.mark.java
@pytest.mark.slow
@pytest.mark.parametrize(
    "protocols",
    [
        ("classic", "classic"),
        ("consumer", "consumer"),
        ("classic", "consumer"),  # a group of both (KIP-848), which is a classic one again when the second is gone
    ],
    ids=" and ".join,
)
def test_what_a_killed_console_consumer_had_is_anothers_when_its_session_is_over(
    quick_bootstrap: str, protocols: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    topic, group = new_topic(quick_bootstrap, PARTITIONS), f"console-{uuid.uuid4().hex[:8]}"
    everything = set(range(PARTITIONS))
    with flowing(quick_bootstrap, topic), ExitStack() as living:
        members = []
        for protocol in protocols:
            try:
                members.append(Console(quick_bootstrap, topic, group, protocol))
            except jars.Missing as missing:
                missing_tool(missing)
            living.callback(members[-1].kill)
        survivor, victim = members

        def wait_until(who: list[Console]) -> None:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while True:
                parts = [each.reads() for each in who]
                if set().union(*parts) == everything and sum(map(len, parts)) == PARTITIONS and all(parts):
                    return
                assert time.monotonic() < deadline, parts
                time.sleep(0.02)

        wait_until(members)
        victim.kill()
        begin = time.monotonic()
        wait_until([survivor])
        tell_rebalance(f"Java's console consumer, {' and '.join(protocols)}", time.monotonic() - begin, capsys)
