"""Writing records to a topic, in order within each partition: one request at a time to each leader.

Not idempotent: if a connection breaks before the answer, what was sent may be there twice after it was sent again.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from trilogue.client.client import Client
from trilogue.client.dialogue import Ticket, check
from trilogue.client.link import Link
from trilogue.client.offsets import by_leader
from trilogue.client.partitioner import partition_of
from trilogue.wire.apis.produce import ProduceRequest, ProduceResponse
from trilogue.wire.compression import Codec
from trilogue.wire.records import Headers, Record, build

BATCH_BYTES = 900_000
"""Before compression.  Brokers refuse more than a megabyte by default; a larger record travels alone."""
RECORD_OVERHEAD_BYTES = 24
BY_NAME = 12
"""The last version of Produce that names topics by their names."""
ALL = -1


class Draft(NamedTuple):
    """A record that has no offset yet."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp: int = -1
    partition: int | None = None

    @property
    def size(self) -> int:
        headers = sum(len(name) + len(value or b"") + 4 for name, value in self.headers)
        return len(self.key or b"") + len(self.value or b"") + headers + RECORD_OVERHEAD_BYTES


class Written(NamedTuple):
    partition: int
    base_offset: int
    count: int  # type: ignore[assignment]  # hides tuple.count


class Writer:
    """`partitions` is how many the topic has.  Without a key, records stay together and take turns by the call."""

    def __init__(
        self, client: Client, topic: str, partitions: int, *, codec: Codec = Codec.NONE, acks: int = ALL
    ) -> None:
        self._client, self._topic, self._partitions = client, topic, partitions
        self._codec, self._acks = codec, acks
        self._turn = 0

    async def write(self, drafts: Iterable[Draft]) -> list[Written]:
        """Returns when all are acknowledged; raises at the first that is refused for good."""
        chosen: dict[int, list[Draft]] = {}
        for draft in drafts:
            chosen.setdefault(self._partition(draft), []).append(draft)
        self._turn += 1
        queues = {index: list(batches(each)) for index, each in chosen.items()}
        written = []
        while queues:
            written += await self._send({index: queue.pop(0) for index, queue in queues.items()})
            queues = {index: queue for index, queue in queues.items() if queue}
        return written

    def _partition(self, draft: Draft) -> int:
        if draft.partition is not None:
            return draft.partition
        return self._turn % self._partitions if draft.key is None else partition_of(draft.key, self._partitions)

    async def _send(self, round_: dict[int, Sequence[Draft]]) -> list[Written]:
        """One batch to each of several partitions; those that may go well later are sent again."""
        built = {index: self._build(each) for index, each in round_.items()}
        written: list[Written] = []

        async def attempt() -> None:
            refused: list[ProduceResponse.Topic.Partition] = []
            for answer in await self._ask(built):
                for each in answer.responses[0].partition_responses:
                    if each.error_code:
                        refused.append(each)
                    else:
                        written.append(Written(each.index, each.base_offset, len(round_[each.index])))
                        del built[each.index]
            for each in refused:
                check(each.error_code, each.error_message)

        await self._client.persist(attempt)
        return written

    async def _ask(self, built: dict[int, bytearray]) -> list[ProduceResponse]:
        """One request to each leader, all of them at once."""
        asked: list[tuple[Link, Ticket[ProduceResponse]]] = []
        try:
            for link, indexes in (await by_leader(self._client, self._topic, built)).items():
                request = self._request({index: built[index] for index in indexes})
                asked.append((link, await link.ask(request, ProduceResponse, cap=BY_NAME)))
            return [await link.answer(ticket, seconds=self._client.timeout) for link, ticket in asked]
        finally:
            for link, ticket in asked:
                link.forget(ticket)

    def _request(self, batches: dict[int, bytearray]) -> ProduceRequest:
        data = [ProduceRequest.Topic.Partition(index=index, records=batch) for index, batch in batches.items()]
        return ProduceRequest(
            acks=self._acks,
            timeout_ms=int(self._client.timeout * 1000),
            topic_data=[ProduceRequest.Topic(name=self._topic, partition_data=data)],
        )

    def _build(self, drafts: Sequence[Draft]) -> bytearray:
        records = (Record(i, each.timestamp, each.key, each.value, each.headers) for i, each in enumerate(drafts))
        return build(records, codec=self._codec)


def batches(drafts: Sequence[Draft]) -> Iterator[list[Draft]]:
    batch: list[Draft] = []
    size = 0
    for draft in drafts:
        if batch and size + draft.size > BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(draft)
        size += draft.size
    yield batch
