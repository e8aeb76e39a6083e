"""The store of one process: outliving the process.  `test_store_contract.py` has what it shares with the other."""

import trio

from trilogue.broker.cluster.local import LocalStore
from trilogue.broker.cluster.store import Create, Node, Update


def commit(store, *ops):
    trio.run(store.session().commit, ops)


def read(store, path):
    return trio.run(store.session().read, path)


def test_commits_are_numbered_and_heard_of_once():
    async def story():
        store = LocalStore()
        watcher, writer = store.session(), store.session()
        await writer.commit([Create("/a", b"")])
        await writer.commit([Create("/b", b""), Update("/a", b"x")])
        assert await watcher.changed() == {"/a", "/b"}
        assert await watcher.read("/b") == Node(b"", 0, created=2)
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
