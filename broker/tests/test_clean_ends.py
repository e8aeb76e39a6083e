"""What a broker's directories say of its end, by which the others judge whether it has lost anything."""

import json
import random
from pathlib import Path

import pytest
import trio

from trilogue.broker.cluster.image import broker_json, broker_path
from trilogue.broker.cluster.local import LocalStore
from trilogue.broker.cluster.store import Create
from trilogue.broker.config import DEVELOPMENT, BrokerConfig
from trilogue.broker.network.listeners import CannotStart
from trilogue.broker.server import Server, serve
from trilogue.storage.directory import CLEAN_SHUTDOWN


def config(folder: Path) -> BrokerConfig:
    return BrokerConfig.parse({**DEVELOPMENT, "listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(folder)})


async def live_once(folder: Path, store: LocalStore) -> int:
    """A whole life; the epoch under which it was registered."""
    async with trio.open_nursery() as nursery:

        async def live(task_status: trio.TaskStatus[Server] = trio.TASK_STATUS_IGNORED) -> None:
            await serve(config(folder), store=store, chance=random.Random(1), task_status=task_status)

        server = await nursery.start(live)
        epoch = server.broker.image.brokers[1].epoch
        server.stop()
    return epoch


def said_at_the_end(folder: Path) -> int:
    return json.loads((folder / CLEAN_SHUTDOWN).read_bytes())["brokerEpoch"]


def test_an_end_in_order_names_the_epoch_of_this_run(tmp_path: Path):
    async def story() -> None:
        store = LocalStore()
        epoch = await live_once(tmp_path, store)
        assert said_at_the_end(tmp_path) == epoch
        assert await live_once(tmp_path, store) > epoch

    trio.run(story)


def test_who_ends_before_it_was_registered_does_not_speak_for_a_run_that_was_killed(tmp_path: Path):
    async def story() -> None:
        store = LocalStore()
        await live_once(tmp_path, store)
        (tmp_path / CLEAN_SHUTDOWN).unlink()  # as if it had been killed,
        await store.session().commit([Create(broker_path(1), broker_json([], None), ephemeral=True)])
        with pytest.raises(ExceptionGroup) as caught:  # and the store did not know it yet
            await serve(config(tmp_path), store=store, chance=random.Random(1))
        assert caught.group_contains(CannotStart)
        assert said_at_the_end(tmp_path) == -1

    trio.run(story)
