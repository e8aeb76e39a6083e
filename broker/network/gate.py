"""The gate: one task that serves every socket that is ready.

It waits for a nested epoll, and then receives once from each ready socket, handles all complete frames, and sends all
the answers of a connection in one call.  Answers that wait for data or for followers are parked: whoever brings them
about is at the gate himself, mostly, and they leave in the same turn.  Only a connection that has to wait for something
else (a thread, a coordinator, a peer that does not read) leaves the gate for a task of its own, which finishes the
answer, drains what has arrived meanwhile, and puts it back.

Measured against a task per connection, in one run: equal for large batches, 1.8x the requests with 50 connections
of one small request each.  What mattered: a receive buffer of 128 KiB, no cancel scope or spawned task per
request, and draining.
"""

import contextlib
import select
import socket
from collections.abc import Callable
from functools import partial
from math import inf
from time import monotonic

import trio

from trilogue.broker.broker import Broker
from trilogue.broker.network.buffers import RECEIVE_BYTES, Spares
from trilogue.broker.network.connection import Connection
from trilogue.broker.network.guests import Guest, Guests, NoDescriptors, Watched
from trilogue.broker.network.listeners import Listener
from trilogue.broker.network.parking import Parking
from trilogue.broker.network.sending import send_some
from trilogue.broker.network.timerfd import TimerFd
from trilogue.broker.requests.peer import Hangup, Peer
from trilogue.broker.requests.turns import PIECE_SECONDS
from trilogue.wire.errors import MalformedMessage

TOGETHER = 32
"""So many sockets are read before the first of them is answered.  A peer that is woken by one answer then finds more of
them; woken for each, it costs the machine as much as everything we do for a small request.  With 16: 0.94."""

TOGETHER_BYTES = 256 * 1024
"""But no more than this: what takes long to handle must not keep those waiting who have been handled."""

TURN_SECONDS = 0.001
"""How long sockets are served before other tasks have a turn."""

BUSY_SECONDS = 0.001
"""Whoever was answered often has the next request ready at once.  Waiting for it here, while nobody else has anything
to do, spares the way through trio: an eighth more requests/s, and a fifth off the p99 of acknowledgements.  Where
requests come less often than that it would cost a fifth more."""

PATIENCE_SECONDS = 0.005
"""How long other tasks may have to wait meanwhile for a deadline or a thread of theirs: so often the timer expires.
With 1 ms, half of what it gains is lost again (`timerfd.py`); with none at all there would be little more to gain."""

FOREVER, NOT_AT_ALL = -1, 0


class Runnable(trio.abc.Instrument):
    """Knows which tasks are to run and have not had their turn."""

    def __init__(self) -> None:
        self.tasks: set[trio.lowlevel.Task] = set()

    def task_scheduled(self, task: trio.lowlevel.Task) -> None:
        self.tasks.add(task)

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.tasks.discard(task)


class GateGuest(Guest):
    """`busy`: a task of its own looks after it, and at the gate nothing is read from it."""

    __slots__ = ("looked_at", "trouble", "watched", "woken")

    def __init__(self, sock: socket.socket, connection: Connection, now: float) -> None:
        super().__init__(sock, connection, now)
        self.watched = False
        """At the gate, it is noticed when something comes."""
        self.trouble: Exception | None = None
        """What went wrong while a task looks after it, which has to end first."""
        self.woken, self.looked_at = False, inf

    @property
    def deadline(self) -> float:
        return self.connection.deadline


class Gate:
    def __init__(self, broker: Broker, nursery: trio.Nursery) -> None:
        self._broker, self._nursery = broker, nursery
        self._epoll = select.epoll()
        self._timer = TimerFd()
        self._epoll.register(self._timer.fileno(), select.EPOLLIN)
        self._listeners: dict[int, tuple[socket.socket, Listener]] = {}
        self._guests: Guests[GateGuest] = Guests(broker, self._close)
        self._spares = Spares()
        self._buffer = bytearray(RECEIVE_BYTES)
        self._view = memoryview(self._buffer)
        self._now = 0.0
        """When sockets were looked at last."""
        self._taken = 0
        """How many bytes have come from sockets that are not answered yet."""
        self._busy = False
        """Whether sockets were looked at so lately that more may come at once."""
        self._received = False
        """Whether anything has come since the timer was set."""
        self._runnable = Runnable()
        self._blocked = 0
        """How many connections wait for a peer that does not read."""
        self._parking: Parking[GateGuest] = Parking(self._serve_woken)

    def add(self, listener: Listener) -> None:
        for sock in listener.sockets:
            self._listeners[sock.fileno()] = sock, listener
            self._epoll.register(sock.fileno(), select.EPOLLIN)

    # -- the loop ------------------------------------------------------------------------------

    async def run(self) -> None:
        trio.lowlevel.add_instrument(self._runnable)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._parking.run)
                await self._serve()
        finally:
            trio.lowlevel.remove_instrument(self._runnable)

    async def sweep(self) -> None:
        await self._guests.sweep()

    def serve_with(self, watched: Watched) -> None:
        self._guests.serve_with(watched)

    def hang_up(self, which: Callable[[Peer], bool]) -> None:
        self._guests.hang_up(which)

    async def _serve(self) -> None:
        guests, poll, parking = self._guests.by_fd, self._epoll.poll, self._parking
        while True:
            await trio.lowlevel.wait_readable(self._epoll.fileno())
            begun = trio.current_time()
            self._busy = begun - self._now < BUSY_SECONDS
            self._now = begun
            while ready := poll(self._patience(), TOGETHER):
                parking.open = True
                served: list[GateGuest] = []
                long: list[GateGuest] = []
                for fd, _ in ready:
                    guest = guests.get(fd)
                    if guest is None:
                        self._accept_or_tick(fd)
                        continue
                    connection = guest.connection
                    if guest.busy:
                        if connection.takes_more:
                            self._receive(guest)
                        else:
                            self._unwatch(guest)
                            self._look_ahead(guest)
                    # `is_blocked`, without the call: here a tenth of a microsecond is one in 150.
                    elif connection.parked is not None or (connection.unconfirmed and not connection.takes_more):
                        self._unwatch(guest)
                        self._look_ahead(guest)
                    elif connection.long:
                        long.append(guest)
                    elif self._receive(guest):
                        served.append(guest)
                        self._received = True
                        if self._taken > TOGETHER_BYTES or connection.long:
                            self._answer(served)
                self._answer(served)
                if long:
                    # Whose last requests took long comes after everybody else, one in each turn: the others of them
                    # are as ready in the next.
                    patient = min(long, key=lambda each: each.last_active)
                    if self._receive(patient):
                        self._answer([patient])
                if parking.woken:
                    self._serve_woken()
                parking.open = False
                self._now = trio.current_time()
                if self._now - begun > TURN_SECONDS:
                    # Not back to trio's own wait: a request would have to come all the way through it.
                    await trio.lowlevel.checkpoint()
                    begun = trio.current_time()

    def _patience(self) -> int:
        """How long to wait for more here: until the timer expires, or not at all if others would wait with us."""
        if not self._busy or self._runnable.tasks or self._blocked or self._broker.upkeep.flushing:
            return NOT_AT_ALL
        if not self._timer.armed:
            self._timer.set(PATIENCE_SECONDS)
            self._received = False
        return FOREVER

    def _accept_or_tick(self, fd: int) -> None:
        """A listener, or the timer."""
        if fd != self._timer.fileno():
            self._accept(fd)
            return
        self._timer.acknowledge()
        self._busy = self._received  # if nothing has come for so long, trio may wait for it

    def stop_listening(self) -> None:
        for fd, (sock, _) in self._listeners.items():
            with contextlib.suppress(FileNotFoundError):  # it may be pausing
                self._epoll.unregister(fd)
            sock.close()
        self._listeners.clear()

    def close(self) -> None:
        self._guests.close()
        self._epoll.close()
        self._timer.close()

    # -- connections ---------------------------------------------------------------------------

    def _accept(self, fd: int) -> None:
        found = self._listeners.get(fd)
        if found is None:
            return  # closed by what came just before it
        try:
            for sock, peer in self._guests.accept(*found):
                guest = GateGuest(sock, self._guests.greet(peer, found[1], self._spares), self._now)
                guest.connection.wake = partial(self._parking.wake, guest)
                self._guests.add(guest)
                self._watch(guest)
        except NoDescriptors:
            self._epoll.unregister(fd)
            self._nursery.start_soon(self._listen_again, fd)

    async def _listen_again(self, fd: int) -> None:
        await self._guests.wait_for_descriptors()
        if fd in self._listeners:
            self._epoll.register(fd, select.EPOLLIN)

    def _receive(self, guest: GateGuest) -> bool:
        """Read once and handle what is complete; whether it is still there."""
        connection = guest.connection
        try:
            if connection.tail is None:
                size = guest.sock.recv_into(self._buffer)
                connection.receive(self._view[:size])
            else:
                with connection.room() as room:
                    size = guest.sock.recv_into(room)
                connection.received(size)
            if size:
                self._taken += size
                guest.last_active = self._now
                return True
            if guest.busy:
                self._unwatch(guest)  # whoever sends the answers will hear of it
            else:
                self._close(guest)  # the peer has hung up
        except BlockingIOError:
            return True
        except Exception as error:
            if guest.busy:
                guest.trouble = error
                self._unwatch(guest)
            else:
                self._drop(guest, error)
        return False

    def _answer(self, served: list[GateGuest]) -> None:
        """Those who need not wait for it."""
        for guest in served:
            connection = guest.connection
            try:
                sent = send_some(guest.sock, connection.out)
                if sent and not (connection.later or connection.parked or connection.unconfirmed or connection.long):
                    continue  # almost always
                if not sent or connection.needs_task:
                    self._set_aside(guest)
                elif connection.is_parked:
                    self._parking.expect(guest)
                    if connection.tail is not None:
                        self._look_ahead(guest)
            except (Hangup, OSError) as error:
                self._guests.drop(guest, error)
        served.clear()
        self._taken = 0

    # -- connections that wait -----------------------------------------------------------------

    def _serve_woken(self) -> None:
        """Those whose parked answers may be there, and who is woken by what they have asked meanwhile; a piece of them:
        forty fetches over a thousand partitions whose time is over at once took a quarter of a second."""
        parking, served = self._parking, []
        now = trio.current_time()
        until = monotonic() + PIECE_SECONDS
        while parking.woken:
            guest = parking.next_woken()
            if self._unpark(guest, now):
                served.append(guest)
            if monotonic() > until:
                break
        self._answer(served)
        if parking.woken:
            parking.go_on()

    def _unpark(self, guest: GateGuest, now: float) -> bool:
        """Whether there may be something to send."""
        if guest.busy or guest.sock.fileno() < 0:
            return False
        try:
            guest.connection.unpark(now)
        except Exception as error:
            self._drop(guest, error)
            return False
        if not guest.connection.is_blocked:
            self._watch(guest)
        guest.last_active = now
        return True

    def _drop(self, guest: GateGuest, error: Exception) -> None:
        if isinstance(error, MalformedMessage | Hangup | OSError):
            self._guests.drop(guest, error)
        else:
            self._guests.drop_for_bug(guest)

    def _set_aside(self, guest: GateGuest) -> None:
        # It stays in the epoll until something comes: mostly it is back before.
        guest.busy = True
        try:
            self._nursery.start_soon(self._attend, guest)
        except RuntimeError:  # we have just stopped, and nobody is looked after any more
            self._close(guest)

    def _look_ahead(self, guest: GateGuest) -> None:
        """More has come from one who waits, or its end."""
        connection = guest.connection
        if connection.gives_way:
            head = b""
            if lacks := connection.head_lacks:
                with contextlib.suppress(OSError):  # whoever reads will hear of it
                    head = guest.sock.recv(lacks, socket.MSG_PEEK)
            connection.look_ahead(head)

    def _watch(self, guest: GateGuest) -> None:
        if not guest.watched:
            self._epoll.register(guest.sock.fileno(), select.EPOLLIN)
            guest.watched = True

    def _unwatch(self, guest: GateGuest) -> None:
        """Out of the epoll altogether: with an empty mask it would still go on reporting that the peer hung up."""
        if guest.watched:
            self._epoll.unregister(guest.sock.fileno())
            guest.watched = False

    async def _attend(self, guest: GateGuest) -> None:
        """Everything that has to be waited for, until the connection can go back to the gate."""

        async def finish() -> None:
            if guest.connection.tail is not None or not guest.watched:
                self._look_ahead(guest)
            await guest.connection.finish()

        async def send() -> None:
            while not send_some(guest.sock, guest.connection.out):
                self._blocked += 1
                try:
                    await trio.lowlevel.wait_writable(guest.sock)
                finally:
                    self._blocked -= 1

        try:
            await guest.connection.settle(finish, send, parks=True)
            if guest.trouble is not None:
                raise guest.trouble
            guest.last_active = trio.current_time()
            guest.busy = False
            self._watch(guest)
            if guest.connection.is_parked:
                self._parking.expect(guest)
                self._parking.wake(guest)  # it may have been woken while it was busy
        except (MalformedMessage, Hangup, OSError, trio.ClosedResourceError) as error:
            self._guests.drop(guest, error)
        except Exception:
            self._guests.drop_for_bug(guest)

    def _close(self, guest: GateGuest) -> None:
        if guest.sock.fileno() >= 0:
            self._unwatch(guest)
            self._guests.remove(guest)
