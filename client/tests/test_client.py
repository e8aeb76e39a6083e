"""The client of a cluster: routing, patience, writing and reading, in both worlds."""

import pytest
import trio

from trilogue.client.blocking import Blocking, run
from trilogue.client.client import Client
from trilogue.client.errors import CannotConnect, ConnectionLost, NotSpoken, TimedOut
from trilogue.client.offsets import EARLIEST, LATEST, offsets
from trilogue.client.reader import Reader
from trilogue.client.tasks import Tasks
from trilogue.client.world import Address
from trilogue.client.writer import BATCH_BYTES, Draft, Writer, Written
from trilogue.testing import Broker
from trilogue.wire.compression import Codec
from trilogue.wire.errors import BrokerError, ErrorCode

NOWHERE = Address("127.0.0.1", 1)


def trying(outcomes):
    """An attempt with these outcomes, one after the other; and a world whose time is told by its pauses."""
    left = iter(outcomes)

    class Still:
        time = 0.0

        def now(self):
            return self.time

        async def pause(self, seconds):
            self.time += seconds

    async def attempt():
        outcome = next(left)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    world = Still()
    return Client([NOWHERE], world, timeout=1.0), attempt, world


LATER = [
    BrokerError(ErrorCode.LEADER_NOT_AVAILABLE),
    BrokerError(ErrorCode.NOT_CONTROLLER),
    BrokerError(ErrorCode.BROKER_NOT_AVAILABLE),
    ConnectionLost("gone"),
    CannotConnect("not yet"),
    TimedOut("slow"),
]
NEVER = [BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION), NotSpoken("no")]


@pytest.mark.parametrize("error", LATER, ids=repr)
def test_what_may_go_well_later_is_tried_again_after_growing_pauses(error):
    client, attempt, world = trying([error, error, "done"])

    assert run(client.persist(attempt)) == "done"
    assert world.time == pytest.approx(0.02 + 0.04)


@pytest.mark.parametrize("error", NEVER, ids=repr)
def test_what_is_refused_for_good_is_raised_at_once(error):
    client, attempt, world = trying([error, "never seen"])

    with pytest.raises(type(error)):
        run(client.persist(attempt))
    assert world.time == 0


def test_patience_ends_and_the_last_trouble_is_raised():
    client, attempt, world = trying([ConnectionLost(str(i)) for i in range(99)])

    with pytest.raises(ConnectionLost, match="5"):
        run(client.persist(attempt))
    assert 0.5 < world.time <= 1.0


def test_nobody_at_any_of_the_addresses():
    async def main():
        async with Client([NOWHERE, Address("127.0.0.1", 2)], Tasks()):
            pass

    with pytest.raises(CannotConnect, match=r"nobody answers at 127\.0\.0\.1:2"):
        trio.run(main)


def test_the_first_that_answers_will_do():
    async def main():
        async with Broker() as broker, Client([NOWHERE, Address.parse(broker.bootstrap)], Tasks()) as client:
            assert (await client.metadata(None)).controller_id == 1

    trio.run(main)


async def story(bootstrap, world):
    """Write with and without keys, then read all of it."""
    async with Client([Address.parse(bootstrap)], world, timeout=5) as client:
        topic = await client.persist(lambda: client.topic("t", create=True))
        assert len(topic.partitions) == 3
        drafts = [Draft(b"key %d" % i, b"value %d" % i, [("h", b"x"), ("h", None)], 1000 + i) for i in range(50)]
        writer = Writer(client, "t", 3, codec=Codec.GZIP)
        written = await writer.write(drafts)
        assert sum(each.count for each in written) == 50
        assert await writer.write([Draft(None, None, partition=2)]) == [
            Written(2, {each.partition: each.count for each in written}[2], 1)
        ]
        starts, ends = await offsets(client, "t", range(3), EARLIEST), await offsets(client, "t", range(3), LATEST)
        assert (starts, sum(ends.values())) == (dict.fromkeys(range(3), 0), 51)
        reader = Reader(client, "t", starts)
        found = []
        while reader.positions != ends:
            found += await reader.poll(1)
        records = sorted((bytes(each.record.key or b""), each.record) for each in found)
        assert records[0][1][2:4] == (None, None)
        assert {key for key, _ in records[1:]} == {draft.key for draft in drafts}
        assert [(name, value and bytes(value)) for name, value in records[1][1].headers] == [("h", b"x"), ("h", None)]
        assert await reader.poll(0) == []


def test_writing_and_reading_among_tasks():
    async def main():
        async with Broker(num_partitions=3) as broker:
            await story(broker.bootstrap, Tasks())

    trio.run(main)


def test_writing_and_reading_on_a_plain_socket():
    with Broker(num_partitions=3) as broker:
        run(story(broker.bootstrap, Blocking()))


def test_more_than_fits_into_one_batch_goes_in_several_in_order():
    async def main():
        async with Broker() as broker, Client([Address.parse(broker.bootstrap)], Tasks()) as client:
            await client.persist(lambda: client.topic("t", create=True))
            large = [Draft(None, bytes([i]) * (BATCH_BYTES // 2)) for i in range(5)]
            written = await Writer(client, "t", 1).write(large)
            assert [each.base_offset for each in written] == [0, 1, 2, 3, 4]
            reader, found = Reader(client, "t", {0: 0}), []
            while reader.positions[0] < 5:
                found += await reader.poll(1)
            assert [each.record.value[0] for each in found] == [0, 1, 2, 3, 4]

    trio.run(main)


def test_reading_from_the_middle_of_a_batch():
    async def main():
        async with Broker() as broker, Client([Address.parse(broker.bootstrap)], Tasks()) as client:
            await client.persist(lambda: client.topic("t", create=True))
            await Writer(client, "t", 1).write([Draft(None, b"%d" % i) for i in range(10)])
            found = await Reader(client, "t", {0: 7}).poll(1)
            assert [(each.record.offset, bytes(each.record.value)) for each in found] == [
                (7, b"7"),
                (8, b"8"),
                (9, b"9"),
            ]

    trio.run(main)


def test_an_offset_past_the_end_is_refused():
    async def main():
        async with Broker() as broker, Client([Address.parse(broker.bootstrap)], Tasks()) as client:
            await client.persist(lambda: client.topic("t", create=True))
            with pytest.raises(BrokerError) as refused:
                await Reader(client, "t", {0: 7}).poll(1)
            assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE

    trio.run(main)


def test_a_record_that_is_too_large_is_refused_for_good():
    async def main():
        async with Broker() as broker, Client([Address.parse(broker.bootstrap)], Tasks()) as client:
            await client.persist(lambda: client.topic("t", create=True))
            with pytest.raises(BrokerError) as refused:
                await Writer(client, "t", 1).write([Draft(None, bytes(2 << 20))])
            assert refused.value.code == ErrorCode.MESSAGE_TOO_LARGE

    trio.run(main)


def test_a_partition_that_is_not_there():
    async def main():
        async with Broker() as broker, Client([Address.parse(broker.bootstrap)], Tasks()) as client:
            await client.persist(lambda: client.topic("t", create=True))
            with pytest.raises(BrokerError, match="t has 1 partitions, so no partition 7"):
                await client.leader("t", 7)

    trio.run(main)


def test_a_broker_that_was_restarted_is_found_again():
    with Broker() as broker:
        port = broker.port
        client = Client([Address.parse(broker.bootstrap)], Blocking(), timeout=5)
        run(client.metadata(None))
    with Broker(port=port):
        answer = run(client.persist(lambda: client.metadata(None)))
        assert answer.controller_id == 1
        client.close()
