"""The store of one process: versions, commits that are whole, sessions, and outliving the process."""

import pytest
import trio

from trilogue.broker.cluster.local import LocalStore
from trilogue.broker.cluster.store import Check, Conflict, Create, Delete, Node, SessionLost, Update


@pytest.fixture(params=["memory", "file"])
def store(request, tmp_path):
    store = LocalStore(tmp_path / "store" if request.param == "file" else None)
    yield store
    store.close()


def commit(store, *ops):
    trio.run(store.session().commit, ops)


def read(store, path):
    return trio.run(store.session().read, path)


def test_a_node_counts_its_changes(store):
    commit(store, Create("/a", b"1"))
    commit(store, Update("/a", b"2", 0), Create("/b", b""))
    commit(store, Update("/a", b"3"))

    assert read(store, "/a") == Node(b"3", 2, created=1)
    assert read(store, "/b") == Node(b"", 0, created=2)


@pytest.mark.parametrize(
    "op",
    [Create("/a", b""), Update("/a", b"", 5), Update("/none", b""), Delete("/a", 5), Delete("/none"), Check("/a", 5)],
    ids=str,
)
def test_a_commit_that_cannot_be_done_does_nothing(store, op):
    commit(store, Create("/a", b"1"))

    with pytest.raises(Conflict):
        commit(store, Create("/new", b""), op)

    assert read(store, "/new") is None
    assert read(store, "/a") == Node(b"1", 0, created=1)


def test_later_ops_of_a_commit_see_the_earlier(store):
    commit(store, Create("/a", b"1"), Update("/a", b"2", 0), Check("/a", 1), Delete("/a"), Create("/a", b"3"))

    assert read(store, "/a") == Node(b"3", 0, created=1)


def test_what_lies_below_goes_along(store):
    commit(store, Create("/a", b""), Create("/a/b", b""), Create("/ab", b""))
    commit(store, Delete("/a"))

    assert [read(store, path) for path in ("/a", "/a/b")] == [None, None]
    assert read(store, "/ab") is not None


def test_ephemeral_nodes_end_with_their_session(store):
    async def story():
        mine, other = store.session(), store.session()
        await mine.commit([Create("/me", b"", ephemeral=True)])
        assert await other.read("/me") == Node(b"", 0, 1, ephemeral=True)
        await other.changed()
        await mine.close()
        assert await other.changed() == {"/me"}
        assert await other.read("/me") is None
        with pytest.raises(SessionLost):
            await mine.commit([Create("/again", b"")])

    trio.run(story)


def test_changes_are_announced_to_everybody_once(store):
    async def story():
        watcher, writer = store.session(), store.session()
        await writer.commit([Create("/a", b"")])
        await writer.commit([Create("/b", b""), Update("/a", b"x")])
        assert await watcher.changed() == {"/a", "/b"}
        with trio.move_on_after(0):
            await watcher.changed()
            raise AssertionError("nothing more has changed")

    trio.run(story)


def test_a_file_outlives_the_store_but_not_the_sessions(tmp_path):
    first = LocalStore(tmp_path / "store")
    commit(first, Create("/kept", b"1"), Create("/gone", b"", ephemeral=True))
    commit(first, Update("/kept", b"2"))
    first.close()

    again = LocalStore(tmp_path / "store")

    assert read(again, "/kept") == Node(b"2", 1, created=1)
    assert read(again, "/gone") is None
    commit(again, Create("/later", b""))
    assert read(again, "/later").created == 3, "numbers go on where they were"
    again.close()
