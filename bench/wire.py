"""Parse and build: plain construct, generated code and kafka-python, medians of one interleaved run.

    python -m bench.wire

All three see the same bytes and answer with the same bytes; that is checked before anything is timed.
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from kafka.protocol.consumer import FetchRequest as KafkaPythonFetchRequest
from kafka.protocol.consumer import FetchResponse as KafkaPythonFetchResponse
from kafka.protocol.metadata import MetadataResponse as KafkaPythonMetadataResponse
from kafka.protocol.producer import ProduceRequest as KafkaPythonProduceRequest
from kafka.protocol.producer import ProduceResponse as KafkaPythonProduceResponse

from trilogue.wire.apis.fetch import FetchRequest, FetchResponse
from trilogue.wire.apis.metadata import MetadataResponse
from trilogue.wire.apis.produce import ProduceRequest, ProduceResponse
from trilogue.wire.codec import interleave
from trilogue.wire.compile import codec
from trilogue.wire.schema import Body
from trilogue.wire.trees import tree

ROUNDS = 31
SECONDS_PER_ROUND = 0.004
RECORDS = bytes(range(256)) * 64  # 16 KiB, the size of a producer's default batch


class Row(NamedTuple):
    title: str
    message: Body
    version: int
    peer: Any  # kafka-python's class for the same message


def rows() -> list[Row]:
    return [
        Row("Produce request, 16 KiB", produce_request(), 9, KafkaPythonProduceRequest),
        Row("Produce response", produce_response(), 9, KafkaPythonProduceResponse),
        Row("Fetch request, 10 partitions", fetch_request(10), 12, KafkaPythonFetchRequest),
        Row("Fetch response, 10 x 16 KiB", fetch_response(10), 12, KafkaPythonFetchResponse),
        Row("Metadata response, 50 partitions", metadata_response(50), 12, KafkaPythonMetadataResponse),
    ]


def produce_request() -> ProduceRequest:
    topic = ProduceRequest.Topic
    return ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=[topic(name="orders", partition_data=[topic.Partition(index=3, records=memoryview(RECORDS))])],
    )


def produce_response() -> ProduceResponse:
    topic = ProduceResponse.Topic
    partition = topic.Partition(index=3, base_offset=123_456_789, log_start_offset=0)
    return ProduceResponse(responses=[topic(name="orders", partition_responses=[partition])])


def fetch_request(partitions: int) -> FetchRequest:
    topic = FetchRequest.Topic
    asked = [
        topic.Partition(partition=i, fetch_offset=i * 1000, partition_max_bytes=1 << 20) for i in range(partitions)
    ]
    return FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=50 << 20,
        session_id=77,
        session_epoch=9,
        topics=[topic(topic="orders", partitions=asked)],
    )


def fetch_response(partitions: int) -> FetchResponse:
    topic = FetchResponse.Topic
    found = [
        topic.Partition(
            partition_index=i,
            high_watermark=i * 1000 + 16,
            last_stable_offset=i * 1000 + 16,
            log_start_offset=0,
            records=memoryview(RECORDS),
        )
        for i in range(partitions)
    ]
    return FetchResponse(session_id=77, responses=[topic(topic="orders", partitions=found)])


def metadata_response(partitions: int) -> MetadataResponse:
    topic = MetadataResponse.Topic
    led = [
        topic.Partition(
            partition_index=i, leader_id=i % 3, leader_epoch=5, replica_nodes=[0, 1, 2], isr_nodes=[0, 1, 2]
        )
        for i in range(partitions)
    ]
    return MetadataResponse(
        brokers=[MetadataResponse.Broker(node_id=i, host=f"broker{i}.local", port=9092) for i in range(3)],
        cluster_id="Fm0KqKQzQqS0gN2gGq1J5A",
        controller_id=1,
        topics=[topic(name="orders", topic_id=bytes(range(16)), partitions=led)],
    )


def ways(row: Row) -> dict[str, Callable[[], Any]]:
    """What is timed: two actions for each of the three."""
    reference, fast = tree(type(row.message), row.version), codec(type(row.message), row.version)
    raw = reference.build(row.message)
    view = memoryview(raw)

    def build() -> list[Any]:
        out = bytearray()
        parts: list[tuple[int, Any]] = []
        fast.encode(row.message, out, parts)
        return interleave(out, parts)

    theirs = row.peer.decode(raw, version=row.version)
    theirs._header = None  # left unset by its decode; its encode looks at it
    assert b"".join(build()) == raw
    assert bytes(theirs.encode(version=row.version)) == raw
    assert fast.decode(view, 0) == (reference.parse(raw), len(raw))
    return {
        "parse construct": lambda: reference.parse(raw),
        "parse generated": lambda: fast.decode(view, 0),
        "parse kafka-python": lambda: row.peer.decode(raw, version=row.version),
        "build construct": lambda: reference.build(row.message),
        "build generated": build,
        "build joined": lambda: b"".join(build()),
        "build kafka-python": lambda: theirs.encode(version=row.version),
    }


def microseconds(action: Callable[[], Any], count: int) -> float:
    begin = time.perf_counter()
    for _ in range(count):
        action()
    return (time.perf_counter() - begin) / count * 1e6


def medians(actions: dict[str, Callable[[], Any]]) -> dict[str, float]:
    counts = {name: max(1, int(SECONDS_PER_ROUND * 1e6 / microseconds(it, 3))) for name, it in actions.items()}
    samples: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(ROUNDS):
        for name, action in actions.items():
            samples[name].append(microseconds(action, counts[name]))
    return {name: statistics.median(values) for name, values in samples.items()}


def main() -> None:
    print(f"Python {sys.version.split()[0]}; microseconds, medians of {ROUNDS} interleaved rounds\n")
    print("construct: our trees.  generated: records above 4 KiB stay where they are; joined: copied into one buffer\n")
    columns = (
        f"{'construct':>10} {'generated':>10} {'joined':>8} {'kafka-py':>10} {'x construct':>12} {'x kafka-py':>11}"
    )
    print(f"{'':34}      {columns}")
    for row in rows():
        took = medians(ways(row))
        for verb in ("parse", "build"):
            slow, fast, peer = (took[f"{verb} {who}"] for who in ("construct", "generated", "kafka-python"))
            joined = f"{took['build joined']:8.2f}" if verb == "build" else " " * 8
            figures = f"{slow:10.1f} {fast:10.2f} {joined} {peer:10.1f} {slow / fast:11.1f}x {peer / fast:10.1f}x"
            print(f"{row.title:34} {verb} {figures}", flush=True)
    print(f"\n{imports()}")


def imports() -> str:
    """What it costs to have the protocol at hand, over a bare interpreter; medians of separate processes."""
    bare = process_ms("pass")
    wire = process_ms("import trilogue.wire.schema, trilogue.wire.frame, trilogue.wire.records") - bare
    everything = process_ms("import trilogue.wire.catalog as c; c.everything()") - bare
    return f"import: {wire:.0f} ms for schemas, frames and records; {everything:.0f} ms with all 79 APIs"


def process_ms(code: str) -> float:
    samples = []
    for _ in range(9):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        samples.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(samples)


if __name__ == "__main__":
    main()
