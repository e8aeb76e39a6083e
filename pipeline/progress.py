"""How it goes: what Spark reports of a batch, as a line for people and as numbers for Prometheus.  Pure."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

SHOWN_PARTITIONS = 4


@dataclass(frozen=True)
class Batch:
    query: str
    number: int
    rows: int
    rows_per_second: float
    seconds: float
    lag: dict[str, int] = field(default_factory=dict)
    """What is still to be read, by partition."""

    @classmethod
    def of(cls, query: str, progress: Mapping[str, Any]) -> "Batch | None":
        """`progress` is Spark's StreamingQueryProgress, as JSON.  None if it only says that there is nothing to do."""
        took = progress.get("durationMs") or {}
        if "addBatch" not in took:
            return None
        lag: dict[str, int] = {}
        for source in progress.get("sources", ()):
            lag |= behind(source.get("latestOffset"), source.get("endOffset"))
        return cls(
            query,
            int(progress["batchId"]),
            int(progress.get("numInputRows") or 0),
            float(progress.get("processedRowsPerSecond") or 0.0),
            took.get("triggerExecution", 0) / 1000,
            lag,
        )

    def line(self) -> str:
        words = f"{self.query}: batch {self.number}, {self.rows:,} rows in {self.seconds:.1f} s"
        words += f", {self.rows_per_second:,.0f} rows/s, lag {sum(self.lag.values()):,}"
        late = sorted(((each, name) for name, each in self.lag.items() if each), reverse=True)
        if late:
            shown = ", ".join(f"{name} {each:,}" for each, name in late[:SHOWN_PARTITIONS])
            words += f" ({shown}{', ...' if len(late) > SHOWN_PARTITIONS else ''})"
        return words


def behind(latest: Any, end: Any) -> dict[str, int]:
    newest, reached = offsets(latest), offsets(end)
    return {name: max(0, offset - reached.get(name, 0)) for name, offset in newest.items()}


def offsets(said: Any) -> dict[str, int]:
    """Spark gives an object, or its text, or nothing."""
    if isinstance(said, str):
        said = json.loads(said)
    if not isinstance(said, dict):
        return {}
    return {f"{topic}-{index}": int(each) for topic, parts in said.items() for index, each in parts.items()}


@dataclass
class Totals:
    """What has happened since the start, for Prometheus."""

    pipeline: str
    rows: dict[str, int] = field(default_factory=dict)
    batches: dict[str, int] = field(default_factory=dict)
    last: dict[str, Batch] = field(default_factory=dict)

    def add(self, batch: Batch) -> None:
        self.rows[batch.query] = self.rows.get(batch.query, 0) + batch.rows
        self.batches[batch.query] = self.batches.get(batch.query, 0) + 1
        self.last[batch.query] = batch

    def text(self) -> str:
        """In Prometheus' format."""
        lines: list[str] = []
        for name, kind, purpose, samples in self._metrics():
            lines += [f"# HELP {name} {purpose}", f"# TYPE {name} {kind}"]
            for labels, value in samples:
                words = ",".join(f'{key}="{escaped(text)}"' for key, text in labels.items())
                lines.append(
                    f"{name}{{{words}}} {value:g}" if isinstance(value, float) else f"{name}{{{words}}} {value}"
                )
        return "\n".join(lines) + "\n"

    def _metrics(self) -> Iterable[tuple[str, str, str, list[tuple[dict[str, str], float | int]]]]:
        def labels(query: str, **more: str) -> dict[str, str]:
            return {"pipeline": self.pipeline, "query": query, **more}

        last = sorted(self.last.items())
        yield (
            "trilogue_pipeline_rows_total",
            "counter",
            "Records read since the start.",
            [(labels(query), count) for query, count in sorted(self.rows.items())],
        )
        yield (
            "trilogue_pipeline_batches_total",
            "counter",
            "Batches done since the start.",
            [(labels(query), count) for query, count in sorted(self.batches.items())],
        )
        yield (
            "trilogue_pipeline_rows_per_second",
            "gauge",
            "Of the last batch.",
            [(labels(query), batch.rows_per_second) for query, batch in last],
        )
        yield (
            "trilogue_pipeline_batch_seconds",
            "gauge",
            "How long the last batch took.",
            [(labels(query), batch.seconds) for query, batch in last],
        )
        yield (
            "trilogue_pipeline_lag_records",
            "gauge",
            "Offsets still to be read, by partition.",
            [(labels(query, partition=name), lag) for query, batch in last for name, lag in sorted(batch.lag.items())],
        )


def escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
