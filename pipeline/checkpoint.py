"""What a checkpoint remembers: Spark's offsets, and beside them who we are and what its state was made for.

`trilogue.json` is written before the first batch.  Its `id` is the name by which tables know this checkpoint's batches.
"""

import json
import uuid
from dataclasses import asdict, dataclass, field
from typing import Any

import msgspec

from trilogue.pipeline.errors import PipelineError
from trilogue.pipeline.files import Files
from trilogue.pipeline.model import STATEFUL, Pipeline, Watermark

ROWS, DEAD_LETTERS = "rows", "dead-letters"
"""The two queries of a pipeline, each with a checkpoint of its own."""

Offsets = dict[str, dict[int, int]]


@dataclass(frozen=True)
class Identity:
    id: str
    shape: dict[str, Any]
    """What may not change under a checkpoint that has begun."""
    schemas: dict[str, str] = field(default_factory=dict)
    """Schemas that were inferred, by the name of their input; the pipeline's own is under the empty name."""


class Checkpoint:
    def __init__(self, files: Files, path: str) -> None:
        self._files, self.path = files, path
        self._file, self._draft = f"{path}/trilogue.json", f"{path}/trilogue.json.draft"

    @property
    def begun(self) -> bool:
        return bool(self._offset_files(ROWS))

    def identity(self) -> Identity | None:
        if self._files.exists(self._file):
            return Identity(**json.loads(self._files.read(self._file)))
        # A writer that died before the last rename; one that died earlier has left half a draft, or none.
        try:
            return Identity(**json.loads(self._files.read(self._draft))) if self._files.exists(self._draft) else None
        except (ValueError, OSError):
            return None

    def write(self, identity: Identity) -> None:
        self._files.write(self._draft, json.dumps(asdict(identity), indent=2))
        self._files.delete(self._file)
        self._files.rename(self._draft, self._file)

    def place(self, query: str) -> str:
        return f"{self.path}/{query}"

    def offsets(self, query: str) -> Offsets:
        """Where the next batch begins, or the one that was under way, as far as Spark has decided it."""
        numbers = self._offset_files(query)
        return parse_offsets(self._files.read(f"{self.place(query)}/offsets/{max(numbers)}")) if numbers else {}

    def resumes_at(self, query: str) -> Offsets:
        """Where reading goes on: what is after the last batch that Spark knows as done."""
        done = [int(name) for name in self._files.names(f"{self.place(query)}/commits") if name.isdecimal()]
        if not done or not self._files.exists(f"{self.place(query)}/offsets/{max(done)}"):
            return {}
        return parse_offsets(self._files.read(f"{self.place(query)}/offsets/{max(done)}"))

    def _offset_files(self, query: str) -> list[int]:
        return [int(name) for name in self._files.names(f"{self.place(query)}/offsets") if name.isdecimal()]


def parse_offsets(text: str) -> Offsets:
    """Spark's file: a version, a line about the batch, and a line for each source; `-` where it has nothing yet."""
    version, _, *sources = text.strip().split("\n")
    if version != "v1":
        raise PipelineError(f"the checkpoint's offsets are of version {version}, and we know v1")
    found: Offsets = {}
    for line in sources:
        if line != "-":
            for topic, partitions in json.loads(line).items():
                found[topic] = {int(index): offset for index, offset in partitions.items()}
    return found


def shape(pipeline: Pipeline) -> dict[str, Any]:
    """In words of the file.  Filters, columns, expectations and sinks may change; what state was made of may not."""
    stateful = [step for step in pipeline.steps if isinstance(step, STATEFUL | Watermark)] if pipeline.stateful else []
    said: dict[str, Any] = msgspec.to_builtins(
        {
            "[source] topics": pipeline.source.topics,
            "[source] pattern": pipeline.source.pattern,
            "[pipeline] output": pipeline.pipeline.output,
            "[[inputs]] of topics": [each.topics for each in pipeline.inputs if each.topics],
            "[[steps]] that remember": stateful,
        }
    )
    return said


def settle(checkpoint: Checkpoint, pipeline: Pipeline) -> Identity:
    """Who this checkpoint is: what it says itself, or somebody new.  Refuses one that was made for something else."""
    wanted = shape(pipeline)
    known = checkpoint.identity()
    if known is None:
        if checkpoint.begun:
            raise PipelineError(f"{checkpoint.path}: a checkpoint of another program; take another folder")
        return Identity(str(uuid.uuid4()), wanted)
    changed = [key for key, value in wanted.items() if known.shape.get(key) != value]
    if changed and checkpoint.begun:
        raise PipelineError(
            f"{checkpoint.path}: the checkpoint was made for another {', '.join(changed)}; "
            "undo the change, or take a new checkpoint and a new table"
        )
    return Identity(known.id, wanted, known.schemas)
