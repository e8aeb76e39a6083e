"""The store of one process: versions, commits that are whole, sessions, and outliving the process."""

import pytest
import trio

from trilogue.broker.cluster import local
from trilogue.broker.cluster.local import LocalStore, write
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


def test_everything_below_goes_along_however_deep_and_whoever_has_just_made_it(store):
    commit(store, Create("/a/b/c", b""), Create("/a/b", b""), Create("/a", b""), Create("/a/d/e/f", b""))
    commit(store, Create("/a/new", b""), Delete("/a"), Create("/a/b", b"again"))

    assert {path: node.data for path, node in store.nodes.items()} == {"/a/b": b"again"}

    commit(store, Create("/a", b""))
    commit(store, Delete("/a"))
    assert store.nodes == {}


def test_many_who_commit_at_once_are_written_together_and_judged_by_themselves(tmp_path, monkeypatch):
    sizes = []

    def counted(database, after, number):
        sizes.append(len(after))
        write(database, after, number)

    monkeypatch.setattr(local, "write", counted)
    store = LocalStore(tmp_path / "store")
    outcomes = []

    async def one(session, number):
        try:
            await session.commit([Create(f"/n{number // 2}", b"%d" % number)])  # every second comes too late
            outcomes.append(number)
        except Conflict as conflict:
            outcomes.append(conflict.path)

    async def all_at_once():
        session = store.session()
        async with trio.open_nursery() as nursery:
            for number in range(100):
                nursery.start_soon(one, session, number)

    trio.run(all_at_once)
    store.close()

    assert len(sizes) <= 2, "the first is written alone at most, and then all the others"
    assert sorted(each for each in outcomes if isinstance(each, str)) == sorted(f"/n{i}" for i in range(50))
    winners = {f"/n{each // 2}": b"%d" % each for each in outcomes if isinstance(each, int)}
    again = LocalStore(tmp_path / "store")
    assert {path: node.data for path, node in again.nodes.items()} == winners
    again.close()


def test_what_could_not_be_written_is_not_so_and_the_next_can_be(tmp_path, monkeypatch):
    store = LocalStore(tmp_path / "store")
    commit(store, Create("/a", b"1"))
    with monkeypatch.context() as patch:
        patch.setattr(local, "write", full)
        with pytest.raises(OSError, match="no room"):
            commit(store, Update("/a", b"2"))
    assert read(store, "/a") == Node(b"1", 0, created=1)

    commit(store, Update("/a", b"3", 0))
    assert read(store, "/a") == Node(b"3", 1, created=1)
    store.close()


def full(*_):
    raise OSError("no room")


def test_whoever_gives_up_has_it_written_for_the_others_all_the_same(tmp_path):
    store = LocalStore(tmp_path / "store")

    async def story():
        session = store.session()
        async with trio.open_nursery() as nursery:
            with trio.CancelScope() as impatient:
                impatient.cancel()
                await session.commit([Create("/mine", b"")])
            nursery.start_soon(session.commit, [Create("/yours", b"")])

    trio.run(story)
    assert sorted(store.nodes) == ["/mine", "/yours"]
    store.close()


def test_a_commit_is_synced(tmp_path):
    """In a power failure what was acknowledged would be lost otherwise, and with a topic its records."""
    store = LocalStore(tmp_path / "store")
    (level,) = store._database.execute("PRAGMA synchronous").fetchone()
    assert level == 2, "FULL: SQLite syncs its log with every transaction"
    store.close()
