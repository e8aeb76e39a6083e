"""Reading records of a topic, from given offsets on; without those of aborted transactions, and without markers."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from trilogue.client.client import Client, may_go_well_later
from trilogue.client.dialogue import Ticket, check
from trilogue.client.errors import ClientError
from trilogue.client.link import Link
from trilogue.client.offsets import by_leader
from trilogue.wire.apis.fetch import FetchRequest, FetchResponse
from trilogue.wire.errors import BrokerError, MalformedMessage
from trilogue.wire.records import Batch, ControlType, Record, batches, end_transaction

FETCH_BYTES = 8 << 20
PARTITION_BYTES = 1 << 20
BY_NAME = 12
"""The last version of Fetch that names topics by their names."""

Answer = FetchResponse.Topic.Partition


class Found(NamedTuple):
    partition: int
    record: Record


class Reader:
    """`positions` are the next offsets to read, by partition; they move as records are given out."""

    def __init__(
        self, client: Client, topic: str, positions: Mapping[int, int], *, committed_only: bool = True
    ) -> None:
        self._client, self._topic, self._committed_only = client, topic, committed_only
        self.positions = dict(positions)
        self._trouble_until: float | None = None

    async def poll(self, max_wait: float, partitions: Iterable[int] | None = None) -> list[Found]:
        """What there is, after waiting for something up to `max_wait` seconds.

        A leader that is gone is looked for again by the next poll; if that does not help for as long as the client has
        patience, its trouble is raised.
        """
        wanted = list(self.positions if partitions is None else partitions)
        try:
            found = await self._poll(wanted, max_wait)
        except (BrokerError, ClientError) as error:
            now = self._client.world.now()
            self._trouble_until = self._trouble_until or now + self._client.timeout
            if not may_go_well_later(error) or now > self._trouble_until:
                raise
            self._client.forget()
            await self._client.world.pause(min(max_wait, 0.1))
            return []
        self._trouble_until = None
        return found

    async def _poll(self, partitions: Iterable[int], max_wait: float) -> list[Found]:
        asked: list[tuple[Link, Ticket[FetchResponse]]] = []
        found: list[Found] = []
        try:
            for link, indexes in (await by_leader(self._client, self._topic, partitions)).items():
                request = self._request(indexes, max_wait)
                asked.append((link, await link.ask(request, FetchResponse, cap=BY_NAME)))
            for link, ticket in asked:
                answer = await link.answer(ticket, seconds=max_wait + self._client.timeout)
                check(answer.error_code)
                for each in (partition for topic in answer.responses for partition in topic.partitions):
                    check(each.error_code)
                    found += self._records(each)
        finally:
            for link, ticket in asked:
                link.forget(ticket)
        return found

    def _request(self, partitions: Iterable[int], max_wait: float) -> FetchRequest:
        wanted = [
            FetchRequest.Topic.Partition(
                partition=each, fetch_offset=self.positions[each], partition_max_bytes=PARTITION_BYTES
            )
            for each in partitions
        ]
        return FetchRequest(
            max_wait_ms=int(max_wait * 1000),
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            isolation_level=int(self._committed_only),
            topics=[FetchRequest.Topic(topic=self._topic, partitions=wanted)],
        )

    def _records(self, answer: Answer) -> Iterator[Found]:
        index = answer.partition_index
        for batch, shown in judged(answer, self._committed_only):
            try:
                for record in batch.records() if shown else ():
                    if record.offset >= self.positions[index]:
                        yield Found(index, record)
            except MalformedMessage as error:
                where = f"{self._topic}-{index}, offset {batch.header.base_offset}"
                raise ClientError(f"{where}: the records cannot be read: {error}") from None
            self.positions[index] = max(self.positions[index], batch.header.next_offset)


def judged(answer: Answer, committed_only: bool) -> Iterator[tuple[Batch, bool]]:
    """All batches, and whether a reader gets to see their records."""
    aborted = sorted(answer.aborted_transactions or (), key=lambda each: each.first_offset, reverse=True)
    open_: set[int] = set()
    for batch in batches(answer.records or b"", partial_ok=True):
        header = batch.header
        if committed_only and header.transactional:
            while aborted and aborted[-1].first_offset <= header.last_offset:
                open_.add(aborted.pop().producer_id)
            if header.control:
                end = end_transaction(batch)
                if end is not None and end.type is ControlType.ABORT:
                    open_.discard(header.producer_id)
        yield batch, not header.control and not (header.transactional and header.producer_id in open_)
