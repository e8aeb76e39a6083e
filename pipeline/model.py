"""What a pipeline's file may hold: one class for each table, one line for each key.

Nothing here knows Spark.  `reading.py` makes these of a file and says what is wrong with it; docs/pipeline.md explains
every key, and a test holds the two together.
"""

from pathlib import Path
from typing import Literal

from msgspec import UNSET, Struct, UnsetType, field


class Table(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of the file."""


class About(Table, frozen=True):
    """[pipeline]"""

    name: str
    checkpoint: str
    trigger: str = "available-now"
    output: Literal["append", "update"] = "append"


class Source(Table, frozen=True):
    """[source]"""

    topics: list[str] = field(default_factory=list)
    pattern: str | None = None
    bootstrap: str | None = None
    start: str = "earliest"
    max_records: int | None = None
    isolation: Literal["read_committed", "read_uncommitted"] = "read_committed"
    allow_data_loss: bool = False
    options: dict[str, str] = field(default_factory=dict)


class Decode(Table, frozen=True):
    """[decode]"""

    format: Literal["json", "avro", "text", "raw"] = "json"
    schema: str | None = None
    schema_file: str | None = None
    framing: Literal["none", "confluent"] = "none"
    key: Literal["text", "raw"] = "text"


class BadRecords(Table, frozen=True):
    """[bad_records]"""

    action: Literal["fail", "drop", "dead-letter"] = "fail"
    topic: str | None = None


class Late(Table, frozen=True):
    """How late rows may come: a watermark."""

    column: str
    delay: str


class Input(Table, frozen=True):
    """[[inputs]]: what a join step joins with; a topic, or files."""

    name: str
    topics: list[str] = field(default_factory=list)
    start: str = "earliest"
    decode: Decode = Decode()
    watermark: Late | None = None
    path: str | None = None
    format: Literal["parquet", "delta", "json", "csv"] = "parquet"
    schema: str | None = None


# -- steps -----------------------------------------------------------------------------------------


class Step(Table, frozen=True, tag_field="type"):
    """[[steps]]"""


class Select(Step, frozen=True, tag="select"):
    columns: dict[str, str]


class Filter(Step, frozen=True, tag="filter"):
    where: str


class Derive(Step, frozen=True, tag="derive"):
    columns: dict[str, str]


class Expect(Step, frozen=True, tag="expect"):
    that: str
    name: str | None = None


class Watermark(Step, frozen=True, tag="watermark"):
    column: str
    delay: str


class Window(Table, frozen=True):
    """Of an aggregate step: fixed or sliding windows by `size`, or sessions by `gap`."""

    column: str
    size: str | None = None
    slide: str | None = None
    gap: str | None = None


class Aggregate(Step, frozen=True, tag="aggregate"):
    values: dict[str, str]
    by: list[str] = field(default_factory=list)
    window: Window | None = None


class Join(Step, frozen=True, tag="join"):
    with_: str = field(name="with")
    on: str
    how: Literal["inner", "left", "right", "full", "left_semi"] = "inner"
    take: dict[str, str] = field(default_factory=dict)


class Dedupe(Step, frozen=True, tag="dedupe"):
    keys: list[str]


AnyStep = Select | Filter | Derive | Expect | Watermark | Aggregate | Join | Dedupe
BY_ROW = Select | Filter | Derive | Expect
"""Steps that look at one record at a time, and so can still send it to the dead letters."""
STATEFUL = Aggregate | Join | Dedupe
"""Steps that may remember something between batches."""


# -- sinks -----------------------------------------------------------------------------------------


class Sink(Table, frozen=True, tag_field="type"):
    """[[sinks]]"""


class Compaction(Table, frozen=True):
    """Of a Parquet sink."""

    files: int = 64
    target_mb: int = 128


class Parquet(Sink, frozen=True, tag="parquet"):
    path: str
    partition_by: list[str] = field(default_factory=list)
    compact: Compaction | bool = Compaction()
    append_to_existing: bool = False


class Delta(Sink, frozen=True, tag="delta"):
    path: str
    partition_by: list[str] = field(default_factory=list)
    key: list[str] = field(default_factory=list)
    delete_when: str | None = None
    append_to_existing: bool = False


class Topic(Sink, frozen=True, tag="topic"):
    topic: str
    key: str | None = None
    value: str | None = None
    options: dict[str, str] = field(default_factory=dict)


class Console(Sink, frozen=True, tag="console"):
    rows: int = 20


AnySink = Parquet | Delta | Topic | Console


# -- the whole -------------------------------------------------------------------------------------


class Spark(Table, frozen=True):
    """[spark]"""

    master: str = "local[*]"
    jars: str | None = None
    conf: dict[str, str] = field(default_factory=dict)


class Pipeline(Table, frozen=True):
    """A file."""

    pipeline: About
    source: Source
    sinks: list[AnySink]
    decode: Decode = Decode()
    bad_records: BadRecords = BadRecords()
    inputs: list[Input] = field(default_factory=list)
    steps: list[AnyStep] = field(default_factory=list)
    spark: Spark = Spark()
    file: Path | UnsetType = UNSET
    """Where it was read from; not a key."""

    @property
    def name(self) -> str:
        return self.pipeline.name

    @property
    def home(self) -> Path:
        """What relative paths are relative to."""
        return self.file.parent if isinstance(self.file, Path) else Path()

    @property
    def stateful(self) -> bool:
        return any(isinstance(step, STATEFUL) for step in self.steps)

    @property
    def checkpoint(self) -> str:
        return self.place(self.pipeline.checkpoint)

    def place(self, path: str) -> str:
        """A path of the file, as Spark is told it: addresses as they are, the rest beside the file."""
        return path if "://" in path else str((self.home / path).resolve())
