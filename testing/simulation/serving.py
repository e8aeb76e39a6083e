"""How a simulated broker serves its connections: as `network/gate.py` does, with ends of the network for sockets.

What is parked waits without a task, and a producer's next batch is handled before the last is confirmed.  Who decides
that is `network/connection.py`, which is the product's own, as is `network/parking.py`.
"""

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from math import inf

import trio

from trilogue.broker.broker import Broker
from trilogue.broker.network.buffers import Spares
from trilogue.broker.network.connection import Connection, Part
from trilogue.broker.network.guests import Watched
from trilogue.broker.network.listeners import Listener
from trilogue.broker.network.parking import Parking
from trilogue.broker.network.sending import read
from trilogue.broker.requests.peer import Hangup, Peer
from trilogue.client.world import Address
from trilogue.storage.slices import Slice
from trilogue.testing.simulation.lives import Life
from trilogue.testing.simulation.network import End, Network
from trilogue.wire.errors import MalformedMessage

logger = logging.getLogger(__name__)

EXPECTED = (MalformedMessage, Hangup, OSError, trio.ClosedResourceError)


class Guest:
    __slots__ = ("busy", "connection", "end", "looked_at", "trouble", "watched", "woken")

    def __init__(self, end: End, connection: Connection) -> None:
        self.end, self.connection = end, connection
        self.busy = False
        """A task looks after it."""
        self.watched = True
        """What comes is read."""
        self.trouble: Exception | None = None
        """What went wrong while a task looks after it, which has to end first."""
        self.woken, self.looked_at = False, inf

    @property
    def deadline(self) -> float:
        return self.connection.deadline


class Serving:
    """See `network.transport.Transport`."""

    def __init__(self, broker: Broker, nursery: trio.Nursery, network: Network, life: Life) -> None:
        self._broker, self._nursery, self._network, self._life = broker, nursery, network, life
        self._listeners: list[Listener] = []
        self._kind: type[Connection] = Connection
        self._guests: dict[Guest, None] = {}
        self._spares = Spares()
        self._buffer = memoryview(bytearray(128 << 10))
        self._parking: Parking[Guest] = Parking(self._serve_woken)
        self._ready: dict[Guest, None] = {}
        self._stirred = trio.Event()

    def add(self, listener: Listener) -> None:
        self._listeners.append(listener)

    async def run(self) -> None:
        self._nursery.start_soon(self._parking.run)
        for each in self._listeners:
            self._network.listen(self._life, Address(each.host, each.port), partial(self._welcome, each))
        while True:
            await self._stirred.wait()
            self._stirred = trio.Event()
            while self._ready:
                self._parking.open = True
                come, self._ready = self._ready, {}
                self._answer([each for each in come if self._take(each)])
                if self._parking.woken:
                    self._serve_woken()
                self._parking.open = False
                await trio.lowlevel.checkpoint()

    async def sweep(self) -> None:
        await trio.sleep_forever()

    def serve_with(self, watched: Watched) -> None:
        self._kind = watched(Connection)
        for guest in self._guests:
            guest.connection.__class__ = self._kind

    def hang_up(self, which: Callable[[Peer], bool]) -> None:
        for guest in list(self._guests):
            if which(guest.connection.peer):
                self._close(guest)

    def stop_listening(self) -> None:
        for each in self._listeners:
            self._network.stop_listening(Address(each.host, each.port))

    def close(self) -> None:
        for guest in list(self._guests):
            self._close(guest)

    # -- connections ---------------------------------------------------------------------------

    def _welcome(self, listener: Listener, end: End) -> None:
        peer = Peer(listener.name, end.other.life.host, (listener.host, listener.port))
        guest = Guest(end, self._kind(self._broker, peer, self._spares))
        guest.connection.wake = partial(self._parking.wake, guest)
        self._guests[guest] = None
        end.told = partial(self._come, guest)

    def _come(self, guest: Guest) -> None:
        """There is something to read."""
        if guest.watched:
            self._ready[guest] = None
            self._stirred.set()

    def _watch(self, guest: Guest) -> None:
        guest.watched = True
        if guest.end.inbox or guest.end.over:
            self._come(guest)

    def _take(self, guest: Guest) -> bool:
        """Whether there may be something to answer."""
        if guest not in self._guests:
            return False
        connection = guest.connection
        if guest.busy and connection.takes_more:
            self._receive(guest)
        elif guest.busy or connection.is_blocked:
            guest.watched = False
            self._look_ahead(guest)
        else:
            return self._receive(guest)
        return False

    def _receive(self, guest: Guest) -> bool:
        """Read once and handle what is complete; whether it is still there."""
        connection = guest.connection
        try:
            if connection.tail is None:
                size = guest.end.receive_into(self._buffer)
                connection.receive(self._buffer[:size])
            else:
                with connection.room() as room:
                    size = guest.end.receive_into(room)
                connection.received(size)
        except Exception as error:
            if guest.busy:
                guest.trouble, guest.watched = error, False
            else:
                self._drop(guest, error)
            return False
        if not size and guest.end.over:
            guest.watched = False
            if not guest.busy:
                self._close(guest)
            return False
        if guest.end.inbox or guest.end.over:
            self._come(guest)
        return True

    def _answer(self, served: list[Guest]) -> None:
        for guest in served:
            connection = guest.connection
            try:
                self._send(guest)
                if connection.needs_task:
                    self._set_aside(guest)
                elif connection.is_parked:
                    self._parking.expect(guest)
                    if connection.tail is not None:
                        self._look_ahead(guest)
            except EXPECTED:
                self._close(guest)

    def _send(self, guest: Guest) -> None:
        out = guest.connection.out
        if out:
            parts: deque[Part] = out
            guest.end.send(b"".join(read(each) if isinstance(each, Slice) else each for each in parts))
            out.clear()

    # -- connections that wait -----------------------------------------------------------------

    def _look_ahead(self, guest: Guest) -> None:
        """More has come from one who waits, or its end."""
        connection = guest.connection
        if connection.gives_way:
            connection.look_ahead(b"".join(guest.end.inbox)[: connection.head_lacks])

    def _serve_woken(self) -> None:
        served, now = [], trio.current_time()
        while self._parking.woken:
            guest = self._parking.next_woken()
            if self._unpark(guest, now):
                served.append(guest)
        self._answer(served)

    def _unpark(self, guest: Guest, now: float) -> bool:
        if guest.busy or guest not in self._guests:
            return False
        try:
            guest.connection.unpark(now)
        except Exception as error:
            self._drop(guest, error)
            return False
        if not guest.connection.is_blocked:
            self._watch(guest)
        return True

    def _set_aside(self, guest: Guest) -> None:
        guest.busy = True
        self._nursery.start_soon(self._attend, guest)

    async def _attend(self, guest: Guest) -> None:
        """Everything that has to be waited for, until the connection can go back."""

        async def finish() -> None:
            if guest.connection.tail is not None or not guest.watched:
                self._look_ahead(guest)
            await guest.connection.finish()

        async def send() -> None:
            self._send(guest)

        try:
            await guest.connection.settle(finish, send, parks=True)
            if guest.trouble is not None:
                raise guest.trouble
        except Exception as error:
            self._drop(guest, error)
        else:
            guest.busy = False
            self._watch(guest)
            if guest.connection.is_parked:
                self._parking.expect(guest)
                self._parking.wake(guest)  # it may have been woken while it was busy

    def _drop(self, guest: Guest, error: Exception) -> None:
        if not isinstance(error, EXPECTED):
            logger.error("a bug of ours, met by %s", guest.connection.peer, exc_info=error)
        self._close(guest)

    def _close(self, guest: Guest) -> None:
        if guest in self._guests:
            del self._guests[guest]
            guest.end.close()
            guest.connection.close()
