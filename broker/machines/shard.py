"""One pure machine among the tasks of the broker: its log, and those who wait for it.

The machine decides; the shard does.  Deciding and writing happen without an await between them, so no other task can
come in between: in trio that is all the locking there is.  If what was decided cannot be written, the shard is given
up: everybody who waits is refused, and whoever leads the partition next loads it anew.

The law: what was decided is carried out whole before anything that was decided later.  Whoever is sent something may
answer on the spot, as markers do, and so bring about a decision while an older one is still being carried out.
"""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import trio

from trilogue.broker.machines.effects import Effect, Machine, Reply, Send, Store
from trilogue.broker.machines.records import from_record, to_records
from trilogue.broker.partitions.partition import Partition
from trilogue.broker.requests.later import Later
from trilogue.storage.producers import Origin
from trilogue.storage.scan import Damaged
from trilogue.wire.errors import BrokerError, ErrorCode, MalformedMessage
from trilogue.wire.records import Batch, ControlType, Record, build, end_transaction

if TYPE_CHECKING:
    from trilogue.broker.machines.runner import Runner

logger = logging.getLogger(__name__)

SAFE_SECONDS = 5.0
"""How long replicas may take to have what was decided."""

BATCHES_PER_TURN = 50
"""While loading: then it is the others' turn."""

OF_PRODUCERS = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE, ErrorCode.PRODUCER_FENCED)
"""What records of a transaction may be refused with."""

M = TypeVar("M", bound=Machine)
R = TypeVar("R")
"""What a request is answered with: a response, or what a handler makes one of."""


class Ticket:
    """A request that has not been answered yet."""

    __slots__ = ("_settled", "after", "refuse", "response")

    def __init__(self, refuse: Callable[[ErrorCode], Any]) -> None:
        self._settled = trio.Event()
        self.refuse = refuse
        self.response: Any = None
        self.after = 0
        """Up to where the log must be safe before the answer goes out."""

    @property
    def settled(self) -> bool:
        return self._settled.is_set()

    def settle(self, response: object, after: int) -> None:
        self.response, self.after = response, after
        self._settled.set()

    async def wait(self) -> None:
        await self._settled.wait()


class Shard(Generic[M]):
    def __init__(self, runner: "Runner[M]", partition: Partition, machine: M) -> None:
        self._runner, self.partition, self.machine = runner, partition, machine
        self.epoch = partition.leader_epoch
        self.active = False
        self.given_up = False
        self._stored = 0
        """Up to where the machine's state is in the log.  What it says must not be heard before that is safe."""
        self._waiting: dict[Ticket, None] = {}
        self._decided: deque[Sequence[Effect]] = deque()
        """What has to be carried out, in the order of decisions; the first is under way."""

    # -- requests ------------------------------------------------------------------------------

    def ask(self, act: Callable[..., list[Effect]], *arguments: Any, refuse: Callable[[ErrorCode], R]) -> R | Later[R]:
        """Put something to the machine, by one of its methods: `act(machine, now, *arguments, ticket)`."""
        if not self.active or not self._runner.sure():
            return refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        ticket = Ticket(refuse)
        self._waiting[ticket] = None
        self.carry_out(act(self.machine, self._runner.now(), *arguments, ticket))
        if ticket.settled and self.partition.is_committed(ticket.after):
            self._waiting.pop(ticket, None)
            return ticket.response  # type: ignore[no-any-return]
        return self._answer(ticket)

    async def _answer(self, ticket: Ticket) -> Any:
        try:
            await ticket.wait()
        finally:
            self._waiting.pop(ticket, None)  # whoever asked may have hung up
        if not self.partition.is_committed(ticket.after):
            try:
                await self.partition.committed(ticket.after, trio.current_time() + SAFE_SECONDS)
            except BrokerError:
                self.give_up()
                return ticket.refuse(ErrorCode.NOT_COORDINATOR)
        return ticket.response

    def now(self) -> float:
        return self._runner.now()

    def tick(self, now: float) -> None:
        if self.active and self.machine.deadline <= now:
            self.carry_out(self.machine.tick(now))

    def carry_out(self, todo: Sequence[Effect]) -> None:
        self._decided.append(todo)
        if len(self._decided) > 1:
            return  # we are being carried out: this comes after it
        try:
            while self._decided and not self.given_up:
                self._carry_out(self._decided[0])
                self._decided.popleft()
        finally:
            self._decided.clear()
        if not self.given_up:
            self._runner.expect(self.machine.deadline)

    def _carry_out(self, todo: Sequence[Effect]) -> None:
        refused: ErrorCode | None = None
        for effect in todo:
            match effect:
                case Store():
                    try:
                        self._stored = self._store(effect)
                    except (BrokerError, OSError) as error:
                        if isinstance(error, BrokerError) and effect.producer_id >= 0 and error.code in OF_PRODUCERS:
                            refused = error.code  # the producer's fault: nothing was written, and the shard is well
                            continue
                        if isinstance(error, OSError):
                            self._runner.disk_failed(self.partition, error)
                        logger.warning("%s: cannot be written, and is given up: %s", self.partition, error)
                        self.give_up()
                        return
                case Reply(ticket, response):
                    ticket.settle(ticket.refuse(refused) if refused else response, self._stored)
                case Send(message):
                    if self.partition.is_committed(self._stored):
                        self._runner.send(message)
                    else:
                        self._runner.tasks.start_soon(self._send_when_safe, message, self._stored)

    async def _send_when_safe(self, message: object, after: int) -> None:
        """Others act on what they are sent: it must not be forgotten afterwards."""
        try:
            await self.partition.committed(after, trio.current_time() + SAFE_SECONDS)
        except BrokerError:
            self.give_up()
        else:
            if self.active:
                self._runner.send(message)

    def _store(self, store: Store) -> int:
        """Append, and take over.  Answers the offset after it."""
        now_ms = self._runner.clock()
        batch = build(
            to_records(store.records, now_ms),
            producer_id=store.producer_id,
            producer_epoch=store.producer_epoch,
            transactional=store.producer_id >= 0,
        )
        result = self.partition.append(memoryview(batch), now_ms, origin=Origin.COORDINATOR)
        for number, put in enumerate(store.records):
            self.machine.replay(put, result.base_offset + number, store.producer_id)
        return result.last_offset + 1

    def give_up(self) -> None:
        """We do not speak for this shard any more: whoever waits has to ask elsewhere, or here after a while."""
        self.active, self.given_up = False, True
        self._runner.try_again(self.partition.index)
        for ticket in self._waiting:
            if not ticket.settled:
                ticket.settle(ticket.refuse(ErrorCode.NOT_COORDINATOR), 0)
        self._waiting.clear()

    # -- loading -------------------------------------------------------------------------------

    async def load(self) -> None:
        """Replay everything that is in the log.  Yields now and then; the log may be long."""
        for number, found in enumerate(self.partition.log.salvage()):
            if isinstance(found, Damaged):
                logger.error("%s: damaged, and loaded without what is there: %s", self.partition, found)
            else:
                self.replay(found)
            if number % BATCHES_PER_TURN == BATCHES_PER_TURN - 1:
                await trio.lowlevel.checkpoint()
                if self.partition.leader_epoch != self.epoch:
                    return
        self.begin()

    def begin(self) -> None:
        """The machine knows all that is in the log: requests may come."""
        self.active, self._stored = True, self.partition.log.end_offset
        self._runner.began(self.partition.index)
        self.carry_out(self.machine.loaded(self._runner.now()))

    def replay(self, batch: Batch) -> None:
        """What makes no sense is passed over: a client may have written it, and the rest must still be loaded."""
        header = batch.header
        try:
            if header.control:
                marker = end_transaction(batch)
                if marker is not None:
                    self.machine.replay_end(header.producer_id, marker.type is ControlType.COMMIT)
                return
            producer_id = header.producer_id if header.transactional else -1
            for record in batch.records():
                self._replay(record, producer_id)
        except MalformedMessage as problem:
            logger.error("%s: a batch at %d is passed over: %s", self.partition, header.base_offset, problem)

    def _replay(self, record: Record, producer_id: int) -> None:
        try:
            put = from_record(self.partition.topic, record)
            if put is not None:
                self.machine.replay(put, record.offset, producer_id)
        except Exception as problem:
            logger.error("%s: a record at %d is passed over: %r", self.partition, record.offset, problem)
