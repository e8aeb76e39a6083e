"""An idempotent producer with acks=all: several batches on their way to each partition, sent again in their order and
as they were until each of them is acknowledged."""

from collections import deque
from typing import TYPE_CHECKING, Any

import trio

from trilogue.client.dialogue import Ticket, check
from trilogue.client.link import Link
from trilogue.testing.simulation.clients.party import TIMEOUT_SECONDS, TROUBLES, Party
from trilogue.wire.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from trilogue.wire.apis.produce import ProduceRequest, ProduceResponse
from trilogue.wire.errors import BrokerError, ErrorCode
from trilogue.wire.records import Record, build

if TYPE_CHECKING:
    from trilogue.testing.simulation.cluster import Cluster

IN_FLIGHT_MAX = 5
"""A broker knows as many again."""
BY_NAME = 12
REFUSED_TIMES = 4
PRODUCE_MS = 1500


class Batch:
    def __init__(self, sequence: int, values: list[str], data: bytes) -> None:
        self.sequence, self.values, self.data = sequence, values, data
        self.ticket: Ticket[ProduceResponse] | None = None
        self.sent = False
        self.refused_by: list[tuple[str, str, int]] = []
        """By whom, and who led then in which epoch."""


class Producer(Party):
    def __init__(self, cluster: "Cluster", name: str, topic: str, partitions: int, pause: float) -> None:
        super().__init__(cluster, name)
        self._topic, self._partitions, self._pause = topic, partitions, pause
        self._made = 0
        self._id, self._epoch = -1, -1
        self.unacknowledged = 0

    async def live(self) -> None:
        self.unacknowledged = 0
        while True:
            try:
                request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
                answer = await self.client.call(request, InitProducerIdResponse, cap=4)
                check(answer.error_code)
            except TROUBLES as error:
                await self.rest(error)
            else:
                break
        self._id, self._epoch = answer.producer_id, answer.producer_epoch
        async with trio.open_nursery() as nursery:
            for index in range(self._partitions):
                nursery.start_soon(self._write, index)

    async def _write(self, index: int) -> None:
        pending: deque[Batch] = deque()
        sequence = 0
        while pending or not self.ending.is_set():
            if not pending:
                await self.pause(self._pause)
            if not self.ending.is_set():
                for _ in range(min(self.chance.choice((1, 1, 1, 2, 4)), IN_FLIGHT_MAX - len(pending))):
                    batch = self._batch(index, sequence)
                    sequence += len(batch.values)
                    pending.append(batch)
            try:
                while pending:
                    await self._send(index, pending)
            except TROUBLES as error:
                for each in pending:
                    each.ticket = None
                await self.rest(error)

    def _batch(self, index: int, sequence: int) -> Batch:
        values = []
        for _ in range(self.chance.choice((1, 1, 2, 3))):
            self._made += 1
            values.append(f"{self.name}/{self._made}")
        filling = b"." * self.chance.choice((0, 10, 10, 300))
        now_ms = self.cluster.wall_ms()
        records = [Record(i, now_ms, filling, value.encode()) for i, value in enumerate(values)]
        data = build(records, producer_id=self._id, producer_epoch=self._epoch, base_sequence=sequence)
        self.unacknowledged += 1
        self.history.add(
            self.name, "sent", topic=self._topic, partition=index, producer=self._id, sequence=sequence, values=values
        )
        return Batch(sequence, values, bytes(data))

    async def _send(self, index: int, pending: deque[Batch]) -> None:
        """All of them; take away those that are acknowledged.  Raises what may go well later.

        What is sent again is sent by itself, as Java's producer does, and so is the very first: a broker that knows
        nothing of a producer takes whatever comes first, and that must not be the second (as in Kafka).
        """
        link = await self.client.leader(self._topic, index)
        while pending:
            alone = pending[0].sent or not pending[0].sequence
            for batch in [pending[0]] if alone else list(pending):
                if batch.ticket is None:
                    batch.ticket = await self._ask(link, index, batch)
                    batch.sent = True
            batch = pending[0]
            assert batch.ticket is not None
            answer = await link.answer(batch.ticket, seconds=TIMEOUT_SECONDS)
            (found,) = answer.responses[0].partition_responses
            code, more = found.error_code, {"topic": self._topic, "partition": index, "values": batch.values}
            if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                offset = found.base_offset if found.base_offset >= 0 else None
                self.history.add(self.name, "acked", offset=offset, **more)
                self.acked(index, offset, batch.values)
            elif ErrorCode(code).retriable or self._may_be_a_ghost(batch, code, link.address.host, index):  # type: ignore[call-arg]
                raise BrokerError(ErrorCode(code))  # type: ignore[call-arg]
            else:
                why = ErrorCode(code).name  # type: ignore[call-arg]
                self.history.add(self.name, "refused", why=why, **more)
                self.cluster.blame("refused", f"{self.name}: {self._topic}-{index} {batch.values}: {why}")
            pending.popleft()
            self.unacknowledged -= 1

    def acked(self, index: int, offset: int | None, values: list[str]) -> None:
        if offset is not None:
            for each in self.cluster.ack_listeners:
                each(self._topic, index, offset + len(values))

    def _may_be_a_ghost(self, batch: Batch, code: int, host: str, index: int) -> bool:
        """Who was stopped and led before goes on until it hears that it is over, and has less than there is by now.  A
        good client looks again who leads, and asks there.  So it counts if who leads says it again and again."""
        if code != ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            return False
        batch.refused_by.append((host, *self.cluster.leader(self._topic, index)))
        last = batch.refused_by[-REFUSED_TIMES:]
        return len(last) < REFUSED_TIMES or len(set(last)) > 1 or last[0][0] != last[0][1]

    async def _ask(self, link: Link, index: int, batch: Batch) -> Any:
        data = [ProduceRequest.Topic.Partition(index=index, records=batch.data)]
        topics = [ProduceRequest.Topic(name=self._topic, partition_data=data)]
        return await link.ask(
            ProduceRequest(acks=-1, timeout_ms=PRODUCE_MS, topic_data=topics), ProduceResponse, cap=BY_NAME
        )
