"""One client attacks, another asks for ApiVersions every 20 ms: how long does it wait, and how much memory goes?

python -m bench.hostile                                     this trilogue, and Apache Kafka
python -m bench.hostile ../before/.venv/bin/trilogue        that one as well
python -m bench.hostile --only bombs                        rows whose names contain a word

What is aimed at, on two cores: p99 at most 20 ms, no wait longer than 100 ms, at most 64 MiB more memory.
"""

import argparse
import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench import attacks, brokers
from bench.attacks import Attack
from bench.brokers import Apache, Broker, Ours, running

P99_MS, LONGEST_MS, MEMORY_MIB = 20.0, 100.0, 64.0
QUIET_SECONDS = 1.0
"""Before the attack and after it; what is seen then counts, too."""

PINGING = """
import json, socket, statistics, sys, threading, time
port, request = int(sys.argv[1]), bytes.fromhex(sys.argv[2])
sock = socket.create_connection(("127.0.0.1", port), timeout=120)
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
took, due = [], time.monotonic()
while not ended.is_set():
    begun = time.monotonic()
    sock.sendall(request)
    size = int.from_bytes(sock.recv(4, socket.MSG_WAITALL), "big")
    sock.recv(size, socket.MSG_WAITALL)
    took.append((time.monotonic() - begun) * 1000)
    due = max(due + 0.02, time.monotonic())
    time.sleep(max(0, due - time.monotonic()))
took.sort()
print(json.dumps({"p50": statistics.median(took), "p99": took[int(len(took) * 0.99)], "longest": took[-1]}))
"""


class Seen(NamedTuple):
    """What the other client saw, in milliseconds, and what it took."""

    p50: float
    p99: float
    longest: float
    memory: float
    seconds: float
    told: str

    @property
    def good(self) -> bool:
        return self.p99 <= P99_MS and self.longest <= LONGEST_MS and self.memory <= MEMORY_MIB


@contextlib.contextmanager
def memory_watched(broker: Broker) -> Iterator[list[float]]:
    """The most that it has in use from now on, in MiB over what it has now."""
    ended = threading.Event()
    before = broker.rss_mib()
    most = [0.0]

    def watch() -> None:
        while not ended.wait(0.02):
            with contextlib.suppress(OSError, AssertionError):  # it may have died
                most[0] = max(most[0], broker.rss_mib() - before)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield most
    finally:
        ended.set()
        thread.join()


def suffer(broker: Broker, attack: Attack) -> Seen:
    prepared = attack.prepare(broker)
    command = [sys.executable, "-c", PINGING, str(broker.port), brokers.API_VERSIONS.hex()]
    ping = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        time.sleep(QUIET_SECONDS)
        with memory_watched(broker) as most:
            begun = time.monotonic()
            try:
                told = attack.run(broker, prepared)
            except (OSError, AssertionError, EOFError) as error:
                told = f"{type(error).__name__}: {error}"
            seconds = time.monotonic() - begun
            time.sleep(QUIET_SECONDS)
        found = json.loads(ping.communicate(timeout=180)[0])
    finally:
        ping.kill()
    return Seen(found["p50"], found["p99"], found["longest"], most[0], seconds, told)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.hostile", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", nargs="?", help="the `trilogue` of another environment")
    parser.add_argument("--only", metavar="WORD", default="", help="rows whose names contain this")
    parser.add_argument("--without-kafka", action="store_true", help="leave Apache Kafka out")
    return parser.parse_args()


def main() -> int:
    given = arguments()
    folder = Path(tempfile.mkdtemp(prefix="hostile-"))
    print("| attack | broker | p50 ms | p99 ms | longest ms | memory MiB | seconds | what it was told |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    missed = 0
    try:
        for number, attack in enumerate(attacks.ALL):
            if given.only not in attack.name:
                continue
            for broker in rivals(folder / str(number), given):
                # Each has a broker of its own: what one leaves behind must not be counted for the next.
                with running(broker):
                    seen = suffer(broker, attack)
                missed += broker.name == "now" and not seen.good
                figures = (
                    f"{seen.p50:.1f} | {seen.p99:.1f} | {seen.longest:.0f} | {seen.memory:+.0f} | {seen.seconds:.1f}"
                )
                print(f"| {attack.name} | {broker.name} | {figures} | {seen.told} |", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"\n{missed} rows beyond {P99_MS:g} ms, {LONGEST_MS:g} ms or {MEMORY_MIB:g} MiB")
    return 0


def rivals(folder: Path, given: argparse.Namespace) -> Iterator[Ours | Apache]:
    if given.before:
        yield Ours(folder / "before", name="before", command=given.before)
    yield Ours(folder / "now", name="now")
    if not given.without_kafka:
        yield Apache(folder / "kafka")


if __name__ == "__main__":
    sys.exit(main())
