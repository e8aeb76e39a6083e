"""The benchmarks that need only a client: producing, consuming, waiting for answers, small requests."""

import itertools
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import apache

from bench import native
from bench.brokers import Broker
from bench.trial import Figure, Trial
from trilogue.wire.apis.produce import ProduceRequest, ProduceResponse
from trilogue.wire.frame import read_response, write_request
from trilogue.wire.records import Record, build

KIB, MIB = 1 << 10, 1 << 20
NOW_MS = 1_700_000_000_000
PRODUCE_BYTES = 200 * MIB
CONSUME_BYTES = 400 * MIB
REPLAY_SECONDS = 2.0
PRODUCE_VERSION = 9

_number = itertools.count()


def fresh(broker: Broker, partitions: int = 1) -> str:
    name = f"bench-{next(_number)}"
    broker.create(name, partitions, max_message_bytes=str(8 * MIB))
    return name


def size_text(size: int) -> str:
    return f"{size // MIB} MiB" if size >= MIB else f"{size // KIB} KiB" if size >= KIB else f"{size} B"


def spent(broker: Broker, action: Callable[[], dict[str, Any]]) -> tuple[dict[str, Any], float]:
    """What the action answers, and the CPU seconds that the broker used meanwhile."""
    before = broker.cpu_seconds()
    answer = action()
    return answer, broker.cpu_seconds() - before


# ---- producing -------------------------------------------------------------------------------------------


def produce(
    record: int,
    batch: int,
    *,
    acks: str = "1",
    partitions: int = 1,
    codec: str = "none",
    idempotent: bool = False,
    target: float | None = None,
    cpu_target: float | None = None,
    total: int = PRODUCE_BYTES,
) -> Trial:
    count = total // record
    settings = [
        f"batch.size={batch}",
        "batch.num.messages=1000000",
        f"message.max.bytes={max(2 * batch, MIB)}",
        "linger.ms=5",
        f"acks={'all' if idempotent else acks}",
        f"compression.type={codec}",
        f"enable.idempotence={str(idempotent).lower()}",
    ]
    words = [size_text(record), f"{size_text(batch)} batches"]
    words += ["acks=all"] * (acks == "all") + [f"{partitions} partitions"] * (partitions > 1)
    words += [codec] * (codec != "none") + ["idempotent"] * idempotent

    def run(broker: Broker) -> dict[str, float]:
        topic = fresh(broker, partitions)
        told, cpu = spent(
            broker,
            lambda: native.run("driver", "produce", broker.bootstrap, topic, partitions, count, record, *settings),
        )
        broker.delete(topic)
        return {"rate": count * record / told["seconds"] / 1e6, "cpu": cpu / count * 1e6}

    figures = (
        Figure("rate", "MB/s", True, target),
        Figure("cpu", "broker CPU-s per million", False, cpu_target),
    )
    return Trial("produce", ", ".join(words), figures, run)


def produces() -> Iterator[Trial]:
    yield produce(KIB, 16 * KIB, target=1.8, cpu_target=0.5)
    yield produce(KIB, 128 * KIB, target=1.3, cpu_target=0.5)
    yield produce(KIB, MIB, target=1.3, cpu_target=0.5)
    yield produce(100, 16 * KIB, target=1.8, cpu_target=0.5)
    yield produce(100, 128 * KIB, target=1.3, cpu_target=0.5)
    yield produce(KIB, 16 * KIB, acks="all", target=1.8, cpu_target=0.5)
    yield produce(KIB, 16 * KIB, partitions=12, target=1.8, cpu_target=0.5)
    yield produce(KIB, 128 * KIB, partitions=12, target=1.3, cpu_target=0.5)
    yield produce(KIB, 16 * KIB, codec="zstd", target=1.8, cpu_target=0.5)
    yield produce(KIB, 16 * KIB, idempotent=True, target=1.8, cpu_target=0.5)
    yield produce(KIB, MIB, idempotent=True, partitions=12, target=1.3, cpu_target=0.5)


# ---- consuming -------------------------------------------------------------------------------------------


def consume(partitions: int) -> Trial:
    count = CONSUME_BYTES // KIB
    topics: dict[str, str] = {}

    def prepare(broker: Broker) -> None:
        topics[broker.name] = topic = fresh(broker, partitions)
        settings = ["batch.size=131072", "batch.num.messages=1000000", "linger.ms=5", "acks=1"]
        native.run("driver", "produce", broker.bootstrap, topic, partitions, count - partitions, KIB, *settings)

    def run(broker: Broker) -> dict[str, float]:
        topic = topics[broker.name]
        told, cpu = spent(
            broker, lambda: native.run("driver", "consume", broker.bootstrap, topic, partitions, count, 0)
        )
        return {"rate": told["bytes"] / told["seconds"] / 1e6, "cpu": cpu / count * 1e6}

    figures = (Figure("rate", "MB/s", True, 1.1), Figure("cpu", "broker CPU-s per million", False, 0.7))
    name = "from the beginning, 1 KiB" + (f", {partitions} partitions" if partitions > 1 else "")
    return Trial("consume", name, figures, run, prepare, lambda broker: broker.delete(topics[broker.name]))


def tail(name: str, section: str, rate: float, count: int, figures: tuple[Figure, ...], *settings: str) -> Trial:
    """Produced at a rate, and consumed at once by another connection of the same process."""

    def run(broker: Broker) -> dict[str, float]:
        topic = fresh(broker)
        told = native.run("driver", "tail", broker.bootstrap, topic, 1, count, KIB, f"rate={rate:.0f}", *settings)
        broker.delete(topic)
        told["rate"] = count / told["seconds"]
        return told

    return Trial(section, name, figures, run, alone=section == "latency")


def consumes() -> Iterator[Trial]:
    yield consume(1)
    yield consume(12)
    yield tail(
        "tailing, as fast as it is produced, 1 KiB",
        "consume",
        1e9,
        200_000,
        (Figure("rate", "records/s", True, 1.1),),
        "acks=1",
        "linger.ms=5",
        "batch.size=131072",
    )


# ---- waiting ---------------------------------------------------------------------------------------------

PERCENTILES = (
    Figure("p50_us", "us, p50", False),
    Figure("p99_us", "us, p99", False),
    Figure("p999_us", "us, p99.9", False),
)
ACK_TARGETS = {"p50_us": 1.0, "p99_us": 0.8}


def acknowledgement(
    count: int = 5000, *, alone: bool = True, acks: str = "1", targets: Mapping[str, float] = ACK_TARGETS
) -> Trial:
    def run(broker: Broker) -> dict[str, float]:
        topic = fresh(broker)
        settings = [f"acks={acks}", "linger.ms=0"]
        told = native.run("driver", "acks", broker.bootstrap, topic, 1, count, KIB, *settings)
        broker.delete(topic)
        return told

    figures = tuple(each._replace(target=targets.get(each.key)) for each in PERCENTILES)
    name = "acknowledgement, one 1 KiB record in flight" + ", acks=all" * (acks == "all")
    return Trial("latency", name, figures, run, alone=alone)


def latencies() -> Iterator[Trial]:
    yield acknowledgement()
    yield tail("end to end, 1,000 records/s", "latency", 1000, 3000, PERCENTILES, "acks=1", "linger.ms=0")
    yield tail("end to end, 20,000 records/s", "latency", 20_000, 40_000, PERCENTILES, "acks=1", "linger.ms=1")


# ---- small requests, and the broker's ceiling ------------------------------------------------------------


def frame(topic: str, records: int, size: int) -> bytes:
    """A whole Produce request with one batch."""
    raw = bytes(build([Record(number, NOW_MS, None, os.urandom(size)) for number in range(records)]))
    data = ProduceRequest.Topic.Partition(index=0, records=raw)
    topics = [ProduceRequest.Topic(name=topic, partition_data=[data])]
    request = ProduceRequest(acks=1, timeout_ms=30_000, topic_data=topics)
    return b"".join(bytes(part) for part in write_request(request, PRODUCE_VERSION, 1, "bench"))


def replay(
    name: str,
    connections: int,
    in_flight: int,
    records: int,
    size: int,
    target: float | None,
    seconds: float = REPLAY_SECONDS,
) -> Trial:
    """The same frame again and again, sent from C: the driver is a fraction of a core."""

    def run(broker: Broker) -> dict[str, float]:
        topic = fresh(broker)
        request = frame(topic, records, size)
        answer = broker.exchange(request)
        told = read_response(memoryview(answer), ProduceResponse, PRODUCE_VERSION)[1]
        assert told.responses[0].partition_responses[0].error_code == 0, told
        told, cpu = spent(
            broker,
            lambda: native.run("replay", broker.port, connections, in_flight, seconds, len(answer) + 4, stdin=request),
        )
        broker.delete(topic)
        return {**told, "cpu": cpu / told["total"] * 1e6, "mb": told["per_second"] * records * size / 1e6}

    if records == 1:
        rate = Figure("per_second", "requests/s", True, target)
        return Trial("requests", name, (rate, Figure("cpu", "broker CPU-us per request", False)), run)
    return Trial("ceiling", name, (Figure("mb", "MB/s", True), Figure("cpu", "broker CPU-us per request", False)), run)


def small_requests(seconds: float = REPLAY_SECONDS) -> Iterator[Trial]:
    yield replay("one 100-byte record each, 1 connection x5", 1, 5, 1, 100, 2.5, seconds)
    yield replay("one 100-byte record each, 50 connections x1", 50, 1, 1, 100, 1.0, seconds)
    yield replay("one 100-byte record each, 50 connections x5", 50, 5, 1, 100, 1.1, seconds)


def requests() -> Iterator[Trial]:
    yield from small_requests()
    yield replay("recorded frames of 16 KiB, 1 connection x5", 1, 5, 15, KIB, None)
    yield replay("recorded frames of 128 KiB, 1 connection x5", 1, 5, 124, KIB, None)
    yield replay("recorded frames of 1 MiB, 1 connection x5", 1, 5, 1000, KIB, None)


# ---- Apache Kafka's own tools ----------------------------------------------------------------------------

TOOL_RECORDS = 200_000
TOOL_SECONDS = 180


def tool(main: str, *arguments: str) -> str:
    command = apache.command(main, *arguments, options=("-Xmx512m",))
    done = subprocess.run(command, capture_output=True, text=True, timeout=TOOL_SECONDS, check=True)
    return done.stdout


def tools() -> Iterator[Trial]:
    def run(broker: Broker) -> dict[str, float]:
        topic = fresh(broker)
        said = tool(
            "org.apache.kafka.tools.ProducerPerformance",
            *("--topic", topic, "--num-records", str(TOOL_RECORDS), "--record-size", "1024", "--throughput", "-1"),
            *(
                "--producer-props",
                f"bootstrap.servers={broker.bootstrap}",
                "acks=1",
                "batch.size=131072",
                "linger.ms=5",
            ),
        )
        last = said.strip().splitlines()[-1]
        produced = float(last.partition("records/sec (")[2].partition(" MB/sec")[0])
        said = tool(
            "org.apache.kafka.tools.ConsumerPerformance",
            *("--topic", topic, "--bootstrap-server", broker.bootstrap),
            *(COUNT_OPTION, str(TOOL_RECORDS), "--timeout", "60000"),
        )
        lines = [line for line in said.strip().splitlines() if ", " in line]
        titles, values = lines[-2].split(", "), lines[-1].split(", ")
        broker.delete(topic)
        return {"produced": produced, "consumed": float(values[titles.index("fetch.MB.sec")])}

    yield Trial(
        "tools",
        "producer and consumer performance tools (Java), 1 KiB",
        (Figure("produced", "MB/s produced"), Figure("consumed", "MB/s consumed")),
        run,
    )


COUNT_OPTION = "--num-records"


def all_trials() -> Iterator[Trial]:
    yield from produces()
    yield from consumes()
    yield from latencies()
    yield from requests()
    yield from tools()
