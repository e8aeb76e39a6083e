"""Writes in transactions, of either generation, and moves a group's offset with each: to the number of the transaction.

What was written and where the group is must agree with what it was told: after a new beginning the group stands at the
last transaction that was committed, and of one whose end nobody has heard of there is everything or nothing.
"""

from typing import TYPE_CHECKING, Any

import trio

from trilogue.client.coordinators import GROUP, TRANSACTION, coordinator
from trilogue.client.dialogue import check
from trilogue.testing.simulation.clients.party import TIMEOUT_SECONDS, TROUBLES, Party
from trilogue.wire.apis.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from trilogue.wire.apis.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, Topic
from trilogue.wire.apis.end_txn import EndTxnRequest, EndTxnResponse
from trilogue.wire.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from trilogue.wire.apis.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from trilogue.wire.apis.produce import ProduceRequest, ProduceResponse
from trilogue.wire.apis.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from trilogue.wire.errors import BrokerError, ErrorCode
from trilogue.wire.records import Record, build

if TYPE_CHECKING:
    from trilogue.testing.simulation.cluster import Cluster

FIRST, SECOND = 1, 2
PRODUCE_CAP = {FIRST: 11, SECOND: 12}
END_CAP = {FIRST: 4, SECOND: 5}
COMMIT_CAP = {FIRST: 4, SECOND: 5}
PATIENCE_SECONDS = 6.0
"""For a transaction, until it is given up and aborted by a new beginning."""

ABORT_PART = 0.2
TRANSACTION_MS = 8000
PRODUCE_MS = 1500
NOWHERE = -1


class Given(Exception):
    """Up: somebody has to begin anew."""


class Transactional(Party):
    def __init__(
        self, cluster: "Cluster", name: str, topic: str, partitions: int, pause: float, generation: int
    ) -> None:
        super().__init__(cluster, name)
        self._topic, self._partitions, self._pause, self._generation = topic, partitions, pause, generation
        self._id, self._group = f"id-{name}", f"group-{name}"
        self._number = 0
        self._made = 0
        self._producer, self._epoch = -1, -1
        self._sequences: dict[int, int] = {}
        self._at = NOWHERE
        """The last transaction that is known to be committed."""
        self._unknown: int | None = None
        """One whose end was asked for, and nobody knows whether it has come."""

    async def live(self) -> None:
        begun = False
        while not self.ending.is_set() or not begun or self._unknown is not None:
            try:
                if not begun:
                    await self._begin()
                    begun = True
                    continue
                await self.pause(self._pause)
                if not self.ending.is_set():
                    await self._transaction()
            except Given:
                begun = False
        await self._check_group()

    async def _begin(self) -> None:
        """Ends what was left open, and sees where the group is."""
        request = InitProducerIdRequest(transactional_id=self._id, transaction_timeout_ms=TRANSACTION_MS)

        async def attempt() -> None:
            link = await coordinator(self.client, TRANSACTION, self._id)
            answer = await link.call(request, InitProducerIdResponse, cap=4, seconds=TIMEOUT_SECONDS)
            check(answer.error_code)
            self._producer, self._epoch = answer.producer_id, answer.producer_epoch

        await self._persist(attempt, trio.current_time() + 1000)
        self._sequences.clear()
        await self._check_group()

    async def _check_group(self) -> None:
        found = NOWHERE

        async def attempt() -> None:
            nonlocal found
            link = await coordinator(self.client, GROUP, self._group)
            wanted = [OffsetFetchRequest.Topic(name=self._topic, partition_indexes=[0])]
            request = OffsetFetchRequest(group_id=self._group, topics=wanted, require_stable=True)
            answer = await link.call(request, OffsetFetchResponse, cap=7, seconds=TIMEOUT_SECONDS)
            check(answer.error_code)
            (each,) = answer.topics[0].partitions
            check(each.error_code)
            found = each.committed_offset

        await self._persist(attempt, trio.current_time() + 1000)
        possible = {self._at} if self._unknown is None else {self._at, self._unknown}
        self.history.add(self.name, "resumes", group=self._group, partition=0, offset=found, possible=sorted(possible))
        if found not in possible:
            self.cluster.blame("Offsets", f"{self.name}: its group is at {found}, and can be at {sorted(possible)}")
        if self._unknown is not None:
            outcome = "committed" if found == self._unknown else "aborted"
            self.history.add(self.name, "ended", number=self._name(self._unknown), outcome=outcome)
        self._at, self._unknown = found, None

    def _name(self, number: int) -> str:
        return f"{self.name}#{number}"

    async def _transaction(self) -> None:
        self._number += 1
        number = self._number
        until = trio.current_time() + PATIENCE_SECONDS
        self.history.add(self.name, "began", number=self._name(number), producer=self._producer, epoch=self._epoch)
        partitions = self.chance.sample(range(self._partitions), self.chance.randrange(1, self._partitions + 1))
        commit = self.chance.random() >= ABORT_PART
        sent_end = False
        try:
            if self._generation == FIRST:
                await self._add_partitions(partitions, until)
            for index in partitions:
                for _ in range(self.chance.choice((1, 1, 2))):
                    await self._produce(number, index, until)
            await self._commit_offset(number, until)
            sent_end = True
            if commit:
                self._unknown = number
            await self._end(commit)
        except Given:
            if not commit or not sent_end:
                self.history.add(self.name, "ended", number=self._name(number), outcome="aborted")
            raise
        self.history.add(self.name, "ended", number=self._name(number), outcome="committed" if commit else "aborted")
        if commit:
            self._at, self._unknown = number, None

    async def _add_partitions(self, partitions: list[int], until: float) -> None:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=self._producer,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[Topic(name=self._topic, partitions=list(partitions))],
        )

        async def attempt() -> None:
            link = await coordinator(self.client, TRANSACTION, self._id)
            answer = await link.call(request, AddPartitionsToTxnResponse, cap=3, seconds=TIMEOUT_SECONDS)
            for each in (one for topic in answer.results_by_topic_v3_and_below for one in topic.results_by_partition):
                check(each.partition_error_code)

        await self._persist(attempt, until)

    async def _produce(self, number: int, index: int, until: float) -> None:
        values = []
        for _ in range(self.chance.choice((1, 2))):
            self._made += 1
            values.append(f"{self.name}/{self._made}")
        self.history.add(
            self.name, "wrote", number=self._name(number), topic=self._topic, partition=index, values=values
        )
        sequence, now_ms = self._sequences.get(index, 0), self.cluster.wall_ms()
        batch = build(
            [Record(i, now_ms, None, value.encode()) for i, value in enumerate(values)],
            producer_id=self._producer,
            producer_epoch=self._epoch,
            base_sequence=sequence,
            transactional=True,
        )
        data = [ProduceRequest.Topic.Partition(index=index, records=bytes(batch))]
        request = ProduceRequest(
            transactional_id=self._id,
            acks=-1,
            timeout_ms=PRODUCE_MS,
            topic_data=[ProduceRequest.Topic(name=self._topic, partition_data=data)],
        )

        async def attempt() -> None:
            cap = PRODUCE_CAP[self._generation]
            answer = await self.client.call_leader(self._topic, index, request, ProduceResponse, cap=cap)
            (found,) = answer.responses[0].partition_responses
            if found.error_code != ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                check(found.error_code, found.error_message)

        await self._persist(attempt, until)
        self._sequences[index] = sequence + len(values)

    async def _commit_offset(self, number: int, until: float) -> None:
        who: dict[str, Any] = {
            "transactional_id": self._id,
            "producer_id": self._producer,
            "producer_epoch": self._epoch,
        }
        Asked = TxnOffsetCommitRequest.Topic
        place = Asked.Partition(partition_index=0, committed_offset=number, committed_metadata="")
        request = TxnOffsetCommitRequest(
            **who, group_id=self._group, topics=[Asked(name=self._topic, partitions=[place])]
        )

        async def add() -> None:
            link = await coordinator(self.client, TRANSACTION, self._id)
            asked = AddOffsetsToTxnRequest(**who, group_id=self._group)
            check((await link.call(asked, AddOffsetsToTxnResponse, cap=3, seconds=TIMEOUT_SECONDS)).error_code)

        async def commit() -> None:
            link = await coordinator(self.client, GROUP, self._group)
            cap = COMMIT_CAP[self._generation]
            answer = await link.call(request, TxnOffsetCommitResponse, cap=cap, seconds=TIMEOUT_SECONDS)
            for each in (one for topic in answer.topics for one in topic.partitions):
                check(each.error_code)

        if self._generation == FIRST:
            await self._persist(add, until)
        await self._persist(commit, until)

    async def _end(self, commit: bool) -> None:
        """Asked for again until there is an answer: nobody else may end it meanwhile."""
        request = EndTxnRequest(
            transactional_id=self._id, producer_id=self._producer, producer_epoch=self._epoch, committed=commit
        )

        async def attempt() -> None:
            link = await coordinator(self.client, TRANSACTION, self._id)
            cap = END_CAP[self._generation]
            answer = await link.call(request, EndTxnResponse, cap=cap, seconds=TIMEOUT_SECONDS)
            check(answer.error_code)
            if answer.producer_id >= 0:
                if (answer.producer_id, answer.producer_epoch) != (self._producer, self._epoch):
                    self._sequences.clear()
                self._producer, self._epoch = answer.producer_id, answer.producer_epoch

        await self._persist(attempt, trio.current_time() + 1000)

    async def _persist(self, attempt: Any, until: float) -> None:
        """As long as it may go well later; `Given` if it will not, or takes too long."""
        while True:
            try:
                return await attempt()  # type: ignore[no-any-return]
            except TROUBLES as error:
                if isinstance(error, BrokerError) and not (
                    error.code.retriable or error.code == ErrorCode.BROKER_NOT_AVAILABLE
                ):
                    self.history.add(self.name, "given up", why=error.code.name)
                    await self.rest()
                    raise Given from None
                if trio.current_time() > until:
                    self.history.add(self.name, "given up", why="it takes too long")
                    raise Given from None
                await self.rest(error)
