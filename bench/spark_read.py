"""Spark's batch read of a topic, with the stock connector: rows/s."""

import time
from typing import Any

from bench import native
from bench.brokers import Broker
from bench.trial import Figure, Trial
from bench.trials import fresh

ROWS = 1_000_000
RECORD_BYTES = 200
PARTITIONS = 4


def trial(spark: Any) -> Trial:
    topics: dict[str, str] = {}

    def prepare(broker: Broker) -> None:
        topics[broker.name] = topic = fresh(broker, PARTITIONS)
        settings = ["batch.size=131072", "batch.num.messages=100000", "linger.ms=5", "acks=1"]
        count = ROWS - PARTITIONS
        native.run("driver", "produce", broker.bootstrap, topic, PARTITIONS, count, RECORD_BYTES, *settings)

    def run(broker: Broker) -> dict[str, float]:
        rows = (
            spark.read.format("kafka")
            .option("kafka.bootstrap.servers", broker.bootstrap)
            .option("subscribe", topics[broker.name])
            .option("startingOffsets", "earliest")
            .option("endingOffsets", "latest")
            .load()
        )
        begun = time.perf_counter()
        # The values are looked at: a bare count could leave them unread.
        found = rows.selectExpr("count(*) AS n", "sum(length(value)) AS bytes").first()
        seconds = time.perf_counter() - begun
        assert (found["n"], found["bytes"]) == (ROWS, ROWS * RECORD_BYTES), found
        return {"rate": ROWS / seconds}

    return Trial(
        "Spark",
        f"batch read, {RECORD_BYTES} B, {PARTITIONS} partitions",
        (Figure("rate", "rows/s", True, 1.0),),
        run,
        prepare,
        lambda broker: broker.delete(topics[broker.name]),
    )
