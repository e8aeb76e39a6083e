"""A topic into a Parquet table, by the same pipeline on the same Spark: from ours, and from Apache Kafka.

python -m bench.pipeline [--records 5000000] [--rounds 3]

Rounds alternate in order, after one on each broker that does not count.  A round is everything from the look at the
topics to the end of the query; the table is counted afterwards.  Records are JSON of about 80 bytes, in two partitions:
a block of them is sent again and again, which spares the time to make millions, and costs the reader the same.
"""

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from bench.brokers import Apache, Ours, running
from trilogue.client.blocking import Blocking, run
from trilogue.client.client import Client
from trilogue.client.dialogue import check
from trilogue.client.world import Address
from trilogue.pipeline.examples.sending import NewTopic, create
from trilogue.pipeline.model import Pipeline
from trilogue.pipeline.reading import parse
from trilogue.pipeline.run import run_on
from trilogue.pipeline.spark import session
from trilogue.wire.apis.produce import ProduceRequest, ProduceResponse
from trilogue.wire.records import Record, build

TOPIC, PARTITIONS = "bench", 2
BLOCK_RECORDS = 5000


def pipeline(folder: Path, bootstrap: str, topic: str) -> Pipeline:
    said = {
        "pipeline": {"name": "bench", "checkpoint": "checkpoint"},
        "source": {"topics": [topic], "bootstrap": bootstrap, "max_records": 1_000_000},
        "decode": {"schema": "id BIGINT NOT NULL, user STRING, amount DOUBLE, at TIMESTAMP"},
        "steps": [{"type": "derive", "columns": {"date": "to_date(at)"}}],
        "sinks": [{"type": "parquet", "path": "table", "partition_by": ["date"]}],
        "spark": {"master": "local[2]"},
    }
    return parse(said, folder / "bench.toml")


@contextmanager
def spark_session(folder: Path) -> Iterator[Any]:
    """Spark as pipelines have it."""
    made = session(pipeline(folder, "", TOPIC))
    try:
        yield made
    finally:
        made.stop()


def block() -> bytes:
    text = '{"id": %d, "user": "user-%05d", "amount": %d.%02d, "at": "2026-03-%02dT12:%02d:%02dZ"}'
    values = (text % (i, i * 7 % 99991, i % 300, i % 100, 1 + i % 3, i % 60, i % 59) for i in range(BLOCK_RECORDS))
    now = time.time_ns() // 1_000_000
    return bytes(build(Record(i, now, None, value.encode(), ()) for i, value in enumerate(values)))


def fill(bootstrap: str, topic: str, records: int) -> None:
    data = block()

    async def work() -> None:
        async with Client([Address.parse(bootstrap)], Blocking()) as client:
            await create(client, topic, NewTopic(PARTITIONS))
            for number in range(records // BLOCK_RECORDS):
                index = number % PARTITIONS
                part = ProduceRequest.Topic.Partition(index=index, records=data)
                asked = ProduceRequest.Topic(name=topic, partition_data=[part])
                request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[asked])
                await client.persist(partial(produce, client, index, request))

    run(work())


async def produce(client: Client, index: int, request: ProduceRequest) -> None:
    answer = await client.call_leader(request.topic_data[0].name, index, request, ProduceResponse, cap=12)
    check(answer.responses[0].partition_responses[0].error_code)


def measure(spark: Any, bootstrap: str, topic: str, records: int, scratch: Path) -> float:
    """Rows a second."""
    folder = scratch / "run"
    began = time.monotonic()
    run_on(spark, pipeline(folder, bootstrap, topic), say=lambda _: None)
    seconds = time.monotonic() - began
    found = spark.read.parquet(str(folder / "table")).count()
    assert found == records, f"{found} rows of {records} records"
    shutil.rmtree(folder)
    return records / seconds


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    records = options.records // BLOCK_RECORDS * BLOCK_RECORDS
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        scratch = Path(folder)
        running_ones = [stack.enter_context(running(kind(scratch / kind.__name__))) for kind in (Ours, Apache)]
        brokers = {each.name: each.bootstrap for each in running_ones}
        spark = stack.enter_context(spark_session(scratch))
        for bootstrap in brokers.values():
            fill(bootstrap, TOPIC, records)
        # Java needs millions of rows until it is warm: whoever came first would lose.
        for bootstrap in brokers.values():
            measure(spark, bootstrap, TOPIC, records, scratch)
        rates: dict[str, list[float]] = {name: [] for name in brokers}
        for number in range(options.rounds):
            for name in list(brokers)[:: 1 if number % 2 == 0 else -1]:
                rates[name].append(measure(spark, brokers[name], TOPIC, records, scratch))
    print(f"{records:,} records into Parquet, load {os.getloadavg()[0]:.1f}")
    for name, found in rates.items():
        print(f"  {name:<14}" + "".join(f"{rate:>12,.0f} rows/s" for rate in found))
    best = [max(found) for found in rates.values()]
    middle = [median(found) for found in rates.values()]
    print(f"  ratio of the best {best[0] / best[1]:.2f}, of the medians {middle[0] / middle[1]:.2f}")


if __name__ == "__main__":
    main()
