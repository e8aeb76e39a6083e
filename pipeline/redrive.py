"""Dead letters back into the topics they came from, each once.

How far we are is a group's offset in the dead letters' topic, moved in the transaction that writes the records: whoever
is killed in between has done neither.  Spark may have written a dead letter twice; the second is known by where its
record came from.
"""

from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field

from trilogue.client.client import Client
from trilogue.client.offsets import EARLIEST, LATEST, offsets
from trilogue.client.reader import Found, Reader
from trilogue.client.transaction import Transactions
from trilogue.client.writer import Draft
from trilogue.pipeline.errors import PipelineError
from trilogue.pipeline.model import Pipeline
from trilogue.wire.errors import BrokerError, ErrorCode
from trilogue.wire.records import Record

PREFIX = "trilogue."
REDRIVEN = "trilogue.redriven"
CHUNK_RECORDS = 1000
"""In one transaction."""
WAIT_SECONDS = 0.5

Origin = tuple[str, int, int]


@dataclass
class Outcome:
    """By the topics that they went to."""

    redriven: dict[str, int] = field(default_factory=dict)
    repeated: int = 0
    """Dead letters of records that had one already."""
    strange: int = 0
    """Records that are no dead letters of this pipeline's."""


@dataclass(frozen=True)
class Letter:
    origin: Origin
    pipeline: str
    timestamp: int

    @classmethod
    def of(cls, record: Record) -> "Letter | None":
        """None for what is no dead letter."""
        said = {name: bytes(value or b"").decode(errors="replace") for name, value in record.headers}
        try:
            origin = (
                said["trilogue.source.topic"],
                int(said["trilogue.source.partition"]),
                int(said["trilogue.source.offset"]),
            )
            return cls(origin, said["trilogue.pipeline"], int(said["trilogue.source.timestamp"]))
        except (KeyError, ValueError):
            return None


def group_of(pipeline: Pipeline) -> str:
    return f"trilogue-redrive-{pipeline.name}"


class Redrive:
    def __init__(self, client: Client, pipeline: Pipeline, *, to: str | None = None, limit: int | None = None) -> None:
        if pipeline.bad_records.topic is None:
            raise PipelineError(f"{pipeline.file}: [bad_records]: there is no dead letters' topic to redrive from")
        security = pipeline.source.options.get("kafka.security.protocol", "PLAINTEXT")
        if security != "PLAINTEXT":
            raise PipelineError(f"{pipeline.file}: [source]: redrive speaks PLAINTEXT only, not {security}")
        self._client, self._pipeline, self._to, self._limit = client, pipeline, to, limit
        self._topic: str = pipeline.bad_records.topic
        self._seen: set[Origin] = set()
        self.outcome = Outcome()

    async def run(self, *, dry: bool = False) -> Outcome:
        partitions = await self._partitions(self._topic)
        if self._to:
            await self._partitions(self._to)
        group = group_of(self._pipeline)
        transactions = Transactions(self._client, group, group)
        if not dry:
            await transactions.open()
        done = await transactions.committed(self._topic, partitions)
        ends = await offsets(self._client, self._topic, partitions, LATEST, committed_only=True)
        begins = await offsets(self._client, self._topic, partitions, EARLIEST)
        # What was redriven before says which records have had their turn; all of it first, whatever partition it is in.
        async for history in self._between(begins, done):
            self._seen.update(letter.origin for each in history if (letter := Letter.of(each.record)))
        starts = {index: max(begin, done.get(index, 0)) for index, begin in begins.items()}
        async for fresh in self._between(starts, ends):
            for i in range(0, len(fresh), CHUNK_RECORDS):
                if await self._redrive(transactions, fresh[i : i + CHUNK_RECORDS], dry):
                    return self.outcome
        return self.outcome

    async def _between(self, begins: Mapping[int, int], ends: Mapping[int, int]) -> AsyncIterator[list[Found]]:
        """The records of the dead letters' topic, in the order of their offsets."""
        reader = Reader(self._client, self._topic, begins)
        while unread := [index for index, end in ends.items() if reader.positions[index] < end]:
            found = await reader.poll(WAIT_SECONDS, unread)
            wanted = [each for each in found if each.record.offset < ends[each.partition]]
            yield sorted(wanted, key=lambda each: (each.partition, each.record.offset))

    async def _partitions(self, topic: str) -> list[int]:
        try:
            found = await self._client.topic(topic)
        except BrokerError as error:
            if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise PipelineError(f"there is no topic {topic}") from None
            raise
        return sorted(each.partition_index for each in found.partitions)

    async def _redrive(self, transactions: Transactions, chunk: Iterable[Found], dry: bool) -> bool:
        """Whether the limit is reached."""
        drafts: dict[str, list[Draft]] = {}
        reached: dict[int, int] = {}
        full = False
        for partition, record in chunk:
            left = None if self._limit is None else self._limit - sum(self.outcome.redriven.values())
            if full := left is not None and left <= 0:
                break
            reached[partition] = record.offset + 1
            letter = Letter.of(record)
            if letter is None or letter.pipeline != self._pipeline.name:
                self.outcome.strange += 1
            elif letter.origin in self._seen:
                self.outcome.repeated += 1
            else:
                self._seen.add(letter.origin)
                topic = self._to or letter.origin[0]
                drafts.setdefault(topic, []).append(self._draft(partition, record, letter))
                self.outcome.redriven[topic] = self.outcome.redriven.get(topic, 0) + 1
        if reached and not dry:
            await transactions.run(drafts, {self._topic: reached})
        return full

    def _draft(self, partition: int, record: Record, letter: Letter) -> Draft:
        """The record as it was, and where it has been."""
        kept = [(name, value) for name, value in record.headers if not name.startswith(PREFIX)]
        been = f"{self._topic}-{partition}@{record.offset}".encode()
        key = None if record.key is None else bytes(record.key)
        value = None if record.value is None else bytes(record.value)
        return Draft(key, value, [*kept, (REDRIVEN, been)], letter.timestamp)
