"""The store in ZooKeeper, when things go wrong: connections, sessions, servers, people with a shell."""

import random
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing
from kazoo.client import KazooClient

from trilogue.broker.cluster import remote
from trilogue.broker.cluster.ensemble import Ensemble
from trilogue.broker.cluster.image import BROKERS, CLUSTER_ID, CONTROLLER
from trilogue.broker.cluster.remote import connect
from trilogue.broker.cluster.store import Check, Conflict, Create, Delete, Refused, SessionLost, Unavailable, Update
from trilogue.broker.cluster.tests.cutting import Cutter

pytestmark = pytest.mark.java

TIMEOUT = 60
SESSION = 2.0
ME = f"{BROKERS}1"


@pytest.fixture
def ensemble(zookeeper, tmp_path):
    return Ensemble(zookeeper.address, f"/faults/{tmp_path.name}", session_timeout_seconds=SESSION)


def told(story, *args):
    async def limited():
        with trio.fail_after(TIMEOUT):
            await story(*args)

    trio.run(limited)


async def announced(session, wanted):
    heard = set()
    while not wanted <= heard:
        heard |= await session.changed()
    return heard


@asynccontextmanager
async def by_hand(ensemble):
    """A person with a client."""
    client = KazooClient(hosts=ensemble.hosts, client_id=None)
    await trio.to_thread.run_sync(client.start)
    client.chroot = ensemble.chroot
    try:
        yield client
    finally:
        await trio.to_thread.run_sync(client.stop)
        client.close()


async def expire(ensemble, session):
    """Somebody else ends our session: what ZooKeeper does with one that is silent, without the wait."""
    link = session._link
    double = KazooClient(hosts=ensemble.hosts, client_id=link._client.client_id)
    await trio.to_thread.run_sync(double.start)
    await trio.to_thread.run_sync(double.stop)
    double.close()


# -- sessions --------------------------------------------------------------------------------------


def test_after_a_session_is_over_there_is_another_and_what_changed_meanwhile_is_announced(ensemble):
    async def story():
        async with connect(ensemble, may_begin=True) as mine, connect(ensemble, may_begin=True) as other:
            await mine.commit([Create(ME, b"{}", ephemeral=True), Create(CONTROLLER, b"{}", ephemeral=True)])
            await mine.tree()
            await other.tree()
            first = (await other.read(ME)).created
            await announced(mine, {ME})

            await expire(ensemble, mine)

            assert await mine.renewed(1) == 2
            assert {ME, CONTROLLER} <= await announced(mine, {ME, CONTROLLER})
            assert await mine.read_all([ME, CONTROLLER]) == {ME: None, CONTROLLER: None}
            await announced(other, {ME, CONTROLLER})
            await mine.commit([Create(ME, b"{}", ephemeral=True)])
            assert (await other.read(ME)).created > first, "its epoch is another"
            await other.commit([Create("/later", b"")])
            await announced(mine, {"/later"})

    told(story)


def test_a_session_that_is_abandoned_is_given_up_at_once_and_renewed(ensemble):
    async def story():
        async with connect(ensemble, may_begin=True) as mine, connect(ensemble, may_begin=True) as other:
            await other.tree()
            await mine.commit([Create(ME, b"{}", ephemeral=True)])
            await announced(other, {ME})
            with trio.fail_after(SESSION / 2):
                await trio.to_thread.run_sync(mine.abandon)  # as a watchdog's thread would
                await announced(other, {ME})
            assert await other.read(ME) is None
            assert await mine.renewed(1) == 2
            await mine.commit([Create(ME, b"{}", ephemeral=True)])

    told(story)


def test_a_silent_server_loses_the_session_by_our_own_clock(own_zookeeper):
    """kazoo would wait for its word for ever.  What our earlier session has left behind is cleared away."""
    ensemble = Ensemble(own_zookeeper.address, "/x", session_timeout_seconds=SESSION)

    async def story():
        async with connect(ensemble, may_begin=True) as mine:
            await mine.commit([Create(ME, b"{}", ephemeral=True), Create(CLUSTER_ID, b"{}"), Create("/n", b"")])
            first = (await mine.read(ME)).created
            await mine.tree()
            own_zookeeper.freeze()
            began = trio.current_time()
            with pytest.raises((Unavailable, SessionLost)):
                await mine.commit([Update("/n", b"perhaps")])
            assert trio.current_time() - began < 4 * SESSION
            own_zookeeper.thaw()
            assert await mine.renewed(1) >= 2
            await mine.commit([Create(ME, b"{}", ephemeral=True)])
            await trio.sleep(1.5 * SESSION)
            assert (await mine.read(ME)).created > first, "and it does not vanish with the old session"
            assert await mine.owns(ME)

    told(story)


def test_a_server_that_was_killed_comes_back_with_everything(own_zookeeper):
    ensemble = Ensemble(own_zookeeper.address, "/x", session_timeout_seconds=SESSION)

    async def story():
        async with connect(ensemble, may_begin=True) as mine, connect(ensemble, may_begin=True) as other:
            await mine.commit([Create(CLUSTER_ID, b"{}"), Create("/kept", b"1")])
            await mine.tree()
            own_zookeeper.kill()
            with pytest.raises((Unavailable, SessionLost)):
                await mine.commit([Update("/kept", b"2", 0)])
            with pytest.raises(Unavailable):
                await mine.read("/kept")
            await trio.to_thread.run_sync(own_zookeeper.start)
            while True:
                try:
                    node = await other.read("/kept")
                    await other.commit([Update("/kept", b"3", node.version)])
                    break
                except (Unavailable, SessionLost):
                    await trio.sleep(0.1)
            await announced(mine, {"/kept"})
            assert (await mine.read("/kept")).data == b"3"

    told(story)


def test_a_server_that_has_forgotten_everything_is_not_believed(own_zookeeper):
    """Else all topics would be gone, and their data with them."""
    ensemble = Ensemble(own_zookeeper.address, "", session_timeout_seconds=SESSION)

    async def story():
        async with connect(ensemble, may_begin=True) as mine:
            await mine.commit([Create(CLUSTER_ID, b"{}"), Create("/brokers/topics/t", b"{}")])
            await mine.tree()
            await mine.changed()
            own_zookeeper.kill()
            (own_zookeeper.folder / "data").rename(own_zookeeper.folder / "lost")
            await trio.to_thread.run_sync(own_zookeeper.start)
            with trio.move_on_after(4 * SESSION):
                raise AssertionError(f"announced: {await mine.changed()}")
            assert mine.epoch == 1
            with pytest.raises(Unavailable):
                await mine.commit([Create("/x", b"")])
            # The data comes back: so do we.
            own_zookeeper.kill()
            (own_zookeeper.folder / "data").rename(own_zookeeper.folder / "empty")
            (own_zookeeper.folder / "lost").rename(own_zookeeper.folder / "data")
            await trio.to_thread.run_sync(own_zookeeper.start)
            await mine.renewed(1)
            assert (await mine.read("/brokers/topics/t")).data == b"{}"

    told(story)


def test_a_writer_whose_sessions_end_again_and_again_loses_nothing_and_does_nothing_twice(ensemble):
    """After `SessionLost` a commit may have been done: whoever looks, and ties it to versions, is right either way."""
    rounds, ends = 150, 5

    async def write(session):
        done = 0
        while done < rounds:
            try:
                if await session.read(f"/done/{done}") is not None:
                    done += 1
                    continue
                node = await session.read("/sum")
                counted = Update("/sum", str(int(node.data) + 1).encode(), node.version)
                await session.commit([counted, Create(f"/done/{done}", b"")])
                done += 1
            except (Conflict, SessionLost, Unavailable):
                await trio.lowlevel.checkpoint()

    async def story():
        async with connect(ensemble, may_begin=True) as judge, connect(ensemble, may_begin=True) as mine:
            await judge.commit([Create("/sum", b"0")])
            known = dict(await judge.tree())
            async with trio.open_nursery() as nursery:
                nursery.start_soon(write, mine)
                for number in range(ends):
                    await expire(ensemble, mine)
                    await mine.renewed(number + 1)
            sum_ = await judge.read("/sum")
            assert (int(sum_.data), sum_.version) == (rounds, rounds)
            while known.get(f"/done/{rounds - 1}") is None or known["/sum"] != sum_:
                known.update(await judge.read_all(sorted(await judge.changed())))
            assert {f"/done/{number}" for number in range(rounds)} <= set(known)

    told(story)


# -- broken connections ----------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_commit_whose_answer_is_lost_is_done_once(zookeeper, tmp_path, when):
    async def story():
        async with trio.open_nursery() as nursery:
            cutter = Cutter(zookeeper.port)
            await nursery.start(cutter.run)
            ensemble = Ensemble(f"127.0.0.1:{cutter.port}", f"/cut/{tmp_path.name}", session_timeout_seconds=10)
            async with connect(ensemble, may_begin=True) as session:
                await session.commit([Create("/n", b"0")])
                verdicts = [when]
                cutter.verdict = lambda: verdicts.pop() if verdicts else None
                await session.commit([Update("/n", b"1", 0)])
                node = await session.read("/n")
                assert (node.data, node.version, cutter.cuts, session.epoch) == (b"1", 1, 1, 1)
                verdicts.append(when)
                with pytest.raises(Conflict):
                    await session.commit([Update("/n", b"2", 0)])
            nursery.cancel_scope.cancel()

    told(story)


def test_changes_announced_while_we_were_cut_off_are_heard_of(zookeeper, tmp_path):
    async def story():
        async with trio.open_nursery() as nursery:
            cutter = Cutter(zookeeper.port)
            await nursery.start(cutter.run)
            path = f"/cut/{tmp_path.name}"
            direct = Ensemble(zookeeper.address, path, session_timeout_seconds=10)
            cut = Ensemble(f"127.0.0.1:{cutter.port}", path, session_timeout_seconds=10)
            async with connect(direct, may_begin=True) as other, connect(cut, may_begin=True) as mine:
                await mine.commit([Create("/n", b"0")])
                await mine.tree()
                verdicts = ["before"]
                cutter.verdict = lambda: verdicts.pop() if verdicts else None
                async with trio.open_nursery() as both:
                    both.start_soon(mine.commit, [Create("/mine", b"")])
                    for number in range(50):
                        await other.commit([Create(f"/of/{number}", b"")])
                await announced(mine, {f"/of/{number}" for number in range(50)})
                assert mine.epoch == 1
            nursery.cancel_scope.cancel()

    told(story)


def test_four_writers_over_bad_lines_lose_nothing_and_do_nothing_twice(zookeeper, tmp_path):
    chance = random.Random(7)
    rounds = 100

    async def write(cutter, number):
        path = f"/cut/{tmp_path.name}"
        ensemble = Ensemble(f"127.0.0.1:{cutter.port}", path, session_timeout_seconds=10)
        async with connect(ensemble, may_begin=True) as session:
            done = 0
            while done < rounds:
                node = await session.read("/sum")
                mark = Create(f"/done/{number}/{done}", b"")
                try:
                    await session.commit([Update("/sum", str(int(node.data) + 1).encode(), node.version), mark])
                    done += 1
                except Conflict as conflict:
                    if conflict.path != "/sum":
                        raise AssertionError("it was done, and is done again") from conflict

    async def story():
        direct = Ensemble(zookeeper.address, f"/cut/{tmp_path.name}", session_timeout_seconds=10)
        async with connect(direct, may_begin=True) as judge, trio.open_nursery() as nursery:
            await judge.commit([Create("/sum", b"0")])
            cutters = [Cutter(zookeeper.port) for _ in range(4)]
            async with trio.open_nursery() as writing:
                for number, cutter in enumerate(cutters):
                    await nursery.start(cutter.run)
                    cutter.verdict = lambda: chance.choice(["before", "after"]) if chance.random() < 0.03 else None
                    writing.start_soon(write, cutter, number)
            assert (await judge.read("/sum")).data == b"400"
            assert (await judge.read("/sum")).version == 400
            assert sum(cutter.cuts for cutter in cutters) >= 10
            nursery.cancel_scope.cancel()

    told(story)


def test_a_commit_that_nobody_waits_for_any_more_does_not_confuse_the_next(ensemble):
    async def story():
        async with connect(ensemble, may_begin=True) as mine, connect(ensemble, may_begin=True) as other:
            await mine.commit([Create("/n", b"")])
            await other.tree()
            for number in range(20):
                with trio.CancelScope() as scope:
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(mine.commit, [Create(f"/c/{number}", b"")])
                        await trio.testing.wait_all_tasks_blocked()
                        scope.cancel()
                await mine.commit([Update("/n", b"")])
            made = {path for path in await other.tree() if path.startswith("/c/")}
            assert (await other.read("/n")).version == 20
            assert set(await mine.tree()) == {"/n", *made}

    told(story)


# -- people ----------------------------------------------------------------------------------------


def test_what_somebody_writes_by_hand_is_found_by_looking_at_everything(ensemble, monkeypatch):
    monkeypatch.setattr(remote, "COMPARE_SECONDS", 0.3)

    async def story():
        async with connect(ensemble, may_begin=True) as session, by_hand(ensemble) as person:
            await session.commit([Create("/a", b""), Create("/b", b"")])
            await session.tree()
            await announced(session, {"/a", "/b"})
            await session.read_all(["/a", "/b"])

            def shell():
                person.set("/a", b"by hand")
                person.delete("/b")
                person.create("/c/d", b"new", makepath=True)

            await trio.to_thread.run_sync(shell)
            assert {"/a", "/b", "/c/d"} <= await announced(session, {"/a", "/b", "/c/d"})
            found = await session.read_all(["/a", "/b"])
            assert (found["/a"].data, found["/b"]) == (b"by hand", None)

    told(story)


def test_somebody_removes_our_own_nodes(ensemble):
    async def story():
        async with connect(ensemble, may_begin=True) as session, by_hand(ensemble) as person:
            await session.commit([Create(CLUSTER_ID, b"{}")])
            await session.tree()
            await trio.to_thread.run_sync(person.delete, session._own(session._link))
            await session.commit([Create("/a", b"")])
            await trio.to_thread.run_sync(lambda: person.delete("/changes", recursive=True))
            while True:
                try:
                    await session.commit([Create("/b", b"")])
                    break
                except Unavailable:
                    await trio.sleep(0.1)
            await announced(session, {"/b"})

    told(story)


# -- limits ----------------------------------------------------------------------------------------


def test_a_commit_that_zookeeper_would_hang_up_on_is_refused(ensemble):
    async def story():
        async with connect(ensemble, may_begin=True) as session:
            with pytest.raises(Refused, match="a change of 10"):
                await session.commit([Create("/big", bytes(1_048_000))])
            await session.commit([Create("/small", bytes(1_000_000))])
            assert len((await session.read("/small")).data) == 1_000_000

    told(story)


def test_many_nodes_come_and_go(ensemble):
    async def story():
        async with connect(ensemble, may_begin=True) as session, connect(ensemble, may_begin=True) as other:
            await other.tree()
            wanted = set()
            for topic in range(10):
                paths = [f"/brokers/topics/t{topic}/partitions/{i}/state" for i in range(1000)]
                await session.commit(
                    [Create(f"/brokers/topics/t{topic}", b"{}"), *(Create(p, b"x" * 120) for p in paths)]
                )
                wanted |= {f"/brokers/topics/t{topic}", *paths}
            await announced(other, wanted)
            found = await other.read_all(sorted(wanted))
            assert None not in found.values()
            assert set(await other.tree()) == wanted
            await session.commit([Delete("/brokers/topics/t0"), Check("/brokers/topics/t1", 0)])
            assert len(await other.tree()) == 9 * 1001

    told(story)


# -- the way in ------------------------------------------------------------------------------------


def refused(ensemble, may_begin=False):
    async def story():
        async with connect(ensemble, may_begin=may_begin):
            raise AssertionError("it was let in")

    with pytest.raises((Refused, Unavailable)) as problem:
        trio.run(story)
    return str(problem.value)


def test_a_chroot_that_is_not_there_is_made_only_for_a_new_cluster(zookeeper):
    ensemble = Ensemble(zookeeper.address, "/not/there", session_timeout_seconds=SESSION)
    assert (
        refused(ensemble)
        == f"there is no /not/there in ZooKeeper at {zookeeper.address}: is the path in zookeeper.connect right?"
    )


def test_a_server_that_is_not_there_is_waited_for_as_long_as_one_says():
    ensemble = Ensemble("127.0.0.1:1", session_timeout_seconds=SESSION, connection_timeout_seconds=0.5)
    assert refused(ensemble) == ("ZooKeeper at 127.0.0.1:1 does not answer within 0.5 s: is zookeeper.connect right?")


def test_the_place_of_another_cluster_is_left_alone(ensemble):
    async def apache_kafka():
        async with by_hand(ensemble) as person:
            await trio.to_thread.run_sync(lambda: person.create("/cluster/id", b'{"id": "x"}', makepath=True))

    trio.run(apache_kafka)
    assert "has a cluster that is not trilogue's" in refused(ensemble, may_begin=True)
