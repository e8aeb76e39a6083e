"""Writing records and committing a group's offsets in one transaction: both happen, or neither does.

Of the first generation (KIP-98), which every broker since Kafka 0.11 knows: requests are capped to its versions.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from trilogue.client.client import Client
from trilogue.client.coordinators import GROUP, TRANSACTION, coordinator
from trilogue.client.dialogue import check
from trilogue.client.partitioner import partition_of
from trilogue.client.writer import Draft, batches
from trilogue.wire.apis.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from trilogue.wire.apis.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, Topic
from trilogue.wire.apis.end_txn import EndTxnRequest, EndTxnResponse
from trilogue.wire.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from trilogue.wire.apis.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from trilogue.wire.apis.produce import ProduceRequest, ProduceResponse
from trilogue.wire.apis.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from trilogue.wire.records import Record, build

ADD_CAP, END_CAP, COMMIT_CAP, INIT_CAP = 3, 4, 4, 4
PRODUCE_CAP = 11
"""From version 12 on a broker adds the partitions to the transaction by itself: the second generation."""
FETCH_CAP = 7
TRANSACTION_MS = 60_000
NOTHING_COMMITTED = -1

Offsets = Mapping[str, Mapping[int, int]]


class Transactions:
    """One after the other, under one transactional id.  `open` ends what a predecessor of that id left unfinished."""

    def __init__(self, client: Client, transactional_id: str, group: str) -> None:
        self._client, self._id, self._group = client, transactional_id, group
        self._producer_id, self._epoch = -1, -1
        self._sequences: dict[tuple[str, int], int] = {}
        self._partitions: dict[str, int] = {}

    async def open(self) -> None:
        async def attempt() -> None:
            link = await coordinator(self._client, TRANSACTION, self._id)
            request = InitProducerIdRequest(transactional_id=self._id, transaction_timeout_ms=TRANSACTION_MS)
            answer = await link.call(request, InitProducerIdResponse, cap=INIT_CAP)
            check(answer.error_code)
            self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch

        await self._client.persist(attempt)
        self._sequences.clear()

    async def committed(self, topic: str, partitions: Sequence[int]) -> dict[int, int]:
        """Where the group is; partitions where it has not been yet are left out."""

        async def attempt() -> dict[int, int]:
            link = await coordinator(self._client, GROUP, self._group)
            wanted = [OffsetFetchRequest.Topic(name=topic, partition_indexes=list(partitions))]
            request = OffsetFetchRequest(group_id=self._group, topics=wanted, require_stable=True)
            answer = await link.call(request, OffsetFetchResponse, cap=FETCH_CAP)
            check(answer.error_code)
            found = {}
            for each in (partition for one in answer.topics for partition in one.partitions):
                check(each.error_code)
                if each.committed_offset != NOTHING_COMMITTED:
                    found[each.partition_index] = each.committed_offset
            return found

        return await self._client.persist(attempt)

    async def run(self, drafts: Mapping[str, Sequence[Draft]], offsets: Offsets) -> None:
        """Write all of that, move the group there, commit.  After an exception: `open` again, which aborts it."""
        chosen: dict[tuple[str, int], list[Draft]] = {}
        for topic, each in drafts.items():
            for draft in each:
                chosen.setdefault((topic, await self._partition(topic, draft)), []).append(draft)
        if chosen:
            await self._add_partitions(list(chosen))
        for place, mine in chosen.items():
            for batch in batches(mine):
                await self._produce(place, batch)
        await self._commit_offsets(offsets)
        await self._end()

    async def _partition(self, topic: str, draft: Draft) -> int:
        if topic not in self._partitions:
            self._partitions[topic] = len((await self._client.persist(lambda: self._client.topic(topic))).partitions)
        if draft.partition is not None:
            return draft.partition
        return 0 if draft.key is None else partition_of(draft.key, self._partitions[topic])

    async def _add_partitions(self, places: list[tuple[str, int]]) -> None:
        topics: dict[str, list[int]] = {}
        for topic, index in places:
            topics.setdefault(topic, []).append(index)

        async def attempt() -> None:
            link = await coordinator(self._client, TRANSACTION, self._id)
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self._id,
                v3_and_below_producer_id=self._producer_id,
                v3_and_below_producer_epoch=self._epoch,
                v3_and_below_topics=[Topic(name=name, partitions=indexes) for name, indexes in topics.items()],
            )
            answer = await link.call(request, AddPartitionsToTxnResponse, cap=ADD_CAP)
            for each in (one for topic in answer.results_by_topic_v3_and_below for one in topic.results_by_partition):
                check(each.partition_error_code)

        await self._client.persist(attempt)

    async def _produce(self, place: tuple[str, int], drafts: Sequence[Draft]) -> None:
        """Sent again after a broken connection it carries the same sequence, by which the broker knows it."""
        topic, index = place
        records = [Record(i, each.timestamp, each.key, each.value, each.headers) for i, each in enumerate(drafts)]
        sequence = self._sequences.get(place, 0)
        batch = build(
            records,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=sequence,
            transactional=True,
        )
        data = [ProduceRequest.Topic.Partition(index=index, records=batch)]
        request = ProduceRequest(
            transactional_id=self._id,
            acks=-1,
            timeout_ms=int(self._client.timeout * 1000),
            topic_data=[ProduceRequest.Topic(name=topic, partition_data=data)],
        )

        async def attempt() -> None:
            answer = await self._client.call_leader(topic, index, request, ProduceResponse, cap=PRODUCE_CAP)
            (found,) = answer.responses[0].partition_responses
            check(found.error_code, found.error_message)

        await self._client.persist(attempt)
        self._sequences[place] = sequence + len(drafts)

    async def _commit_offsets(self, offsets: Offsets) -> None:
        Asked = TxnOffsetCommitRequest.Topic
        topics = [
            Asked(
                name=topic,
                partitions=[
                    Asked.Partition(partition_index=index, committed_offset=offset, committed_metadata="")
                    for index, offset in places.items()
                ],
            )
            for topic, places in offsets.items()
        ]
        who: dict[str, Any] = {
            "transactional_id": self._id,
            "producer_id": self._producer_id,
            "producer_epoch": self._epoch,
        }

        async def add() -> None:
            link = await coordinator(self._client, TRANSACTION, self._id)
            request = AddOffsetsToTxnRequest(**who, group_id=self._group)
            check((await link.call(request, AddOffsetsToTxnResponse, cap=ADD_CAP)).error_code)

        async def commit() -> None:
            link = await coordinator(self._client, GROUP, self._group)
            request = TxnOffsetCommitRequest(**who, group_id=self._group, topics=topics)
            answer = await link.call(request, TxnOffsetCommitResponse, cap=COMMIT_CAP)
            for each in (one for topic in answer.topics for one in topic.partitions):
                check(each.error_code)

        await self._client.persist(add)
        await self._client.persist(commit)

    async def _end(self) -> None:
        async def attempt() -> None:
            link = await coordinator(self._client, TRANSACTION, self._id)
            request = EndTxnRequest(
                transactional_id=self._id, producer_id=self._producer_id, producer_epoch=self._epoch, committed=True
            )
            check((await link.call(request, EndTxnResponse, cap=END_CAP)).error_code)

        await self._client.persist(attempt)
