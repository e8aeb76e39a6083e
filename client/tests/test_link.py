"""A connection among tasks: pipelining, cancellation, and brokers that misbehave."""

from contextlib import asynccontextmanager

import pytest
import trio

from trilogue.client.errors import ConnectionLost, TimedOut
from trilogue.client.link import connect
from trilogue.client.tasks import Tasks
from trilogue.client.world import Address
from trilogue.testing import Broker
from trilogue.wire.apis.fetch import FetchRequest, FetchResponse
from trilogue.wire.apis.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from trilogue.wire.apis.metadata import MetadataRequest, MetadataResponse

ASK = MetadataRequest(topics=[])


@asynccontextmanager
async def linked():
    async with Broker() as broker:
        link = await connect(Tasks(), Address.parse(broker.bootstrap))
        try:
            yield link
        finally:
            link.close()


@asynccontextmanager
async def stand_in(behave):
    """A server of the test's own making; `behave` gets each stream."""
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, behave, listeners)
        yield Address("127.0.0.1", listeners[0].socket.getsockname()[1])
        nursery.cancel_scope.cancel()


def waiting(milliseconds):
    """A question that takes as long as it is told to: a fetch of nothing new."""
    topic = FetchRequest.Topic(
        topic="t", partitions=[FetchRequest.Topic.Partition(partition=0, fetch_offset=0, partition_max_bytes=1)]
    )
    return FetchRequest(max_wait_ms=milliseconds, min_bytes=1, topics=[topic])


async def make_topic(link):
    request = MetadataRequest(topics=[MetadataRequest.Topic(name="t")])
    while (await link.call(request, MetadataResponse)).topics[0].error_code:
        await trio.lowlevel.checkpoint()


def test_several_questions_are_on_their_way_at_once():
    async def main():
        async with linked() as link:
            tickets = [await link.ask(ASK, MetadataResponse) for _ in range(20)]
            answers = [await link.answer(ticket) for ticket in reversed(tickets)]
            assert [answer.controller_id for answer in answers] == [1] * 20

    trio.run(main)


def test_many_tasks_share_a_link():
    async def main():
        async with linked() as link:
            answers = []

            async def one():
                answers.append((await link.call(ASK, MetadataResponse)).controller_id)

            async with trio.open_nursery() as nursery:
                for _ in range(50):
                    nursery.start_soon(one)
            assert answers == [1] * 50

    trio.run(main)


def test_whoever_is_cancelled_leaves_the_link_to_the_others():
    async def main():
        async with linked() as link:
            await make_topic(link)
            got = []

            async def patient():
                got.append(await link.call(ASK, MetadataResponse))

            async with trio.open_nursery() as nursery:
                with trio.move_on_after(0.01):  # asks first and receives for all, and then goes away
                    nursery.start_soon(patient)
                    await link.call(waiting(100), FetchResponse, cap=12)
            assert len(got) == 1
            assert (await link.call(ASK, MetadataResponse)).controller_id == 1

    trio.run(main)


def test_an_answer_that_comes_too_late_does_not_spoil_the_next():
    async def main():
        async with linked() as link:
            await make_topic(link)
            with pytest.raises(TimedOut, match="has not answered in time"):
                await link.call(waiting(50), FetchResponse, cap=12, seconds=0.01)
            assert (await link.call(ASK, MetadataResponse)).controller_id == 1

    trio.run(main)


def test_a_broker_that_hangs_up():
    async def main():
        async def behave(stream):
            await stream.receive_some()
            await stream.aclose()

        async with stand_in(behave) as address:
            with pytest.raises(ConnectionLost, match="has hung up"):
                await connect(Tasks(), address)

    trio.run(main)


def test_somebody_who_does_not_speak_our_protocol():
    async def main():
        async def behave(stream):
            await stream.receive_some()
            await stream.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            await trio.sleep_forever()

        async with stand_in(behave) as address:
            with pytest.raises(ConnectionLost, match="does not speak Kafka's protocol"):
                await connect(Tasks(), address)

    trio.run(main)


def test_a_broker_that_says_nothing():
    async def main():
        async def behave(stream):
            await trio.sleep_forever()

        async with stand_in(behave) as address:
            with pytest.raises(TimedOut):
                await connect(Tasks(), address, seconds=0.02)

    trio.run(main)


def test_a_closed_link_says_so():
    async def main():
        async with linked() as link:
            link.close()
            with pytest.raises(ConnectionLost, match="is closed"):
                await link.call(ASK, MetadataResponse)

    trio.run(main)


def test_the_caller_may_hold_the_version_down():
    async def main():
        async with linked() as link:
            request = ListOffsetsRequest(replica_id=-1, topics=[])
            assert (await link.ask(request, ListOffsetsResponse, cap=2)).version == 2
            assert (await link.ask(request, ListOffsetsResponse)).version > 2

    trio.run(main)
