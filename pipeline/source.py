"""Topics as Spark's own Kafka source reads them: the options, and nothing between."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from trilogue.pipeline.model import Input, Pipeline, Source
from trilogue.pipeline.reading import milliseconds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"

FETCHING = {
    # Spark asks for both ends of a partition after every poll: with a consumer's usual 500 records, most of the talk.
    "kafka.max.poll.records": "10000",
    "kafka.max.partition.fetch.bytes": str(4 << 20),
}
"""What suits a reader of whole topics; [source] options has the last word."""


def bootstrap(source: Source) -> str:
    return source.bootstrap or DEFAULT_BOOTSTRAP


def connection(source: Source) -> dict[str, str]:
    """How to reach the brokers: for the source, for sinks, and for dead letters."""
    security = {name: value for name, value in source.options.items() if name.startswith("kafka.")}
    return {**security, "kafka.bootstrap.servers": bootstrap(source)}


def subscription(topics: Sequence[str], pattern: str | None) -> dict[str, str]:
    return {"subscribePattern": pattern} if pattern else {"subscribe": ",".join(topics)}


def starting(said: str) -> dict[str, str]:
    if said in ("earliest", "latest"):
        return {"startingOffsets": said}
    return {"startingTimestamp": str(milliseconds(said)), "startingOffsetsByTimestampStrategy": "latest"}


def options(source: Source) -> dict[str, str]:
    limit = {} if source.max_records is None else {"maxOffsetsPerTrigger": str(source.max_records)}
    return {
        **FETCHING,
        **source.options,
        **connection(source),
        **subscription(source.topics, source.pattern),
        **starting(source.start),
        **limit,
        "kafka.isolation.level": source.isolation,
        "failOnDataLoss": str(not source.allow_data_loss).lower(),
        "includeHeaders": "true",
    }


def stream(session: "SparkSession", pipeline: Pipeline) -> "DataFrame":
    return session.readStream.format("kafka").options(**options(pipeline.source)).load()


def input_stream(session: "SparkSession", pipeline: Pipeline, found: Input) -> "DataFrame":
    """Another topic, of the same brokers and under the same limits."""
    wanted = {**options(pipeline.source), **starting(found.start)}
    if "startingOffsets" in starting(found.start):
        wanted.pop("startingTimestamp", None)
    wanted = {name: value for name, value in wanted.items() if not name.startswith("subscribe")}
    return session.readStream.format("kafka").options(**wanted, **subscription(found.topics, None)).load()


def batch(session: "SparkSession", source: Source, ranges: Mapping[str, Mapping[int, tuple[int, int]]]) -> "DataFrame":
    """What lies between offsets, by topic and partition, as a table."""
    from msgspec.json import encode

    first = {topic: {str(index): span[0] for index, span in parts.items()} for topic, parts in ranges.items()}
    last = {topic: {str(index): span[1] for index, span in parts.items()} for topic, parts in ranges.items()}
    wanted = {
        **{name: value for name, value in source.options.items() if name.startswith("kafka.")},
        **connection(source),
        "assign": encode({topic: sorted(parts) for topic, parts in ranges.items()}).decode(),
        "startingOffsets": encode(first).decode(),
        "endingOffsets": encode(last).decode(),
        "kafka.isolation.level": source.isolation,
        "includeHeaders": "true",
        # Asked for a moment ago: what retention has taken since is no reason to stop.
        "failOnDataLoss": "false",
    }
    return session.read.format("kafka").options(**wanted).load()
