"""What Spark says of a batch, in a line and for Prometheus."""

import urllib.error
import urllib.request

import pytest

from trilogue.pipeline.metrics import serving
from trilogue.pipeline.progress import Batch, Totals

SAID = {
    "batchId": 12,
    "numInputRows": 4000,
    "processedRowsPerSecond": 1999.6,
    "durationMs": {"addBatch": 1800, "triggerExecution": 2000},
    "sources": [
        {"endOffset": {"orders": {"0": 100, "1": 50}}, "latestOffset": {"orders": {"0": 100, "1": 1250}}},
        {"endOffset": '{"payments":{"0":7}}', "latestOffset": '{"payments":{"0":9}}'},
        {"endOffset": None, "latestOffset": None},
    ],
}
LAG = {"orders-0": 0, "orders-1": 1200, "payments-0": 2}


def test_a_batch_of_sparks():
    assert Batch.of("rows", {**SAID, "durationMs": {"triggerExecution": 2}}) is None  # it found nothing to do
    assert Batch.of("rows", SAID) == Batch("rows", 12, 4000, 1999.6, 2.0, LAG)


def test_its_line():
    line = Batch.of("rows", SAID).line()

    assert line == "rows: batch 12, 4,000 rows in 2.0 s, 2,000 rows/s, lag 1,202 (orders-1 1,200, payments-0 2)"


def test_many_late_partitions_are_not_all_named():
    batch = Batch("rows", 1, 0, 0.0, 1.0, {f"t-{i}": i for i in range(7)})

    assert batch.line().endswith("lag 21 (t-6 6, t-5 5, t-4 4, t-3 3, ...)")


def test_prometheus_page():
    totals = Totals('a"b')
    totals.add(Batch("rows", 0, 10, 5.0, 2.0, {"t-0": 3}))
    totals.add(Batch("rows", 1, 20, 8.0, 2.5, {"t-0": 0}))

    with serving("127.0.0.1", 0, totals.text) as port:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            page = answer.read().decode()
            kind = answer.headers["Content-Type"]
        with pytest.raises(urllib.error.HTTPError, match="404") as refused:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/other", timeout=10)
        refused.value.close()

    assert kind.startswith("text/plain; version=0.0.4")
    who = 'pipeline="a\\"b",query="rows"'
    assert [line for line in page.splitlines() if not line.startswith("#")] == [
        f"trilogue_pipeline_rows_total{{{who}}} 30",
        f"trilogue_pipeline_batches_total{{{who}}} 2",
        f"trilogue_pipeline_rows_per_second{{{who}}} 8",
        f"trilogue_pipeline_batch_seconds{{{who}}} 2.5",
        f'trilogue_pipeline_lag_records{{{who},partition="t-0"}} 0',
    ]
