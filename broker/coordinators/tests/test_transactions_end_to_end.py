"""Transactions through a whole broker: what time does, and what readers see."""

import contextlib
import tempfile
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from trilogue.broker.broker import Broker
from trilogue.broker.cluster.local import LocalStore
from trilogue.broker.config import DEVELOPMENT, BrokerConfig
from trilogue.broker.coordinators.markers import AT_ONCE
from trilogue.broker.coordinators.tests.asking import PARTITIONS, add, ask, create, end, find, init, read, write
from trilogue.broker.server import serve
from trilogue.broker.tests.jumping import NO_THREADS
from trilogue.broker.tests.running import Raw, running
from trilogue.storage.slices import Slice
from trilogue.wire.apis.add_partitions_to_txn import AddPartitionsToTxnResponse
from trilogue.wire.apis.create_topics import CreateTopicsResponse
from trilogue.wire.apis.delete_topics import DeleteTopicsRequest
from trilogue.wire.apis.describe_transactions import DescribeTransactionsRequest
from trilogue.wire.apis.end_txn import EndTxnResponse
from trilogue.wire.apis.fetch import FetchResponse
from trilogue.wire.apis.find_coordinator import FindCoordinatorResponse
from trilogue.wire.apis.init_producer_id import InitProducerIdResponse
from trilogue.wire.apis.produce import ProduceResponse
from trilogue.wire.errors import BrokerError, ErrorCode
from trilogue.wire.records import ControlType, batches, end_transaction


def committed_values(partition: FetchResponse.Topic.Partition) -> list[bytes]:
    """What a consumer makes of an answer: aborted transactions are left out, from where they begin to their marker."""
    waiting = sorted(partition.aborted_transactions, key=lambda each: each.first_offset)
    aborted: set[int] = set()
    found = []
    records = partition.records.read() if isinstance(partition.records, Slice) else bytes(partition.records)
    for batch in batches(records):
        header = batch.header
        while waiting and waiting[0].first_offset <= header.last_offset:
            aborted.add(waiting.pop(0).producer_id)
        if header.control:
            if end_transaction(batch).type is ControlType.ABORT:
                aborted.discard(header.producer_id)
        elif not (header.transactional and header.producer_id in aborted):
            found += [bytes(record.value) for record in batch.records()]
    return found


# -- time ----------------------------------------------------------------------------------------------


async def state_of(broker: Broker, name: str) -> tuple[str, int]:
    response = await ask(broker, DescribeTransactionsRequest(transactional_ids=[name]), 0)
    (found,) = response.transaction_states
    return found.transaction_state, found.producer_epoch


def test_time_aborts_what_takes_too_long_and_forgets_who_is_silent():
    async def main() -> None:
        async with trio.open_nursery() as nursery:
            server = await nursery.start(partial(serve, config, store=LocalStore()))
            broker = server.broker
            await ask(broker, create("orders"), 5)
            await ask(broker, find("shop"), 2)
            me = await ask(broker, init("shop"), 5)
            writing = write("shop", me.producer_id, 0, 0, ("orders", 0), b"slow")
            answer = await ask(broker, writing, 12)
            assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
            partition = broker.replicas.find("orders", 0)

            await trio.sleep(59.9)
            assert (await state_of(broker, "shop"), partition.last_stable_offset) == (("Ongoing", 0), 0)
            await trio.sleep(0.2)
            assert (await state_of(broker, "shop"), partition.last_stable_offset) == (("CompleteAbort", 1), 2)
            late = await ask(broker, end("shop", me.producer_id, 0, True), 5)
            assert late.error_code == ErrorCode.INVALID_TXN_STATE
            late = await ask(broker, end("shop", me.producer_id, 0, True), 4)
            assert late.error_code == ErrorCode.PRODUCER_FENCED
            assert (await ask(broker, init("shop"), 5)).producer_epoch == 2

            broker.clock.advance(7 * 86_400 - 120)
            await trio.sleep(2)
            assert await state_of(broker, "shop") == ("Empty", 2)
            broker.clock.advance(120)
            await trio.sleep(2)
            gone = await ask(broker, DescribeTransactionsRequest(transactional_ids=["shop"]), 0)
            assert gone.transaction_states[0].error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
            server.stop()

    with tempfile.TemporaryDirectory() as folder:
        config = BrokerConfig.parse(
            {
                **DEVELOPMENT,
                **NO_THREADS,
                "listeners": "PLAINTEXT://127.0.0.1:0",
                "log.dirs": folder,
                "transaction.remove.expired.transaction.cleanup.interval.ms": "1000",
            }
        )
        trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def test_what_was_decided_is_carried_out_after_a_restart(tmp_path):
    """The coordinator's record was written, and no marker: as after a crash in between."""

    async def decide() -> None:
        async with living(tmp_path) as broker:
            await ask(broker, create("orders"), 5)
            await ask(broker, find("shop"), 2)
            me = await ask(broker, init("shop"), 5)
            await ask(broker, write("shop", me.producer_id, 0, 0, ("orders", 0), b"kept"), 12)
            broker.transactions.send = lambda message: None  # the power fails here
            await ask(broker, end("shop", me.producer_id, 0, True), 5)
            assert await state_of(broker, "shop") == ("PrepareCommit", 1)

    async def look() -> None:
        async with living(tmp_path) as broker:
            await trio.testing.wait_all_tasks_blocked(0.05)  # it has been loaded
            assert await state_of(broker, "shop") == ("CompleteCommit", 1)
            answer = await ask(broker, read("orders", 0), 11)
            assert committed_values(answer.responses[0].partitions[0]) == [b"kept"]

    trio.run(decide)
    trio.run(look)


@contextlib.asynccontextmanager
async def living(folder: Path) -> AsyncIterator[Broker]:
    config = BrokerConfig.parse(
        {**DEVELOPMENT, **NO_THREADS, "listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(folder)}
    )
    store = LocalStore(folder / "metadata.sqlite", synced=False)
    async with trio.open_nursery() as nursery:
        server = await nursery.start(partial(serve, config, store=store))
        yield server.broker
        server.stop()
    store.close()


async def begun(broker: Broker, *places: tuple[str, int]) -> InitProducerIdResponse:
    """A transaction of the first generation that includes these."""
    await ask(broker, find("shop"), 2)
    me = await ask(broker, init("shop"), 5)
    answer = await ask(broker, add("shop", me.producer_id, me.producer_epoch, *places), 3)
    codes = {each.partition_error_code for topic in answer.results_by_topic_v3_and_below
             for each in topic.results_by_partition}  # fmt: skip
    assert codes == {ErrorCode.NONE}
    return me


def test_markers_for_very_many_partitions_are_left_to_a_task(tmp_path):
    async def main() -> None:
        async with living(tmp_path) as broker:
            await ask(broker, create("wide", AT_ONCE + 1), 5)
            me = await begun(broker, *(("wide", index) for index in range(AT_ONCE + 1)))
            await ask(broker, end("shop", me.producer_id, 0, True), 4)
            assert await state_of(broker, "shop") == ("PrepareCommit", 0)
            assert (await ask(broker, init("shop"), 5)).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
            with trio.fail_after(5):
                await trio.testing.wait_all_tasks_blocked(0.05)
            assert await state_of(broker, "shop") == ("CompleteCommit", 0)
            ends = {broker.replicas.find("wide", index).log.end_offset for index in range(AT_ONCE + 1)}
            assert ends == {1}

    trio.run(main)


def test_a_deleted_topic_does_not_hold_up_its_transactions(tmp_path):
    async def main() -> None:
        async with living(tmp_path) as broker:
            await ask(broker, create("orders"), 5)
            await ask(broker, create("doomed"), 5)
            me = await begun(broker, ("orders", 0), ("doomed", 1))
            await ask(broker, DeleteTopicsRequest(topic_names=["doomed"], timeout_ms=5000), 5)
            answer = await ask(broker, end("shop", me.producer_id, 0, True), 4)
            assert answer.error_code == ErrorCode.NONE
            assert await state_of(broker, "shop") == ("CompleteCommit", 0)

    trio.run(main)


def test_a_marker_waits_for_a_leader_that_is_not_there(tmp_path):
    """Somebody else leads the partition and cannot be reached; then we lead it."""

    async def main() -> None:
        async with living(tmp_path) as broker:
            await ask(broker, create("orders"), 5)
            me = await begun(broker, ("orders", 0))
            tried = []

            async def other_broker(node_id: int, request: Any, version: int, answer: Any) -> Any:
                tried.append((node_id, request.markers[0].topics[0].name, version))
                raise BrokerError(ErrorCode.BROKER_NOT_AVAILABLE)

            broker.inter_broker = other_broker
            broker.node_id = 99
            await ask(broker, end("shop", me.producer_id, 0, True), 4)
            await trio.sleep(0.03)
            assert set(tried) == {(1, "orders", 2)}
            assert await state_of(broker, "shop") == ("PrepareCommit", 0)
            broker.node_id = 1
            await trio.sleep(0.2)
            assert await state_of(broker, "shop") == ("CompleteCommit", 0)

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


# -- readers see what was committed, and nothing else --------------------------------------------------


@pytest.fixture(scope="module")
def raw() -> Iterator[Raw]:
    with running() as broker, Raw(broker) as client:
        client.ask(find("x"), 2, FindCoordinatorResponse)
        yield client


class Writer:
    """A producer of one generation: what it believes, whether or not it is still true."""

    def __init__(self, name: str, producer_id: int, epoch: int, second: bool) -> None:
        self.name, self.producer_id, self.epoch, self.second = name, producer_id, epoch, second
        self.sequences = dict.fromkeys(range(PARTITIONS), 0)
        self.written: list[tuple[int, bytes]] = []
        self.fenced = False


NAMES = st.sampled_from(["shop", "bank"])


class Readers(RuleBasedStateMachine):
    """Producers come, write, end and are succeeded, in any order.  Their order in the log is the order of writing."""

    client: Raw
    serial = 0

    @initialize()
    def begin(self) -> None:
        Readers.serial += 1
        self.topic = f"orders-{Readers.serial}"
        created = self.client.ask(create(self.topic), 5, CreateTopicsResponse)
        assert created.topics[0].error_code == ErrorCode.NONE
        self.writers: dict[str, Writer] = {}
        self.gone: list[Writer] = []
        self.log: dict[int, list[tuple[Writer, int, bytes]]] = {index: [] for index in range(PARTITIONS)}
        """By partition: who wrote, in which of its transactions, and what."""
        self.ended: dict[tuple[Writer, int], bool] = {}
        self.number: dict[Writer, int] = {}
        self.values = 0

    @rule(name=NAMES, second=st.booleans())
    def come(self, name: str, second: bool) -> None:
        before = self.writers.get(name)
        full = f"{name}-{self.topic}"
        while True:
            answer = self.client.ask(init(full), 5, InitProducerIdResponse)
            if answer.error_code != ErrorCode.CONCURRENT_TRANSACTIONS:
                break
        assert answer.error_code == ErrorCode.NONE
        if before is not None:
            before.fenced = True
            self.ended.setdefault((before, self.number[before]), False)
            self.gone.append(before)
        self.writers[name] = after = Writer(full, answer.producer_id, answer.producer_epoch, second)
        self.number[after] = 0

    @rule(name=NAMES, index=st.integers(0, PARTITIONS - 1), count=st.integers(1, 3))
    def write(self, name: str, index: int, count: int) -> None:
        writer = self.writers.get(name)
        for _ in range(count if writer else 0):
            self.values += 1
            value = b"%d" % self.values
            assert self._write(writer, index, value) == ErrorCode.NONE
            self.log[index].append((writer, self.number[writer], value))
            writer.written.append((index, value))

    def _write(self, writer: Writer, index: int, value: bytes) -> int:
        if not writer.second:
            adding = add(writer.name, writer.producer_id, writer.epoch, (self.topic, index))
            added = self.client.ask(adding, 3, AddPartitionsToTxnResponse)
            code = added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
            if code and not writer.fenced:
                return int(code)
        request = write(
            writer.name, writer.producer_id, writer.epoch, writer.sequences[index], (self.topic, index), value
        )
        answer = self.client.ask(request, 12 if writer.second else 9, ProduceResponse)
        code = answer.responses[0].partition_responses[0].error_code
        if code == ErrorCode.NONE:
            writer.sequences[index] += 1
        return int(code)

    @rule(name=NAMES, committed=st.booleans(), twice=st.booleans())
    def end(self, name: str, committed: bool, twice: bool) -> None:
        writer = self.writers.get(name)
        if writer is None or not writer.written:
            return
        for _ in range(1 + twice):
            answer = self._end(writer, committed)
            assert answer.error_code == ErrorCode.NONE
        self.ended[writer, self.number[writer]] = committed
        self.number[writer] += 1
        writer.written = []
        if writer.second:
            assert (answer.producer_id, answer.producer_epoch) == (writer.producer_id, writer.epoch + 1)
            writer.epoch += 1
            writer.sequences = dict.fromkeys(range(PARTITIONS), 0)

    def _end(self, writer: Writer, committed: bool) -> Any:
        request = end(writer.name, writer.producer_id, writer.epoch, committed)
        return self.client.ask(request, 5 if writer.second else 4, EndTxnResponse)

    @rule(data=st.data(), index=st.integers(0, PARTITIONS - 1), committed=st.booleans())
    def come_too_late(self, data: st.DataObject, index: int, committed: bool) -> None:
        if self.gone:
            late = data.draw(st.sampled_from(self.gone))
            assert self._write(late, index, b"too late") != ErrorCode.NONE
            assert self._end(late, committed).error_code == ErrorCode.PRODUCER_FENCED

    @invariant()
    def readers_see_what_was_committed(self) -> None:
        for index, written in getattr(self, "log", {}).items():
            answer = self.client.ask(read(self.topic, index), 11, FetchResponse)
            expected = []
            for writer, number, value in written:
                how = self.ended.get((writer, number))
                if how is None:
                    break  # open: nobody reads past it
                if how:
                    expected.append(value)
            assert committed_values(answer.responses[0].partitions[0]) == expected


def test_readers_see_what_was_committed_and_nothing_else(raw):
    class Here(Readers):
        client = raw

    run_state_machine_as_test(Here, settings=settings(max_examples=25, stateful_step_count=25))
