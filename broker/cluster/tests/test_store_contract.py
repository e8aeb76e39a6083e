"""What every home of the store does alike: the same stories, told to SQLite, to memory and to ZooKeeper."""

from contextlib import asynccontextmanager

import pytest
import trio

from trilogue.broker.cluster.ensemble import Ensemble
from trilogue.broker.cluster.local import LocalStore
from trilogue.broker.cluster.store import Check, Conflict, Create, Delete, Node, SessionLost, Update

TIMEOUT = 30


@pytest.fixture(params=["memory", "file", pytest.param("zookeeper", marks=pytest.mark.java)])
def home(request, tmp_path):
    """Opens sessions with one and the same store."""
    if request.param == "zookeeper":
        from trilogue.broker.cluster.remote import connect

        server = request.getfixturevalue("zookeeper")
        ensemble = Ensemble(server.address, f"/contract/{tmp_path.name}", session_timeout_seconds=4)
        yield lambda: connect(ensemble, may_begin=True)
    else:
        store = LocalStore(tmp_path / "store" if request.param == "file" else None)

        @asynccontextmanager
        async def session():
            session = store.session()
            yield session
            await session.close()

        yield session
        store.close()


def told(story, *args):
    async def limited():
        with trio.fail_after(TIMEOUT):
            await story(*args)

    trio.run(limited)


async def announced(session, wanted):
    """Wait until all of these have been announced; returns what was."""
    heard = set()
    while not wanted <= heard:
        heard |= await session.changed()
    return heard


def test_a_node_counts_its_changes(home):
    async def story():
        async with home() as session:
            await session.commit([Create("/a", b"1")])
            await session.commit([Update("/a", b"2", 0), Create("/b", b"")])
            await session.commit([Update("/a", b"3")])

            first, second = await session.read("/a"), await session.read("/b")
            assert first == Node(b"3", 2, first.created)
            assert second == Node(b"", 0, second.created)
            assert second.created > first.created

    told(story)


@pytest.mark.parametrize(
    "op",
    [Create("/a", b""), Update("/a", b"", 5), Update("/none", b""), Delete("/a", 5), Delete("/none"), Check("/a", 5)],
    ids=str,
)
def test_a_commit_that_cannot_be_done_does_nothing(home, op):
    async def story():
        async with home() as session:
            await session.commit([Create("/a", b"1")])
            before = await session.tree()

            with pytest.raises(Conflict) as conflict:
                await session.commit([Create("/new", b""), op])

            assert conflict.value.path == op.path
            assert await session.tree() == before

    told(story)


def test_later_ops_of_a_commit_see_the_earlier(home):
    async def story():
        async with home() as session:
            await session.commit(
                [Create("/a", b"1"), Update("/a", b"2", 0), Check("/a", 1), Delete("/a"), Create("/a", b"3")]
            )
            found = await session.read("/a")
            assert found == Node(b"3", 0, found.created)

    told(story)


def test_parents_need_not_be_there_and_are_not_seen(home):
    async def story():
        async with home() as session:
            await session.commit([Create("/x/y/z", b"deep"), Create("/x/y/w", b"too")])
            await session.commit([Create("/p", b""), Create("/p/q/r", b"")])
            assert set(await session.tree()) == {"/x/y/z", "/x/y/w", "/p", "/p/q/r"}
            assert await session.read("/x/y") is None
            assert await session.read_all(["/x", "/p"]) == {"/x": None, "/p": await session.read("/p")}

    told(story)


def test_what_lies_below_goes_along(home):
    async def story():
        async with home() as session, home() as other:
            await session.commit([Create("/a", b""), Create("/a/b/c", b""), Create("/a/d", b""), Create("/ab", b"")])
            await announced(other, {"/a", "/a/b/c", "/a/d", "/ab"})
            await session.commit([Delete("/a/b/c"), Delete("/a"), Create("/a", b"again")])

            assert set(await session.tree()) == {"/a", "/ab"}
            assert {"/a", "/a/d"} <= await announced(other, {"/a", "/a/d"})
            assert await other.read_all(["/a/d"]) == {"/a/d": None}

    told(story)


def test_a_node_that_comes_again_was_made_later(home):
    async def story():
        async with home() as session:
            await session.commit([Create("/me", b"", ephemeral=True)])
            first = (await session.read("/me")).created
            await session.commit([Delete("/me")])
            await session.commit([Create("/me", b"", ephemeral=True)])
            assert (await session.read("/me")).created > first

    told(story)


def test_ephemeral_nodes_end_with_their_session(home):
    async def story():
        async with home() as other, home() as mine:
            await other.tree()
            await mine.commit([Create("/ids/me", b"", ephemeral=True)])
            await announced(other, {"/ids/me"})
            assert (await other.read_all(["/ids/me"]))["/ids/me"].ephemeral
            assert (await mine.owns("/ids/me"), await other.owns("/ids/me")) == (True, False)
            await mine.close()
            await announced(other, {"/ids/me"})
            assert await other.read("/ids/me") is None
            assert not await other.owns("/ids/me")
            with pytest.raises(SessionLost):
                await mine.commit([Create("/again", b"")])

    told(story)


def test_changes_are_announced_to_everybody(home):
    async def story():
        async with home() as watcher, home() as writer:
            await watcher.tree()
            await writer.commit([Create("/a", b"")])
            await writer.commit([Create("/b", b""), Update("/a", b"x"), Check("/a", 1)])
            for each in (watcher, writer):
                await announced(each, {"/a", "/b"})
                assert (await each.read_all(["/a"]))["/a"].data == b"x"

    told(story)


def test_a_session_begins_with_the_first_epoch_and_waits_for_the_next(home):
    async def story():
        async with home() as session:
            assert (session.epoch, await session.renewed(0)) == (1, 1)
            with trio.move_on_after(0.1):
                await session.renewed(1)
                raise AssertionError("there was no other")

    told(story)


def test_writers_lose_nothing_and_do_nothing_twice(home):
    """Four of them count in one node, and each in one of its own; a reader hears of everything."""
    writers, rounds = 4, 100

    async def count(session, path):
        while True:
            node = await session.read(path)
            try:
                await session.commit([Update(path, str(int(node.data) + 1).encode(), node.version)])
                return
            except Conflict:
                await trio.lowlevel.checkpoint()

    async def write(number):
        async with home() as session:
            await session.commit([Create(f"/own/{number}", b"0")])
            for at in range(rounds):
                await count(session, "/shared" if at % 10 == 0 else f"/own/{number}")

    async def story():
        async with home() as reader, home() as judge:
            await judge.commit([Create("/shared", b"0")])
            known = dict(await reader.tree())

            async def follow_to(truth):
                while {path: node for path, node in known.items() if node is not None} != truth:
                    known.update(await reader.read_all(sorted(await reader.changed())))

            async with trio.open_nursery() as writing:
                for number in range(writers):
                    writing.start_soon(write, number)
            truth = await judge.tree()
            assert {path: node.data for path, node in truth.items()} == {
                "/shared": str(writers * rounds // 10).encode(),
                **{f"/own/{number}": str(rounds * 9 // 10).encode() for number in range(writers)},
            }
            await follow_to(truth)

    told(story)
