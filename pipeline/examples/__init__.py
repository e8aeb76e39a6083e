"""Three pipelines to begin with, each with data to run it on and a picture of what comes out.

orders   orders to daily revenue: duplicates, bad records, windows by event time, Parquet
clicks   a click stream to sessions: session windows, Parquet
changes  a change log to a table of the current state: a compacted topic, tombstones, Delta Lake

    python -m trilogue.pipeline.examples orders --bootstrap 127.0.0.1:9092      makes the topics and fills them
    trilogue pipeline run pipeline/examples/orders/pipeline.toml
    python -m trilogue.pipeline.examples.orders.plot orders.png

`make examples` does all of that on a broker of its own, and draws the pictures of docs/pipeline.md.
"""
