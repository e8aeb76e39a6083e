"""A ZooKeeper of memory: nodes, sessions, watches, and what can happen between it and a broker.

What a broker has of it is a `KeeperLink`, in the place of `cluster/zookeeper.py`, which is the only file of the product
that is not run here; `cluster/remote.py`, above it, is.  Requests of a session are done in their order, and answers and
watches come in theirs.  A connection may break with requests on their way: some are done, of some the answer is lost,
and whoever asked hears the same of both.

Whoever is silent for the time of his session is given up: frozen, cut off, or dead.  He hears of it when he asks again.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import inf
from typing import Any

import trio

from trilogue.broker.cluster.ensemble import Ensemble
from trilogue.broker.cluster.multi import Place
from trilogue.broker.cluster.store import ANY_VERSION, Check, Create, Delete, Op, Refused, Update
from trilogue.broker.cluster.zookeeper import Broken, Failure, Found, State, Why
from trilogue.testing.simulation.agenda import Agenda
from trilogue.testing.simulation.lives import Life

DELAY_SECONDS = 0.001
RECONNECT_SECONDS = 0.15
HOST = "keeper"

Watch = tuple[str, str]
"""Kind ("data", "children", "existence") and path."""


class Session:
    """On the side of the ensemble."""

    def __init__(self, number: int, timeout: float) -> None:
        self.id, self.timeout = number, timeout
        self.heard_at = 0.0
        self.over = False
        self.link: KeeperLink | None = None
        """Who has a connection now."""


class Keeper:
    def __init__(self, agenda: Agenda, chance: random.Random, told: Callable[[dict[str, Found | None]], None]) -> None:
        """`told` is called with what every commit has changed."""
        self.agenda, self.chance, self._told = agenda, chance, told
        self.nodes: dict[str, Found] = {"/": Found(None, 0, 0, 0, 0, 0)}
        self._children: dict[str, dict[str, None]] = {"/": {}}
        self._zxid = 0
        self._next_session = 0x100000
        self.sessions: dict[int, Session] = {}
        self._watches: dict[Watch, dict[int, Callable[[str], None]]] = {}
        self.up = True
        self.slow: list[float] = []
        """So many times longer everything takes; the worst counts."""
        self.cut: dict[str, int] = {}
        """Hosts that cannot be reached, and by how many faults."""

    # -- the tree ------------------------------------------------------------------------------

    def commit(self, ops: Iterable[Op | Place], session: Session) -> Failure | None:
        """All of it or nothing."""
        zxid = self._zxid + 1
        after: dict[str, Found | None] = {}

        def find(path: str) -> Found | None:
            return after[path] if path in after else self.nodes.get(path)

        def has_children(path: str) -> bool:
            below = path + "/"
            unseen = any(each.startswith(below) and node is not None for each, node in after.items())
            return unseen or any(find(below + name) is not None for name in self._children.get(path, ()))

        for at, op in enumerate(ops):
            node = find(op.path)
            match op:
                case Create() | Place():
                    if node is not None:
                        return Failure(at, Why.EXISTS)
                    if find(op.path.rpartition("/")[0] or "/") is None:
                        return Failure(at, Why.MISSING)
                    data, ephemeral = (op.data, op.ephemeral) if isinstance(op, Create) else (None, False)
                    after[op.path] = Found(data, zxid, zxid, 0, session.id if ephemeral else 0, 0)
                case Update(path, data, version):
                    if node is None:
                        return Failure(at, Why.MISSING)
                    if version not in (ANY_VERSION, node.version):
                        return Failure(at, Why.VERSION)
                    after[path] = node._replace(data=data, version=node.version + 1, changed=zxid)
                case Delete(path, version):
                    if node is None:
                        return Failure(at, Why.MISSING)
                    if version not in (ANY_VERSION, node.version):
                        return Failure(at, Why.VERSION)
                    if has_children(path):
                        return Failure(at, Why.CHILDREN)
                    after[path] = None
                case Check(path, version):
                    if node is None:
                        return Failure(at, Why.MISSING)
                    if version not in (ANY_VERSION, node.version):
                        return Failure(at, Why.VERSION)
        self._zxid = zxid
        self._see(after)
        return None

    def _see(self, after: dict[str, Found | None]) -> None:
        for path, node in after.items():
            parent, _, name = path.rpartition("/")
            known = path in self.nodes
            if node is None:
                del self.nodes[path]
                self._children.pop(path, None)
                self._children[parent or "/"].pop(name, None)
            else:
                self.nodes[path] = node
                if not known:
                    self._children.setdefault(path, {})
                    self._children[parent or "/"][name] = None
            if known != (node is not None):
                self._fire(("children", parent or "/"))
            self._fire(("data", path))
            self._fire(("existence", path))
        if after:
            self._told(after)

    def get(self, path: str) -> Found | None:
        node = self.nodes.get(path)
        return node and node._replace(children=len(self._children[path]))

    def list(self, path: str) -> list[str] | None:
        return list(self._children[path]) if path in self.nodes else None

    def watch(self, watch: Watch, session: Session, told: Callable[[str], None]) -> None:
        self._watches.setdefault(watch, {})[session.id] = told

    def _fire(self, watch: Watch) -> None:
        for told in self._watches.pop(watch, {}).values():
            told(watch[1])

    def registered(self, life: Life, node_id: int) -> int | None:
        """Under which epoch a process is registered as a broker, if it is: it, and not a life before."""
        node = self.nodes.get(f"/brokers/ids/{node_id}")
        session = self.sessions.get(node.owner) if node is not None else None
        if node is None or session is None or session.link is None or session.link.life is not life:
            return None
        return node.created

    # -- sessions ------------------------------------------------------------------------------

    def reachable(self, host: str) -> bool:
        return self.up and host not in self.cut

    def begin(self, timeout: float) -> Session:
        self._next_session += 1
        session = self.sessions[self._next_session] = Session(self._next_session, timeout)
        self.hear(session)
        return session

    def hear(self, session: Session) -> None:
        """It is alive now; if nothing is heard for its time, it ends."""
        session.heard_at = self.agenda.now
        self.agenda.after(session.timeout, lambda: self._look(session))

    def _look(self, session: Session) -> None:
        if session.over or not self.up:
            return
        link = session.link
        if link is not None and link.life.alive and not link.life.frozen and self.reachable(link.life.host):
            return self.hear(session)  # it says so every now and then
        if self.agenda.now - session.heard_at >= session.timeout - 1e-6:
            self.end(session)
            if link is not None:
                link.snap()  # the ensemble hangs up

    def end(self, session: Session) -> None:
        """Its ephemeral nodes go with it."""
        if session.over:
            return
        session.over = True
        self.sessions.pop(session.id, None)
        for told in self._watches.values():
            told.pop(session.id, None)
        mine: dict[str, Found | None] = {path: None for path, node in self.nodes.items() if node.owner == session.id}
        if mine:
            self._zxid += 1
            self._see(mine)

    # -- what goes wrong -----------------------------------------------------------------------

    def stop(self) -> None:
        self.up = False
        self._break(lambda link: True)

    def start(self) -> None:
        """Everybody has his whole time again."""
        self.up = True
        for session in list(self.sessions.values()):
            self.hear(session)

    def cut_off(self, host: str) -> None:
        """Nothing comes through; that is noticed on either side when it has lasted."""
        self.cut[host] = self.cut.get(host, 0) + 1
        for session in list(self.sessions.values()):
            link = session.link
            if link is not None and link.life.host == host:
                # The last sign of life was a while ago; the client expects one within two thirds of the time.
                session.heard_at = self.agenda.now
                self.agenda.after(session.timeout, lambda session=session: self._look(session))  # type: ignore[misc]
                self.agenda.after(session.timeout * 2 / 3, lambda link=link: link.miss())  # type: ignore[misc]

    def let_through(self, host: str) -> None:
        self.cut[host] -= 1
        if not self.cut[host]:
            del self.cut[host]
            for session in list(self.sessions.values()):
                if session.link is not None and session.link.life.host == host:
                    session.link.let_through()

    def freeze(self, life: Life) -> None:
        for session in list(self.sessions.values()):
            if session.link is not None and session.link.life is life:
                session.heard_at = self.agenda.now
                self.agenda.after(session.timeout, lambda session=session: self._look(session))  # type: ignore[misc]

    def blip(self, host: str) -> None:
        """Connections of a host break, now; the sessions go on if others come."""
        self._break(lambda link: link.life.host == host)

    def expire(self, host: str) -> None:
        """As if somebody had ended the sessions of a host."""
        for session in list(self.sessions.values()):
            if session.link is not None and session.link.life.host == host:
                self.end(session)
                session.link.snap()

    def forget(self, life: Life) -> None:
        """A process is dead.  Its session lasts for as long as it was granted."""
        for session in list(self.sessions.values()):
            if session.link is not None and session.link.life is life:
                session.link = None
                self.hear(session)

    def _break(self, which: Callable[["KeeperLink"], bool]) -> None:
        for session in list(self.sessions.values()):
            if session.link is not None and which(session.link):
                session.link.snap()


class KeeperLink:
    """See `cluster.zookeeper.Link`: from its start until its session is over."""

    def __init__(self, keeper: Keeper, life: Life, ensemble: Ensemble) -> None:
        self.keeper, self.life = keeper, life
        self._states_in, self.states = trio.open_memory_channel[State](inf)
        self.timeout_seconds = ensemble.session_timeout_seconds
        self.session_id = 0
        self.connections = 0
        self.connected = False
        self.fired: set[str] = set()
        self.stirred = trio.Event()
        self._session: Session | None = None
        self._stopped = False
        self._line = 0
        """Of connections of ours; what belongs to an earlier one is lost."""
        self._sent_until = self._heard_until = 0.0
        self._waiting: dict[trio.Event, None] = {}
        self._held: list[Callable[[], None]] = []
        """What waits for the way to be free again, in either direction."""

    # -- connecting ----------------------------------------------------------------------------

    def start(self) -> None:
        self.keeper.agenda.after(self._delay(), self._connect)

    def _delay(self) -> float:
        keeper = self.keeper
        seconds = DELAY_SECONDS * (0.5 + keeper.chance.random()) * max(keeper.slow, default=1.0)
        return seconds * 30 * keeper.chance.random() if keeper.chance.random() < 0.02 else seconds

    def _connect(self) -> None:
        keeper = self.keeper
        if self._stopped or not self.life.alive:
            return
        if not keeper.reachable(self.life.host) or self.life.frozen:
            keeper.agenda.after(RECONNECT_SECONDS * (0.7 + keeper.chance.random()), self._connect)
            return
        if self._session is None:
            self._session = keeper.begin(self.timeout_seconds)
        if self._session.over:
            self._say(State.LOST)
            return
        self._line += 1
        self._session.link = self
        keeper.hear(self._session)
        self._sent_until = self._heard_until = keeper.agenda.now
        self._say(State.CONNECTED)

    def snap(self) -> None:
        """The connection is gone, and both sides know."""
        if self._session is not None and self._session.link is self:
            self._session.link = None
            self._line += 1
            self._held.clear()
            if not self._session.over:
                self.keeper.hear(self._session)
            if self.life.alive and not self._stopped:
                self._say(State.BROKEN)
                self.keeper.agenda.after(RECONNECT_SECONDS * (0.7 + self.keeper.chance.random()), self._connect)

    def miss(self) -> None:
        """No sign of life came in time."""
        if self._session is not None and self._session.link is self and not self.keeper.reachable(self.life.host):
            heard_at = self._session.heard_at
            self.snap()
            self._session.heard_at = heard_at  # the other side has not heard of us for longer

    def _say(self, state: State) -> None:
        self._states_in.send_nowait(state)

    def interrupt(self) -> None:
        self.connected = False
        self.stirred.set()
        for told in self._waiting:
            told.set()

    def resume(self) -> None:
        if self._session is not None:
            self.connected = True
            self.connections += 1
            self.session_id = self._session.id

    # -- asking --------------------------------------------------------------------------------

    async def _ask(self, do: Callable[[Session], Any]) -> Any:
        """What it answers when it has done it."""
        if not self.life.alive:
            raise Refused("whoever asks is dead")
        if not self.connected or self._session is None or self._session.link is not self:
            await trio.lowlevel.checkpoint()
            raise Broken
        keeper, line, session = self.keeper, self._line, self._session
        told = trio.Event()
        answer: list[Any] = []
        self._sent_until = max(self._sent_until, keeper.agenda.now + self._delay())

        def arrive() -> None:
            if not session.over:
                done = do(session)
                self._post(line, partial(self._answered, answer, done, told))

        keeper.agenda.at(self._sent_until, lambda: self._pass(line, arrive))
        self._waiting[told] = None
        try:
            await told.wait()
        finally:
            del self._waiting[told]
        if not answer:
            raise Broken
        return answer[0]

    def _answered(self, answer: list[Any], done: Any, told: trio.Event) -> None:
        answer.append(done)
        told.set()

    def _post(self, line: int, hear: Callable[[], object]) -> None:
        """Towards the client, behind all that was posted before."""
        self._heard_until = max(self._heard_until, self.keeper.agenda.now + self._delay())
        self.keeper.agenda.at(self._heard_until, lambda: self._pass(line, hear))

    def _pass(self, line: int, do: Callable[[], object]) -> None:
        if line != self._line:
            return  # it was lost with the connection
        if self._held or not self.keeper.reachable(self.life.host):
            self._held.append(lambda: self._pass(line, do))
        else:
            do()

    def let_through(self) -> None:
        held, self._held = self._held, []
        for each in held:
            each()

    def _fire(self, line: int) -> Callable[[str], None]:
        def stir(path: str) -> None:
            self.fired.add(path)
            self.stirred.set()

        return lambda path: self._post(line, lambda: stir(path))

    async def read(self, paths: Sequence[str]) -> list[Found | None]:
        if not paths:
            return []
        wanted = list(paths)
        return await self._ask(lambda _: [self.keeper.get(each) for each in wanted])  # type: ignore[no-any-return]

    async def children(self, paths: Sequence[str]) -> list[list[str] | None]:
        if not paths:
            return []
        wanted = list(paths)
        return await self._ask(lambda _: [self.keeper.list(each) for each in wanted])  # type: ignore[no-any-return]

    async def read_newest(self, path: str) -> Found | None:
        return await self._ask(lambda _: self.keeper.get(path))  # type: ignore[no-any-return]

    async def watch(self, data: str, children: str, existence: str, which: set[str]) -> dict[str, Any]:
        fire = self._fire(self._line)

        def do(session: Session) -> dict[str, Any]:
            got: dict[str, Any] = {}
            if data in which:
                got[data] = self.keeper.get(data)
                self.keeper.watch(("data", data), session, fire)
            if children in which:
                got[children] = self.keeper.list(children)
                self.keeper.watch(("children", children), session, fire)
            if existence in which:
                got[existence] = self.keeper.get(existence)
                self.keeper.watch(("existence", existence), session, fire)
            return got

        return await self._ask(do)  # type: ignore[no-any-return]

    async def commit(self, ops: Iterable[Op | Place]) -> Failure | None:
        wanted = list(ops)
        return await self._ask(lambda session: self.keeper.commit(wanted, session))  # type: ignore[no-any-return]

    async def make_root(self) -> None:
        raise Refused("the simulated ZooKeeper has no chroot")

    # -- the end -------------------------------------------------------------------------------

    def stop(self) -> None:
        """End the session, if that can be said."""
        if self._stopped or not self.life.alive:
            return
        self._stopped = True
        if self._session is not None and self._session.link is self and self.keeper.reachable(self.life.host):
            self.keeper.end(self._session)

    def discard(self) -> None:
        self.interrupt()
        self.stop()
