"""ZooKeeper as the home of a cluster's truth: see `store.py`.

A broken connection says nothing about what was sent over it.  A commit then looks for its own mark (`changes.py`) when
the connection is back, and is sent again only if it was certainly not done.  If the session is over before that can be
told, the answer is `SessionLost`.

Three watches, however many nodes there are: `/changes`, the brokers that are there, and who is the controller.  What
others write by hand is found once a minute, when everything is looked at.
"""

import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from math import inf
from typing import TypeVar

import trio

from trilogue.broker.cluster.changes import CHANGES, Account, Journal, read_journal
from trilogue.broker.cluster.ensemble import Ensemble
from trilogue.broker.cluster.image import BROKERS, CLUSTER_ID, CONTROLLER
from trilogue.broker.cluster.multi import Place, Step, ancestors, doubtful_places, plan, touched
from trilogue.broker.cluster.store import (
    UNREACHED,
    Conflict,
    Create,
    Delete,
    Node,
    Op,
    Refused,
    SessionLost,
    Unavailable,
    Update,
)
from trilogue.broker.cluster.zookeeper import Broken, Failure, Found, Link, State, Why

logger = logging.getLogger(__name__)

T = TypeVar("T")

IDS = BROKERS.rstrip("/")
WATCHED = {CHANGES, IDS, CONTROLLER}
INHABITED = {"brokers", "cluster", "controller"}
"""What Kafka has under ZooKeeper too: where it is, there is a cluster."""
SYSTEM = "/zookeeper"
"""ZooKeeper's own nodes, which are beside ours if we have no chroot."""

COMPARE_SECONDS = 60.0
"""How often everything is looked at: what somebody has written by hand is not announced."""
ATTEMPTS = 10
"""How often a commit is planned anew because parents or children have come and gone, or a connection has."""
PLACES_MAX = 10_000
"""So many parents are remembered to be there."""
PAUSE_SECONDS = 0.05
"""Before we try again: kazoo's word that the connection is gone may still be on its way."""
REPAIR_SECONDS = 1.0
"""The same, if a person has to do something first."""
CLOSE_SECONDS = 2.0
"""An end that ZooKeeper does not answer is an end all the same."""


@asynccontextmanager
async def connect(
    ensemble: Ensemble, *, may_begin: bool, new_link: Callable[[Ensemble], Link] = Link
) -> AsyncIterator["RemoteSession"]:
    """A session, and the task that keeps it.  `may_begin`: the chroot is made if it is not there.  `new_link` makes
    what there is one of for each session of ZooKeeper's.

    Raises `Unavailable` or `Refused` if there is nothing to be had.
    """
    session = RemoteSession(ensemble, may_begin, new_link)
    problem: Exception | None = None
    async with trio.open_nursery() as tasks:
        tasks.start_soon(session.keep)
        try:
            await session.begun()
        except (Unavailable, Refused) as error:
            problem = error  # raised outside: a nursery would wrap it
        else:
            try:
                yield session
            finally:
                with trio.CancelScope(shield=True):
                    await session.close()
        tasks.cancel_scope.cancel()
    if problem is not None:
        raise problem


class RemoteSession:
    """See `store.Session`.  One after the other it has sessions of ZooKeeper's: links."""

    def __init__(self, ensemble: Ensemble, may_begin: bool, new_link: Callable[[Ensemble], Link]) -> None:
        self.epoch = 0
        self._ensemble, self._may_begin, self._new_link = ensemble, may_begin, new_link
        self._link = new_link(ensemble)
        self._prepared = self._ready = self._closed = False
        """Of the link: it has what it needs in ZooKeeper; and it is connected, with all watches set."""
        self._turned = trio.Event()
        """Any of this is not as it was."""
        self._problem: Exception | None = None
        self._one_commit = trio.Lock()
        self._places: set[str] = set()
        """Parents that are there."""
        self._ephemeral: set[str] = set()
        """What we have made that ends with the session."""
        self._earlier: set[int] = set()
        """ZooKeeper's ids of the sessions that were ours."""
        self._journal = Journal()
        self._attempts = 0
        self._sure = True
        """The journal is what ZooKeeper has."""
        self._account: Account | None = None
        self._brokers: set[str] = set()
        """All we have ever announced: of one that came and went between two looks its journal has told us."""
        self._given: dict[str, tuple[int, int]] | None = None
        """What those who follow us have been given last: nodes, and which change of them."""
        self._cluster: bytes | None = None
        self._known_id = 0
        """Of the session that `epoch` is about."""
        self._changes: set[str] = set()
        self._stirred = trio.Event()

    @property
    def timeout_seconds(self) -> float:
        return self._link.timeout_seconds

    # -- one link after the other --------------------------------------------------------------

    async def keep(self) -> None:
        """Until we are closed: when a session is over, another is begun."""
        while not self._closed:
            link = self._link
            try:
                async with trio.open_nursery() as tasks:
                    tasks.start_soon(self._work, link)
                    await self._until_lost(link)
                    tasks.cancel_scope.cancel()
            except Exception:  # a bug of ours or of kazoo's costs a session, not the broker
                logger.exception("the session with %s has failed", self._ensemble)
                await trio.sleep(REPAIR_SECONDS)
            finally:
                link.discard()
            if self._prepared and not self._closed:
                logger.warning("the session with %s is lost, and another is begun", self._ensemble)
            self._earlier.add(link.session_id)
            self._prepared = self._ready = False
            self._link = self._new_link(self._ensemble)
            self._turn()

    async def _until_lost(self, link: Link) -> None:
        """kazoo calls a session lost when the server says so.  A server that is gone says nothing: then time does."""
        link.start()
        deadline = inf  # there is nothing to lose yet
        while True:
            with trio.move_on_at(deadline) as patience:
                state = await link.states.receive()
            if patience.cancelled_caught or state is State.LOST:
                return
            link.interrupt()
            self._ready = False
            if state is State.CONNECTED:
                link.resume()
                deadline = inf
            else:
                logger.warning("the connection to %s is broken", self._ensemble)
                deadline = trio.current_time() + link.timeout_seconds
            self._turn()

    async def _work(self, link: Link) -> None:
        """What there is to do while we are connected.  Never ends."""
        while True:
            while not link.connected:
                await self._turned.wait()
            try:
                await self._prepare(link)
                await self._listen(link)
            except Broken:
                await trio.sleep(PAUSE_SECONDS)
            except Refused as problem:
                if self.epoch and str(problem) != str(self._problem):
                    logger.error("%s", problem)
                self._problem, self._ready, self._prepared = problem, False, False
                self._turn()
                await trio.sleep(REPAIR_SECONDS)

    def _turn(self) -> None:
        self._turned.set()
        self._turned = trio.Event()

    async def begun(self) -> None:
        """Returns when the first session is there."""
        with trio.move_on_after(self._ensemble.connection_timeout_seconds):
            while not self.epoch:
                if self._problem is not None:
                    raise self._problem
                await self._turned.wait()
        if not self.epoch:
            seconds = self._ensemble.connection_timeout_seconds
            raise Unavailable(f"{self._ensemble} does not answer within {seconds:g} s: is zookeeper.connect right?")

    async def renewed(self, seen: int) -> int:
        while self.epoch <= seen:
            await self._turned.wait()
        return self.epoch

    async def _usable(self) -> Link:
        with trio.move_on_after(self.timeout_seconds):
            while not self._ready:
                if self._closed:
                    raise SessionLost("the session was closed")
                await self._turned.wait()
            return self._link
        raise Unavailable(f"{self._ensemble} does not answer")

    def abandon(self) -> None:
        self._link.stop()

    async def close(self) -> None:
        if self._closed:
            return
        if self._ready and self._ephemeral:
            with trio.move_on_after(CLOSE_SECONDS), suppress(Conflict, Refused, *UNREACHED):
                await self.commit([Delete(path) for path in sorted(self._ephemeral)])  # so that all know at once
        self._closed, self._ready = True, False
        self._turn()
        with trio.move_on_after(CLOSE_SECONDS):
            await trio.to_thread.run_sync(self._link.stop, abandon_on_cancel=True)

    # -- the beginning of a link ---------------------------------------------------------------

    async def _prepare(self, link: Link) -> None:
        if self._prepared:
            return
        await self._enter(link)
        await link.commit([Create(CHANGES, b"{}")])  # unless it is there already; first, for others know us by it
        for path in (*ancestors(IDS), IDS):
            await link.commit([Place(path)])
        await self._clear_away(link)
        self._journal, self._sure = Journal(), True
        await link.commit([Create(self._own(link), self._journal.to_json(), ephemeral=True)])
        self._prepared = True

    async def _enter(self, link: Link) -> None:
        """See that this is where we belong."""
        (names,) = await link.children(["/"])
        if names is None:
            if not self._may_begin or self.epoch:
                where, chroot = self._ensemble.hosts, self._ensemble.chroot
                raise Refused(f"there is no {chroot} in ZooKeeper at {where}: is the path in zookeeper.connect right?")
            await link.make_root()
            return
        if self._cluster is not None:
            (cluster,) = await link.read([CLUSTER_ID])
            if cluster is None or cluster.data != self._cluster:
                raise Refused(f"{self._ensemble} has not our cluster any more; we go on with what we know of it")
        elif INHABITED & set(names) and CHANGES.strip("/") not in names:
            raise Refused(f"{self._ensemble} has a cluster that is not trilogue's: choose another path for ours")

    async def _clear_away(self, link: Link) -> None:
        """Remove what is left of our earlier sessions: it would vanish later, under our feet (ZOOKEEPER-2985)."""
        paths = sorted(self._ephemeral)
        for path, each in zip(paths, await link.read(paths), strict=True):
            if each is not None and each.owner in self._earlier:
                await link.commit([Delete(path, each.version)])
        self._ephemeral.clear()

    def _own(self, link: Link) -> str:
        """The path of our journal."""
        return f"{CHANGES}/{link.session_id:x}"

    # -- changes -------------------------------------------------------------------------------

    async def _listen(self, link: Link) -> None:
        """As long as this connection lasts."""
        connection = link.connections
        link.fired = set(WATCHED)
        looked = -inf if link.session_id != self._known_id else trio.current_time()
        while link.connected and link.connections == connection:
            await self._hear(link)
            if trio.current_time() >= looked + COMPARE_SECONDS:
                await self._look_at_everything(link)
                looked = trio.current_time()
            if not self._ready:
                self._become_ready(link)
            with trio.move_on_at(looked + COMPARE_SECONDS):
                await link.stirred.wait()

    def _become_ready(self, link: Link) -> None:
        self._problem, self._ready = None, True
        if link.session_id != self._known_id:
            self._known_id, self.epoch = link.session_id, self.epoch + 1
        self._turn()

    async def _hear(self, link: Link) -> None:
        """Set the watches again that have fired, and see why they have."""
        fired, link.fired, link.stirred = link.fired, set(), trio.Event()
        got = await link.watch(CHANGES, IDS, CONTROLLER, fired)
        for path in got.keys() & {CHANGES, IDS}:
            if got[path] is None:
                raise Refused(f"{self._ensemble}: somebody has deleted {path}")
        if IDS in got:
            self._announce({*self._brokers, *(BROKERS + name for name in got[IDS])})
        if CONTROLLER in got:
            self._announce([CONTROLLER])
        if CHANGES in got:
            await self._hear_changes(link, got[CHANGES])

    async def _hear_changes(self, link: Link, now: Found) -> None:
        if self._account is None or self._account.hear_own(now.version, *self._last_writer(link, now)):
            return
        journals = await self._journals(link)
        paths = None if journals is None else self._account.hear(now.version, journals)
        if paths is None:
            await self._look_at_everything(link)
        else:
            self._announce(paths)

    def _last_writer(self, link: Link, now: Found) -> tuple[str, int]:
        """Who made the last commit, and its number, if that was us and the commit is announced already."""
        with suppress(ValueError, KeyError, TypeError):
            said = json.loads(now.data or b"")
            if said["writer"] == self._own(link) and self._sure and said["number"] == self._journal.number:
                return said["writer"], said["number"]
        return "", -1

    async def _journals(self, link: Link) -> Mapping[str, Journal] | None:
        """By their nodes; None if there is one that cannot be read."""
        (names,) = await link.children([CHANGES])
        paths = [f"{CHANGES}/{name}" for name in names or ()]
        try:
            return {
                path: read_journal(each.data or b"")
                for path, each in zip(paths, await link.read(paths), strict=True)
                if each is not None
            }
        except (ValueError, KeyError, TypeError):
            return None

    async def _look_at_everything(self, link: Link) -> None:
        """Announce whatever is not as those who follow us have been given it."""
        self._account = await self._balance(link)
        if self._given is None:
            return  # nobody follows us yet
        found = await self._walk(link)
        if self._cluster is not None and CLUSTER_ID not in found:
            raise Refused(f"{self._ensemble} has not our cluster any more; we go on with what we know of it")
        now, given = {path: stamp(each) for path, each in found.items()}, self._given
        self._announce(path for path in now.keys() | given.keys() if now.get(path) != given.get(path))

    async def _balance(self, link: Link) -> Account | None:
        """Where everybody's journals stand, if they hold still for a moment; None: look again soon."""
        for _ in range(ATTEMPTS):
            (before,) = await link.read([CHANGES])
            journals = await self._journals(link)
            (after,) = await link.read([CHANGES])
            if before is not None and after is not None and before.version == after.version:
                return Account(after.version, journals or {})
        link.fired.add(CHANGES)
        link.stirred.set()
        return Account(before.version, journals or {}) if before is not None else None

    async def _walk(self, link: Link) -> dict[str, Found]:
        """Every node, level by level.  Only those with children are asked for them."""
        nodes: dict[str, Found] = {}
        level = ["/"]
        while level:
            listed = await link.children(level)
            parents = (path.rstrip("/") for path in level)
            paths = [f"{path}/{name}" for path, names in zip(parents, listed, strict=True) for name in names or ()]
            paths = [path for path in paths if path not in (CHANGES, SYSTEM)]
            level = []
            for path, each in zip(paths, await link.read(paths), strict=True):
                if each is not None and each.data is not None:
                    nodes[path] = each
                if each is not None and each.children:
                    level.append(path)
        return nodes

    def _announce(self, paths: Iterable[str]) -> None:
        news = set(paths)
        self._brokers.update(path for path in news if path.startswith(BROKERS))
        self._changes |= news
        if self._changes:
            self._stirred.set()

    @property
    def has_news(self) -> bool:
        return self._stirred.is_set()

    async def changed(self) -> set[str]:
        await self._stirred.wait()
        changes, self._changes, self._stirred = self._changes, set(), trio.Event()
        return changes

    # -- reading -------------------------------------------------------------------------------

    async def read(self, path: str) -> Node | None:
        (found,) = await self._reading(lambda link: link.read([path]))
        return as_node(found)

    async def owns(self, path: str) -> bool:
        (found,) = await self._reading(lambda link: link.read([path]))
        return found is not None and found.owner == self._link.session_id

    async def read_all(self, paths: Sequence[str]) -> Mapping[str, Node | None]:
        found = dict(zip(paths, await self._reading(lambda link: link.read(paths)), strict=True))
        if self._given is not None:
            for path, each in found.items():
                if each is None or each.data is None:
                    self._given.pop(path, None)
                else:
                    self._given[path] = stamp(each)
        return {path: as_node(each) for path, each in found.items()}

    async def tree(self) -> Mapping[str, Node]:
        found = await self._reading(self._walk)
        self._given = {path: stamp(each) for path, each in found.items()}
        if CLUSTER_ID in found:
            self._cluster = found[CLUSTER_ID].data
        return {path: node for path, each in found.items() if (node := as_node(each)) is not None}

    async def _reading(self, work: Callable[[Link], Awaitable[T]]) -> T:
        for _ in range(ATTEMPTS):
            link = await self._usable()
            try:
                return await work(link)
            except Broken:
                await trio.sleep(PAUSE_SECONDS)
        raise Unavailable(f"the connection to {self._ensemble} breaks again and again")

    # -- commits -------------------------------------------------------------------------------

    async def commit(self, ops: Sequence[Op]) -> None:
        try:
            await self._commit(ops)
        except Conflict as conflict:
            self._announce([conflict.path])  # somebody may have written by hand: whoever decides anew has to see it
            raise

    async def _commit(self, ops: Sequence[Op]) -> None:
        async with self._one_commit:
            for _ in range(ATTEMPTS):
                link = await self._usable()
                try:
                    steps = await self._plan(link, ops)
                    await self._recall(link)
                except Broken:
                    await trio.sleep(PAUSE_SECONDS)  # nothing was sent yet
                    continue
                if await self._try(link, steps):
                    self._note(steps)
                    return
        raise Conflict(ops[0].path, "what is around it changes faster than it can be changed")

    async def _plan(self, link: Link, ops: Sequence[Op]) -> list[Step]:
        doubtful = doubtful_places(ops, self._places)
        there = {path for path, each in zip(doubtful, await link.read(doubtful), strict=True) if each is not None}
        self._places = there if len(self._places) > PLACES_MAX else self._places | there
        below = {op.path: await self._below(link, op.path) for op in ops if isinstance(op, Delete)}
        return plan(ops, self._places, below)

    async def _below(self, link: Link, top: str) -> list[str]:
        found: list[str] = []
        level = [top]
        while level:
            listed = await link.children(level)
            level = [f"{path}/{name}" for path, names in zip(level, listed, strict=True) for name in names or ()]
            found += level
        return found

    async def _recall(self, link: Link) -> None:
        """Whoever waited for the last commit was cancelled: find out where our journal stands."""
        if not self._sure:
            found = await link.read_newest(self._own(link))
            self._journal = read_journal(found.data or b"") if found is not None else Journal()
            self._sure = True

    async def _try(self, link: Link, steps: Sequence[Step]) -> bool:
        """Whether it is done.  False: nothing is, and it is worth looking again."""
        self._attempts += 1
        journal = self._journal.after(touched(steps), self._attempts)
        last = json.dumps({"writer": self._own(link), "number": journal.number}).encode()
        marks = [Update(CHANGES, last), Update(self._own(link), journal.to_json())]
        self._sure = False
        try:
            failure = await link.commit([*(step.op for step in steps), *marks])
        except Refused:
            self._sure = True
            raise
        except Broken:
            if not await self._was_done(link, journal):
                return False
            failure = None
        self._sure = True
        if failure is None:
            self._journal = journal
            return True
        if failure.at >= len(steps):  # somebody has removed our journal
            await link.commit([Create(self._own(link), self._journal.to_json(), ephemeral=True)])
            return False
        complain(steps[failure.at], failure)
        self._places.clear()
        return False

    async def _was_done(self, link: Link, journal: Journal) -> bool:
        """After the connection broke.  ZooKeeper does what a session asks for in order: what is read next, tells."""
        lost = SessionLost(f"{self._ensemble}: it is not known whether a change was made, and may be made yet")
        with trio.move_on_after(2 * link.timeout_seconds):
            while self._link is link and not self._closed:
                if not self._ready:
                    await self._turned.wait()
                    continue
                try:
                    found = await link.read_newest(self._own(link))
                except Broken:
                    await trio.sleep(PAUSE_SECONDS)
                    continue
                if found is None:
                    raise lost  # somebody has removed our journal
                self._sure = True
                return read_journal(found.data or b"").attempt == journal.attempt
        raise lost

    def _note(self, steps: Sequence[Step]) -> None:
        for step in steps:
            match step.op:
                case Create(path, _, ephemeral=True):
                    self._ephemeral.add(path)
                case Delete(path):
                    self._ephemeral.discard(path)
                    self._places.discard(path)
        self._announce(touched(steps))


def complain(step: Step, failure: Failure) -> None:
    """Raise what whoever asked must know; return if it is enough to look again."""
    parent_is_gone = failure.why is Why.MISSING and isinstance(step.op, Create)
    if step.asked and failure.why is not Why.CHILDREN and not parent_is_gone:
        raise Conflict(step.op.path, failure.why.value)


def as_node(found: Found | None) -> Node | None:
    if found is None or found.data is None:
        return None
    return Node(found.data, found.version, found.created, found.owner != 0)


def stamp(found: Found) -> tuple[int, int]:
    return found.created, found.changed
