"""One session of ZooKeeper's, by way of kazoo.  The only file that knows kazoo; `remote.py` knows what it is for.

kazoo has threads of its own.  They do nothing but post into trio: what waits here is a task, and no call of kazoo's
that blocks is made on the loop or in one of its callbacks.

Reading is done a hundred nodes at a time (multiRead, of ZooKeeper 3.6).  kazoo does not know it, but sends and receives
whatever can be written and read; node by node it takes twenty times as long.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from enum import Enum
from math import inf
from typing import Any, NamedTuple

import trio
from kazoo.client import KazooClient, TransactionRequest
from kazoo.exceptions import (
    EXCEPTIONS,
    AuthFailedError,
    BadVersionError,
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
    SessionMovedError,
    UnimplementedError,
)
from kazoo.protocol import serialization
from kazoo.protocol.serialization import GetChildren, GetData, MultiHeader, Transaction
from kazoo.protocol.states import KazooState, WatchedEvent, ZnodeStat
from kazoo.retry import KazooRetry
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from trilogue.broker.cluster.ensemble import Ensemble
from trilogue.broker.cluster.multi import Place, ancestors
from trilogue.broker.cluster.store import Check, Create, Delete, Op, Refused, Update

quiet = logging.getLogger(f"{__name__}.kazoo")
quiet.setLevel(logging.ERROR)  # it warns of every attempt to connect; we say ourselves how things stand

SENSITIVE = ("/config/users/", "/config/brokers/")
"""There are secrets in them, so Kafka lets nobody else read them."""
READS_PER_REQUEST, REQUESTS_AT_ONCE = 100, 4
"""A hundred nodes take a millisecond to take apart."""
COMMIT_BYTES_MAX = 0xFFFFF - 1024
"""jute.maxbuffer, less what is around a request.  ZooKeeper hangs up on whoever sends more, without a word."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 1.0
"""Seconds between two attempts to connect."""


class Found(NamedTuple):
    """A node as ZooKeeper has it."""

    data: bytes | None
    """None: a place, not a node."""
    created: int
    """czxid and mzxid: the numbers of the commits that made it and changed it last."""
    changed: int
    version: int
    owner: int
    """The session that it ends with; 0 if it stays."""
    children: int


class Broken(Exception):
    """The connection is gone: of what was sent, nothing is known."""


class Why(Enum):
    EXISTS = "is there already"
    MISSING = "is not there"
    VERSION = "has another version"
    CHILDREN = "has something below it"


class Failure(NamedTuple):
    """Of a commit: nothing of it was done, because of one op."""

    at: int
    why: Why


class State(Enum):
    CONNECTED = KazooState.CONNECTED
    BROKEN = KazooState.SUSPENDED
    """The session goes on if a connection comes in time."""
    LOST = KazooState.LOST


WHY = {
    NodeExistsError: Why.EXISTS,
    NoNodeError: Why.MISSING,
    BadVersionError: Why.VERSION,
    NotEmptyError: Why.CHILDREN,
}
CONNECTION = (ConnectionLoss, ConnectionClosedError, SessionExpiredError, SessionMovedError)
CREDENTIALS = (NoAuthError, AuthFailedError)


class MultiRead:
    """Many reads in one request: what kazoo asks of one."""

    type = 22

    def __init__(self, operations: Sequence[GetData | GetChildren]) -> None:
        self.operations = operations

    def serialize(self) -> bytearray:
        return Transaction.serialize(self)  # type: ignore[no-any-return]

    @classmethod
    def deserialize(cls, buffer: bytes, at: int) -> list[Any]:
        answers: list[Any] = []
        while True:
            header, at = MultiHeader.deserialize(buffer, at)
            if header.done:
                return answers
            if header.type == GetData.type:
                data, stat = GetData.deserialize(buffer, at)
                answers.append(found(data, stat))
                at += 4 + len(data or b"") + serialization.stat_struct.size
            elif header.type == GetChildren.type:
                names = GetChildren.deserialize(buffer, at)
                answers.append(names)
                at += 4 + sum(4 + len(name.encode()) for name in names)
            else:
                answers.append(EXCEPTIONS[serialization.int_struct.unpack_from(buffer, at)[0]]())
                at += 4


class Link:
    """A client of kazoo's, from its start until its session is over.  Paths are ours: below the chroot."""

    def __init__(self, ensemble: Ensemble) -> None:
        self._root, self._secured = ensemble.chroot, ensemble.set_acl
        self._token = trio.lowlevel.current_trio_token()
        self._stopping = threading.Lock()
        self._waiting: set[trio.Event] = set()
        self._states_in, self.states = trio.open_memory_channel[State](inf)
        self.timeout_seconds = ensemble.session_timeout_seconds
        """As granted by the server, once it has."""
        self.session_id = 0
        self.connections = 0
        self.connected = False
        self.fired: set[str] = set()
        """Paths whose watches have to be set again."""
        self.stirred = trio.Event()
        self._client = client_for(ensemble)
        self._note_granted_timeout()
        self._client.add_listener(self._heard)

    def start(self) -> None:
        self._client.start_async()

    def _note_granted_timeout(self) -> None:
        connection = self._client._connection
        connect = connection._connect

        def noting(*args: object) -> tuple[float, float]:
            read_ms, connect_ms = connect(*args)
            self.timeout_seconds = read_ms * 1.5 / 1000  # kazoo waits two thirds of it for an answer
            return read_ms, connect_ms

        connection._connect = noting

    # -- in kazoo's threads --------------------------------------------------------------------

    def _post(self, call: Callable[..., object], *args: object) -> None:
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(call, *args)

    def _heard(self, state: str) -> None:
        self._post(self._states_in.send_nowait, State(state))

    def _fire(self, event: WatchedEvent) -> None:
        if event.path:  # otherwise only the connection has changed
            self._post(self._stir, event.path.removeprefix(self._root))

    # -- on the loop ---------------------------------------------------------------------------

    def _stir(self, path: str) -> None:
        self.fired.add(path)
        self.stirred.set()

    def interrupt(self) -> None:
        """The connection is gone: nobody waits for an answer, or for a watch, any more."""
        self.connected = False
        self.stirred.set()
        for told in self._waiting:
            told.set()

    def resume(self) -> None:
        self.connected = True
        self.connections += 1
        if (known := self._client.client_id) is not None:
            self.session_id = int(known[0])

    async def _ask(self, *calls: Callable[[], Any]) -> list[Any]:
        """The answers; of exceptions those that say something about nodes."""
        told = [trio.Event() for _ in calls]
        self._waiting.update(told)
        try:
            results = [self._begun(call, event) for call, event in zip(calls, told, strict=True)]
            for event in told:
                await event.wait()
        finally:
            self._waiting.difference_update(told)
        return [answer(result) for result in results]

    def _begun(self, call: Callable[[], Any], told: trio.Event) -> Any:
        result = call()
        result.rawlink(lambda _: self._post(told.set))
        return result

    # -- reading -------------------------------------------------------------------------------

    async def read(self, paths: Sequence[str]) -> list[Found | None]:
        return [missing_as(None, each) for each in await self._many(GetData, paths)]

    async def children(self, paths: Sequence[str]) -> list[list[str] | None]:
        return [missing_as(None, each) for each in await self._many(GetChildren, paths)]

    async def _many(self, kind: type[GetData | GetChildren], paths: Sequence[str]) -> list[Any]:
        answers = []
        stride = READS_PER_REQUEST * REQUESTS_AT_ONCE
        for at in range(0, len(paths), stride):
            operations = [kind(self._full(path), None) for path in paths[at : at + stride]]
            parts = [operations[i : i + READS_PER_REQUEST] for i in range(0, len(operations), READS_PER_REQUEST)]
            for part in await self._ask(*(self._sender(MultiRead(each)) for each in parts)):
                answers += part
        return answers

    def _sender(self, request: MultiRead) -> Callable[[], Any]:
        def send() -> Any:
            result = self._client.handler.async_result()
            self._client._call(request, result)
            return result

        return send

    async def read_newest(self, path: str) -> Found | None:
        """As the leader of the ensemble has it, and after everything that this session has asked for before."""
        client, full = self._client, self._full(path)
        _, got = await self._ask(lambda: client.sync_async(full), lambda: client.get_async(full))
        return missing_as(None, got) and found(*got)

    async def watch(self, data: str, children: str, existence: str, which: set[str]) -> dict[str, Any]:
        """Read some of these, and be told through `fired` when they change: None for one that is not there."""
        client, fire = self._client, self._fire
        calls = {
            data: lambda: client.get_async(self._full(data), fire),
            children: lambda: client.get_children_async(self._full(children), fire),
            existence: lambda: client.exists_async(self._full(existence), fire),
        }
        asked = [path for path in calls if path in which]
        answers = dict(zip(asked, await self._ask(*(calls[path] for path in asked)), strict=True))
        got = {path: missing_as(None, each) for path, each in answers.items()}
        if got.get(data) is not None:
            got[data] = found(*got[data])
        return got

    # -- writing -------------------------------------------------------------------------------

    async def commit(self, ops: Iterable[Op | Place]) -> Failure | None:
        """All of it or nothing.  `Refused` before anything is sent, if it is too large."""
        multi = TransactionRequest(self._client)
        multi.operations += [self._operation(op) for op in ops]
        size = len(Transaction(multi.operations).serialize())
        if size > COMMIT_BYTES_MAX:
            raise Refused(f"a change of {size} bytes is more than ZooKeeper takes at once ({COMMIT_BYTES_MAX})")
        (results,) = await self._ask(multi.commit_async)
        for at, result in enumerate(results):
            if not isinstance(result, KazooException) or isinstance(result, RolledBackError | RuntimeInconsistency):
                continue  # done, or not done because of another
            why = WHY.get(type(result))
            if why is None:
                raise understood(result)
            return Failure(at, why)
        return None

    def _operation(self, op: Op | Place) -> object:
        path = self._full(op.path)
        match op:
            case Create(_, data, ephemeral):
                return serialization.Create(path, data, self._acl(op.path), int(ephemeral))
            case Place():
                return serialization.Create(path, None, self._acl(op.path), 0)
            case Update(_, data, version):
                return serialization.SetData(path, data, version)
            case Delete(_, version):
                return serialization.Delete(path, version)
            case Check(_, version):
                return serialization.CheckVersion(path, version)

    def _acl(self, path: str) -> Any:
        if not self._secured:
            return OPEN_ACL_UNSAFE
        return CREATOR_ALL_ACL if path.startswith(SENSITIVE) else [*CREATOR_ALL_ACL, *READ_ACL_UNSAFE]

    async def make_root(self) -> None:
        client = self._client
        for path in [*ancestors(self._root), self._root] if self._root else []:
            multi = TransactionRequest(client)
            multi.operations.append(serialization.Create(path, None, self._acl(path), 0))
            await self._ask(multi.commit_async)

    def _full(self, path: str) -> str:
        return self._root + path if path != "/" else self._root or "/"

    # -- the end -------------------------------------------------------------------------------

    def stop(self) -> None:
        """End the session.  In a thread of its own: kazoo waits for its threads, and those perhaps for the network."""
        if self._stopping.acquire(blocking=False):  # once: two who stop it trip over each other
            with suppress(KazooException, OSError, AttributeError):  # the last: it was stopped before it had begun
                self._client.stop()
                self._client.close()

    def discard(self) -> None:
        self.interrupt()
        threading.Thread(target=self.stop, name="end of a session", daemon=True).start()


def client_for(ensemble: Ensemble) -> KazooClient:
    secured: dict[str, object] = {}
    if (tls := ensemble.tls) is not None:
        secured = {
            "use_ssl": True,
            "ca": tls.ca,
            "certfile": tls.certificate,
            "keyfile": tls.certificate,
            "keyfile_password": tls.password,
            "check_hostname": tls.check_hostname,
        }
    return KazooClient(
        hosts=ensemble.hosts,
        timeout=ensemble.session_timeout_seconds,
        auth_data=[("digest", ensemble.digest)] if ensemble.digest else None,
        connection_retry=KazooRetry(max_tries=-1, delay=FIRST_PAUSE, max_delay=LONGEST_PAUSE),
        logger=quiet,
        **secured,
    )


def answer(result: Any) -> Any:
    if not result.ready():
        raise Broken
    try:
        return result.get_nowait()
    except NoNodeError as missing:
        return missing
    except KazooException as error:
        raise understood(error) from None


def understood(error: KazooException) -> Exception:
    if isinstance(error, CONNECTION):
        return Broken()
    if isinstance(error, UnimplementedError):
        return Refused("ZooKeeper 3.6 or newer is needed")
    if isinstance(error, CREDENTIALS):
        return Refused("ZooKeeper does not let us do that with these credentials")
    return Refused(f"ZooKeeper answers {type(error).__name__}")


def missing_as(instead: Any, got: Any) -> Any:
    if isinstance(got, NoNodeError):
        return instead
    if isinstance(got, KazooException):
        raise understood(got)
    return got


def found(data: bytes | None, stat: ZnodeStat) -> Found:
    return Found(data, stat.czxid, stat.mzxid, stat.version, stat.ephemeralOwner, stat.numChildren)
