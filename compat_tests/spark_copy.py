"""A Spark driver that copies a topic into files, one micro-batch after the other, until it is killed or has all.

Arguments: bootstrap, topic, folder (for checkpoint and output), "forever" or "once".
Says "started" when the query runs; "once" ends when all that was there at its start has been copied.
"""

import sys
from pathlib import Path

from compat_tests.spark import start

A_BATCH = 100
"""Records at most: so there are many batches, and a kill meets one of them."""


def main(bootstrap: str, topic: str, folder: str, how: str) -> None:
    spark = start("copy", Path(folder) / "spark")
    source = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", A_BATCH)
        .load()
    )
    trigger = {"availableNow": True} if how == "once" else {"processingTime": "0 seconds"}
    query = (
        source.selectExpr("CAST(value AS STRING)")
        .writeStream.format("text")
        .option("path", f"{folder}/output")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(**trigger)
        .start()
    )
    print("started", flush=True)
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
