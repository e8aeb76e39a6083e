"""How brokers for tests begin and end: once, again, by `with`, by `async with`, on trio and on asyncio.

And what is said to whoever asks too early or too late.
"""

import asyncio
import os
from pathlib import Path

import pytest
import trio

from trilogue.broker.network.listeners import CannotStart
from trilogue.testing import Broker, NotRunning, settings, unique_name
from trilogue.testing.tests.test_broker import consume, produce, topics


def test_a_broker_can_be_started_again_and_is_new_then():
    broker = Broker()
    with broker:
        produce(broker, "orders", b"one")
    with broker:
        assert topics(broker) == []


def test_a_broker_that_runs_is_not_started_a_second_time(monkeypatch, tmp_path):
    monkeypatch.setattr(settings, "MEMORY", str(tmp_path))
    with Broker() as broker:
        with pytest.raises(RuntimeError, match=r"running already.*another `Broker\(\)`"):
            broker.__enter__()
        produce(broker, "orders", b"still there")
    assert os.listdir(tmp_path) == []


def test_start_and_stop_for_those_who_have_no_with():
    broker = Broker().start()
    produce(broker, "orders", b"one")
    broker.stop()

    with pytest.raises(NotRunning, match="has ended"):
        broker.stop()


@pytest.mark.parametrize(
    "asked",
    [
        lambda broker: broker.bootstrap,
        lambda broker: broker.server,
        lambda broker: broker.reset(),
        lambda broker: broker.advance(1),
        lambda broker: broker.run_retention(),
    ],
)
def test_whoever_asks_too_early_or_too_late_hears_so(asked):
    broker = Broker()
    with pytest.raises(NotRunning, match=r"has not been started.*with Broker\(\)"):
        asked(broker)
    with broker:
        asked(broker)
    with pytest.raises(NotRunning, match="has ended"):
        asked(broker)


def test_a_start_that_failed_can_be_tried_again():
    with Broker() as other:
        broker = Broker(port=other.port)
        with pytest.raises(CannotStart):
            broker.start()
    with broker:
        assert topics(broker) == []


async def use_it(broker):
    """What both kinds of tasks do with it."""
    path = Path(broker.server.broker.config["log.dirs"][0])
    await broker.reset()
    broker.advance(60)
    await broker.run_retention()
    await broker.run_compaction()
    return path


def test_async_with_works_under_asyncio():
    async def main():
        async with Broker(num_partitions=3) as broker:
            await asyncio.to_thread(produce, broker, "orders", b"one")
            assert await asyncio.to_thread(consume, broker, "orders") == [b"one"]
            return await use_it(broker)

    assert not asyncio.run(main()).exists()


def test_async_with_works_under_trio():
    async def main():
        async with Broker() as broker:
            return await use_it(broker)

    assert not trio.run(main).exists()


def test_asyncio_goes_on_while_a_broker_starts_and_ends():
    async def main():
        turns = 0

        async def turn():
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(turn())
        async with Broker():
            up = turns
        task.cancel()
        return up, turns

    up, down = asyncio.run(main())
    assert 0 < up < down


def test_what_a_test_raises_comes_out_as_it_is_under_asyncio():
    async def main():
        async with Broker():
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(main())


def test_whoever_has_tasks_uses_what_async_with_gives():
    async def main():
        outside = Broker()
        async with outside as broker:
            with pytest.raises(NotRunning, match="belongs to tasks"):
                outside.bootstrap  # noqa: B018
            with pytest.raises(RuntimeError, match="running already"):
                outside.start()
            assert broker.port
        async with outside as broker:
            assert broker.port

    trio.run(main)


def test_unique_names_are_different_and_legal():
    names = {unique_name("orders") for _ in range(100)}

    assert len(names) == 100
    assert all(name.startswith("orders-") and name.replace("-", "").isalnum() for name in names)
