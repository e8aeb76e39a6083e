"""The parts of a simulation, each by itself."""

import errno
import json
import os
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio
from posix_only import posix_only

from trilogue.broker.cluster.ensemble import Ensemble
from trilogue.broker.cluster.store import Create, Update
from trilogue.broker.cluster.zookeeper import Broken, State, Why
from trilogue.client.errors import CannotConnect
from trilogue.client.world import Address
from trilogue.storage import system
from trilogue.testing.simulation.agenda import Agenda
from trilogue.testing.simulation.disks import Disk, Disks, installed
from trilogue.testing.simulation.history import History, fingerprint
from trilogue.testing.simulation.keeper import Keeper, KeeperLink
from trilogue.testing.simulation.lives import Life
from trilogue.testing.simulation.network import End, Network
from trilogue.testing.simulation.patches import patched
from trilogue.testing.simulation.plan import Fault, Party, Plan, plan_of
from trilogue.testing.simulation.shrink import smaller

pytestmark = posix_only("disks are simulated on positional reads and writes")

HERE, THERE = Address("here", 1), Address("there", 1)


def play(story: Callable[[Agenda], Awaitable[None]]) -> None:
    agenda = Agenda()
    with patched("test"):
        trio.run(story, agenda, clock=agenda)


# -- time ------------------------------------------------------------------------------------------


def test_a_year_takes_no_time_and_what_is_on_the_agenda_happens_in_between():
    happened = []

    async def story(agenda: Agenda) -> None:
        agenda.after(2, lambda: happened.append(("two", trio.current_time())))
        agenda.after(1, lambda: happened.append(("one", trio.current_time())))
        begun = trio.current_time()
        await trio.sleep(365 * 86400)
        happened.append(("year", trio.current_time() - begun))

    play(story)
    assert happened == [("one", 1001.0), ("two", 1002.0), ("year", 365 * 86400)]


# -- the network -----------------------------------------------------------------------------------


async def connected(agenda: Agenda) -> tuple[Network, End, End]:
    network = Network(agenda, random.Random(1))
    come: list[End] = []
    network.listen(Life("there", 1), THERE, come.append)
    mine = await network.dial(Life("here", 1), THERE, trio.current_time() + 1)
    return network, mine, come[0]


async def heard(end: End) -> bytes:
    await end.readable()
    data = b"".join(end.inbox)
    end.inbox.clear()
    return data


def test_a_connection_keeps_its_order():
    async def story(agenda: Agenda) -> None:
        _, mine, theirs = await connected(agenda)
        for number in range(100):
            mine.send(b"%d," % number)
        await trio.sleep(10)
        assert await heard(theirs) == b"".join(b"%d," % number for number in range(100))

    play(story)


def test_what_is_sent_into_a_cut_comes_when_that_is_healed():
    async def story(agenda: Agenda) -> None:
        network, mine, theirs = await connected(agenda)
        network.cut(("here", "there"))
        mine.send(b"a")
        theirs.send(b"the other way")
        await trio.sleep(100)
        assert not theirs.inbox
        assert await heard(mine) == b"the other way"
        network.heal(("here", "there"))
        assert await heard(theirs) == b"a"

    play(story)


def test_nobody_is_reached_through_a_cut_and_nobody_listens_where_nobody_is():
    async def story(agenda: Agenda) -> None:
        network, _, _ = await connected(agenda)
        network.cut(("there", "here"))
        with pytest.raises(CannotConnect, match="in time"):
            await network.dial(Life("here", 1), THERE, trio.current_time() + 5)
        with pytest.raises(CannotConnect, match="refused"):
            await network.dial(Life("elsewhere", 1), HERE, trio.current_time() + 5)

    play(story)


def test_a_process_that_dies_resets_its_connections_and_a_host_that_goes_down_only_when_it_is_back():
    async def story(agenda: Agenda) -> None:
        network, mine, theirs = await connected(agenda)
        theirs.life.alive = False
        network.die(theirs.life, silently=True)
        await trio.sleep(100)
        assert mine.over is None
        network.wake("there")
        with pytest.raises(ConnectionResetError):
            await mine.readable()

    play(story)


# -- ZooKeeper -------------------------------------------------------------------------------------


async def linked(agenda: Agenda) -> tuple[Keeper, KeeperLink]:
    keeper = Keeper(agenda, random.Random(1), lambda after: None)
    link = KeeperLink(keeper, Life("here", 1), Ensemble("keeper:2181", "", 2.0, 2.0))
    link.start()
    assert await link.states.receive() is State.CONNECTED
    link.resume()
    return keeper, link


def test_a_commit_is_done_as_a_whole_or_says_why_not():
    async def story(agenda: Agenda) -> None:
        _, link = await linked(agenda)
        assert await link.commit([Create("/a", b"1"), Create("/a/b", b"2", ephemeral=True)]) is None
        failure = await link.commit([Update("/a", b"3"), Update("/a/b", b"4", version=7)])
        assert failure is not None
        assert (failure.at, failure.why) == (1, Why.VERSION)
        (found,) = await link.read(["/a"])
        assert found is not None
        assert (found.data, found.version, found.children) == (b"1", 0, 1)

    play(story)


def test_of_what_was_asked_when_a_connection_broke_nothing_is_known():
    outcomes = set()

    async def keep(link: KeeperLink) -> None:
        async for state in link.states:
            link.interrupt()
            if state is State.CONNECTED:
                link.resume()

    async def story(agenda: Agenda) -> None:
        keeper, link = await linked(agenda)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(keep, link)
            for number in range(30):
                agenda.after(number / 10_000, lambda: keeper.blip("here"))
                path = f"/at-{number}"
                try:
                    await link.commit([Create(path, b"")])
                    outcomes.add(("told", path in keeper.nodes))
                except Broken:
                    outcomes.add(("broken", path in keeper.nodes))
                await trio.sleep(10)
            nursery.cancel_scope.cancel()

    play(story)
    assert outcomes == {("told", True), ("broken", True), ("broken", False)}


def test_who_is_silent_for_the_time_of_his_session_is_given_up():
    async def story(agenda: Agenda) -> None:
        keeper, link = await linked(agenda)
        await link.commit([Create("/mine", b"", ephemeral=True)])
        await trio.sleep(100)
        assert "/mine" in keeper.nodes, "he is heard of"
        keeper.cut_off("here")
        await trio.sleep(1.9)
        assert "/mine" in keeper.nodes
        await trio.sleep(0.2)
        assert "/mine" not in keeper.nodes
        keeper.let_through("here")
        assert [await link.states.receive(), await link.states.receive()] == [State.BROKEN, State.LOST]

    play(story)


# -- disks -----------------------------------------------------------------------------------------


def test_what_was_not_synced_is_gone_without_power(tmp_path: Path):
    disks, disk = Disks(), Disk(f"{tmp_path}/", random.Random(3))
    disks.add(disk)
    with installed(disks):
        fd = system.open(str(tmp_path / "file"), os.O_RDWR | os.O_CREAT)
        system.pwrite(fd, b"safe", 0)
        system.fsync(fd)
        for number in range(10):
            system.pwrite(fd, b"lost", 4 + 4 * number)
        assert disk.go_down() == 1
        left = (tmp_path / "file").read_bytes()
        assert left.startswith(b"safe")
        assert len(left) < 44
        system.close(fd)
    assert system.open is os.open


def test_full_and_broken_disks_and_dead_processes(tmp_path: Path):
    disks, disk = Disks(), Disk(f"{tmp_path}/", random.Random(1))
    disks.add(disk)
    life = Life("here", 1)
    with installed(disks):
        fd = system.open(str(tmp_path / "file"), os.O_RDWR | os.O_CREAT)
        disk.full = True
        with pytest.raises(OSError, match="No space"):
            system.pwrite(fd, b"x", 0)
        disk.full, disk.broken = False, errno.EIO
        with pytest.raises(OSError, match="Input/output"):
            system.fsync(fd)
        disk.broken, life.alive = None, False
        with pytest.raises(OSError, match="dead"):
            life.run(system.pwrite, fd, b"x", 0)
        system.pwrite(fd, b"x", 0)
        system.close(fd)


# -- plans and histories ----------------------------------------------------------------------------


def test_smaller_plans_lack_a_part_each():
    faults = Fault(1, "blip", 0, (1,)), Fault(2, "expire", 0, (2,))
    parties = (
        Party("producer", "producer-0", {"pause": 1}),
        Party("reader", "reader-0", {"topic": "t", "committed": True}),
    )
    plan = Plan(3, 9.0, {}, {}, parties, faults)
    tried = list(smaller(plan))
    assert [each.faults for each in tried[:2]] == [plan.faults[1:], plan.faults[:1]]
    assert [each.parties for each in tried[2:-1]] == [plan.parties[1:], plan.parties[:1]]
    assert tried[-1].seconds == 3


def test_every_kind_of_fault_can_be_carried_out():
    kinds = {fault.kind for seed in range(300) for fault in plan_of(seed).faults}
    from trilogue.testing.simulation.faults import Faults
    from trilogue.testing.simulation.plan import KINDS

    assert kinds == set(KINDS)
    assert all(hasattr(Faults, "_" + kind.replace(" ", "_")) for kind in kinds)


def test_a_history_is_lines_of_json_and_one_number():
    history = History(lambda: 1.25)
    history.add("producer-0", "acked", topic="t", partition=0, offset=3, values=["a"])
    (line,) = history.lines()
    assert json.loads(line) == {
        "t": 1.25,
        "who": "producer-0",
        "what": "acked",
        "topic": "t",
        "partition": 0,
        "offset": 3,
        "values": ["a"],
    }
    assert history.fingerprint() == fingerprint([line]) != fingerprint([])
    assert isinstance(plan_of(1), Plan)
