"""Between a client's request and its handler, while a test wants something of it: a connection of another kind.

Only then: without faults, and without a history, connections are the broker's own, and nobody asks anything.  A
request that no fault is due for is left to them here, too; templates included, but after it was read.
"""

import threading
from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

import trio

from trilogue.broker.network.connection import Connection
from trilogue.broker.network.guests import unwatched
from trilogue.broker.requests.later import Later, Parked, settled, waited
from trilogue.broker.requests.peer import Hangup
from trilogue.broker.requests.registry import APIS, Api, Soon
from trilogue.broker.requests.registry import Answer as Handled
from trilogue.broker.server import Server
from trilogue.testing.faults.damaging import damage
from trilogue.testing.faults.fault import BEFORE, Answer, Close, Corrupt, Delay, Drop, Fault, name_of
from trilogue.testing.faults.faults import Faults, nothing
from trilogue.testing.faults.refusing import Divided, divide, join
from trilogue.testing.faults.shapes import Subject, shape, subjects
from trilogue.testing.history import History, Sent
from trilogue.wire.apis.fetch import FetchRequest
from trilogue.wire.apis.metadata import MetadataRequest, MetadataResponse
from trilogue.wire.apis.produce import ProduceRequest
from trilogue.wire.errors import ErrorCode
from trilogue.wire.frame import Header, read_header, request_reader
from trilogue.wire.schema import Response


class Asked(NamedTuple):
    """A request, read."""

    api: Api
    header: Header
    came: Any
    """As it is."""
    request: Any
    """As it is understood."""
    about: tuple[Subject, ...]


class Trouble:
    """Of a whole broker, for clients and for the other brokers; what `Cluster` does to it."""

    def __init__(self) -> None:
        self.woken: trio.Event | None = None
        """It hangs until then."""
        self.cut: set[int] = set()
        """Brokers that cannot reach it."""
        self.slow_seconds = 0.0

    def __bool__(self) -> bool:
        return self.woken is not None or bool(self.cut) or self.slow_seconds > 0


class Watch:
    """Of one running broker; in its loop, but for `changed`."""

    def __init__(self, server: Server, faults: Faults, history: History) -> None:
        self._server, self._faults, self._history = server, faults, history
        self.trouble = Trouble()
        """Tell `look` when it has changed."""
        self._kinds: dict[type[Connection], type[Connection]] = {}
        self._token, self._thread = trio.lowlevel.current_trio_token(), threading.get_ident()
        faults.changed = history.changed = self._changed
        self.look()

    def close(self) -> None:
        self._faults.changed = self._history.changed = nothing

    def _watched(self, kind: type[Connection]) -> type[Connection]:
        """Always the same for the same."""
        if kind not in self._kinds:
            self._kinds[kind] = watched(self, kind)
        return self._kinds[kind]

    def _changed(self) -> None:
        """By whomever, in whatever thread; when this returns it is so."""
        if threading.get_ident() == self._thread:
            self.look()
        else:
            try:
                trio.from_thread.run_sync(self.look, trio_token=self._token)
            except trio.RunFinishedError:
                self.close()  # it has ended; what is set now is for its next life

    def look(self) -> None:
        """Whether anything is wanted of connections, and of which."""
        wanted = len(self._faults) > 0 or self._history.is_recording or bool(self.trouble)
        self._server.serve_with(self._watched if wanted else unwatched)
        # In a session a fetch does not say what it is about.
        sessions = self._server.broker.fetch_sessions
        if any(fault.wanted.api == "Fetch" for fault in self._faults):
            sessions.limit(0)
        else:
            sessions.limit(self._server.broker.config["max.incremental.fetch.session.cache.slots"])

    # -- a request -----------------------------------------------------------------------------

    def handle(self, connection: Connection, frame: memoryview, usual: Callable[[memoryview], int]) -> int:
        """As `Connection` does: answer how much that is towards a piece of the loop."""
        asked = self._read(frame)
        if asked is None:
            return usual(frame)
        broker = connection.peer.broker
        later: Later[Response | None]
        if broker is not None and broker.node_id in self.trouble.cut:
            later = hang_up(f"cut off from broker {broker.node_id} by the test")
        elif self.trouble.woken is not None:
            later = self._when_woken(connection, asked, self.trouble.woken)
        else:
            due = self._noted(connection, asked)
            if not due and not self.trouble.slow_seconds:
                return usual(frame)
            later = self._begin(connection, asked, due)
        connection.promise(later, asked.api, asked.header.version, asked.header.correlation_id)
        return len(frame)

    def _read(self, frame: memoryview) -> Asked | None:
        """None for what the connection has to refuse."""
        header = read_header(frame)
        api = APIS.get(header.key)
        if api is None or header.version not in api.numbers:
            return None
        # Its own copy: what happens to it may take long, and the buffer is used for others meanwhile.
        came = request_reader(api.request, header.version)(memoryview(bytes(frame)), header.body_at)
        request = self._spelled_out(came, header.version) if isinstance(came, MetadataRequest) else came
        return Asked(api, header, came, request, tuple(subjects(request, header.version, self._name)))

    def _noted(self, connection: Connection, asked: Asked) -> list[Fault]:
        """What happens to it.  Neither faults nor the history are about what brokers ask each other."""
        if connection.peer.broker is not None:
            return []
        if self._history.is_recording:
            header = asked.header
            at_ms, api = self._server.broker.clock(), name_of(asked.api.request)
            self._history.add(Sent(at_ms, api, header.version, header.client_id, asked.about, asked.came))
        return self._due(asked)

    async def _when_woken(self, connection: Connection, asked: Asked, woken: trio.Event) -> Response | None:
        await woken.wait()
        return await self._begin(connection, asked, self._noted(connection, asked))

    def _name(self, topic_id: bytes) -> str | None:
        known = self._server.broker.image.topic_by_id(topic_id)
        return known.name if known else None

    def _spelled_out(self, request: MetadataRequest, version: int) -> MetadataRequest:
        """Who asks for all topics asks for each."""
        if request.topics is None or (version == 0 and not request.topics):
            request = copy(request)
            request.topics = [MetadataRequest.Topic(name=name) for name in self._server.broker.image.topics]
        return request

    def _due(self, asked: Asked) -> list[Fault]:
        """What happens to it.  Whether records are damaged is known when there are some."""
        refusable = shape(asked.api.request, asked.header.version).can_refuse
        return [
            fault
            for fault in self._faults
            if meets(fault, asked)
            and (refusable or not isinstance(fault.action, Answer))
            and (not fault.spent if isinstance(fault.action, Corrupt) else fault.is_due())
        ]

    def _begin(self, connection: Connection, asked: Asked, due: list[Fault]) -> Later[Response | None]:
        """What is done at once; the rest is waited for."""
        connection.peer.version, connection.peer.client_id = asked.header.version, asked.header.client_id
        if (closing := first(due, Close, BEFORE)) is not None:
            return hang_up(reason(closing))
        refusing = [fault for fault in due if isinstance(fault.action, Answer)]

        def judge(subject: Subject) -> ErrorCode | None:
            return next((fault.action.code for fault in refusing if fault.wanted.meets(subject)), None)  # type: ignore[union-attr]

        version = asked.header.version
        divided = divide(asked.request, version, self._name, judge) if refusing else Divided(asked.request, None)
        kept = divided.kept
        if kept is None and isinstance(asked.request, MetadataRequest):
            kept = without_topics(asked.request)
        if isinstance(kept, FetchRequest) and divided.refused is not None:
            kept.max_wait_ms = 0  # an error is said at once
        answer = asked.api.handler(self._server.broker, kept, connection.peer) if kept is not None else None
        return self._finish(connection, asked, answer, divided, due)

    async def _finish(
        self, connection: Connection, asked: Asked, handled: Handled, divided: Divided, due: list[Fault]
    ) -> Response | None:
        soon: Soon = await settled(handled)
        response = await waited(soon) if isinstance(soon, Parked) else soon
        version = asked.header.version
        if divided.refused is not None:
            if isinstance(asked.request, ProduceRequest) and not asked.request.acks:
                raise Hangup("an error with acks=0, by a fault of the test")
            if response is not None:
                if isinstance(response, MetadataResponse) and divided.kept is None:
                    response.topics = []  # v0 asks for all of them by asking for none
                response = join(response, divided.refused, asked.api.request, version)
            else:
                response = divided.refused
        if response is not None:
            for fault in due:
                if isinstance(fault.action, Corrupt):
                    damage(response, version, self._name, fault)
        late = sum(fault.action.seconds for fault in due if isinstance(fault.action, Delay))
        await trio.sleep(late + self.trouble.slow_seconds)
        if first(due, Drop) is not None:
            fall_silent(connection)
            return None
        if (closing := first(due, Close)) is not None:
            raise Hangup(reason(closing))
        return response


def meets(fault: Fault, asked: Asked) -> bool:
    return fault.wanted.api == name_of(asked.api.request) and fault.wanted.is_of(asked.header.client_id, asked.about)


# -- what happens to connections -------------------------------------------------------------------


def watched(watch: Watch, kind: type[Connection]) -> type[Connection]:
    """The kind of connection that brings all requests here first."""

    class Watched(kind):  # type: ignore[misc,valid-type]
        __slots__ = ()

        def _handle(self, frame: memoryview) -> int:
            login = self.peer.login
            if login is not None and not login.known(self._broker.clock()):
                return super()._handle(frame)  # type: ignore[no-any-return]
            return watch.handle(self, frame, super()._handle)

    return Watched


class Silent(Connection):
    """Takes what comes, and neither does it nor answers; until the client hangs up."""

    __slots__ = ()

    def _feed(self, view: memoryview) -> int:
        self.takes_more = bool(self.unconfirmed)
        return len(view)


def fall_silent(connection: Connection) -> None:
    """Called while its first answer is waited for; what was done after that is not answered either."""
    while len(connection.unconfirmed) > 1:
        later = connection.unconfirmed.pop().later
        if later is not None:
            later.close()
    connection.__class__ = Silent


async def hang_up(why: str) -> Response | None:
    raise Hangup(why)


def reason(fault: Fault) -> str:
    return f"by a fault of the test: {fault.wanted}: {fault.action}"


def first(due: list[Fault], kind: type, when: str | None = None) -> Fault | None:
    return next(
        (each for each in due if isinstance(each.action, kind) and when in (None, getattr(each.action, "when", None))),
        None,
    )


def without_topics(request: MetadataRequest) -> MetadataRequest:
    """Where the brokers are is told all the same."""
    rest = copy(request)
    rest.topics = []
    return rest
