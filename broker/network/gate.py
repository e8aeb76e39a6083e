"""The gate: one task that serves every socket that is ready.

It waits for a nested epoll, and then receives once from each ready socket, handles all complete frames, and sends all
the answers of a connection in one call.  Only a connection that has to wait (for data, for followers, for a peer
that does not read) leaves the gate for a task of its own, which finishes the answer, drains what has arrived
meanwhile, and puts it back.

Measured against a task per connection, in one run: equal for large batches, 1.8x the requests with 50 connections
of one small request each.  What mattered: a receive buffer of 128 KiB, no cancel scope or spawned task per
request, and draining.
"""

import contextlib
import errno
import logging
import select
import socket
from collections import Counter
from typing import TYPE_CHECKING

import trio

from trilogue.broker.network.connection import Connection
from trilogue.broker.network.listeners import plain_host
from trilogue.broker.network.timerfd import Alarm
from trilogue.broker.requests.peer import Hangup, Peer
from trilogue.wire.apis.fetch import FetchRequest
from trilogue.wire.errors import MalformedMessage
from trilogue.wire.frame import SIZE

if TYPE_CHECKING:
    from trilogue.broker.broker import Broker
    from trilogue.broker.network.listeners import Listener

logger = logging.getLogger(__name__)

RECEIVE_BYTES = 128 * 1024
"""With 16 KiB, produce fell to 0.7x."""

ACCEPTED_PER_TURN = 256
FETCH = FetchRequest.api_key
TOGETHER = 32
"""So many sockets are read before the first of them is answered.  A peer that is woken by one answer then finds more of
them; woken for each, it costs the machine as much as everything we do for a small request.  With 16: 0.94."""

TOGETHER_BYTES = 256 * 1024
"""But no more than this: what takes long to handle must not keep those waiting who have been handled."""

TURN_SECONDS = 0.001
"""How long sockets are served before other tasks have a turn."""

BRISK_SECONDS = 0.001
"""Whoever was answered often has the next request ready at once.  Waiting for it here, while nobody else has anything
to do, spares the way through trio: an eighth more requests/s, and a fifth off the p99 of acknowledgements.  Where
requests come less often than that it would cost a fifth more."""

PATIENCE_SECONDS = 0.005
"""How long other tasks may have to wait meanwhile for a deadline or a thread of theirs: so often the alarm rings.  With
1 ms, half of what it gains is lost again (`alarm.py`); with none at all there would be little more to gain."""

FOREVER, NOT_AT_ALL = -1, 0

SPARE_BUFFERS = 8
SPARE_BYTES = 4 << 20
"""Large frames need buffers of their own; a few of those are kept, warm, for the next."""

SWEEP_SECONDS = 1.0
SIZE_SECONDS = 10.0
"""How long the four bytes of a size may take.  Who needs longer is not a client."""


class Runnable(trio.abc.Instrument):
    """Knows which tasks are to run and have not had their turn."""

    def __init__(self) -> None:
        self.tasks: set[trio.lowlevel.Task] = set()

    def task_scheduled(self, task: trio.lowlevel.Task) -> None:
        self.tasks.add(task)

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.tasks.discard(task)


class Gate:
    def __init__(self, broker: "Broker", nursery: trio.Nursery) -> None:
        self._broker, self._nursery = broker, nursery
        self._epoll = select.epoll()
        self._alarm = Alarm()
        self._epoll.register(self._alarm.fileno(), select.EPOLLIN)
        self._listeners: dict[int, Listener] = {}
        self._connections: dict[int, Connection] = {}
        self._hosts: Counter[str] = Counter()
        """How many of them come from where."""
        self._buffer = bytearray(RECEIVE_BYTES)
        self._view = memoryview(self._buffer)
        self._spare: list[bytearray] = []
        self._now = 0.0
        """When sockets were looked at last."""
        self._taken = 0
        """How many bytes have come from sockets that are not answered yet."""
        self._brisk = False
        """Whether that was so lately that more may come at once."""
        self._stirred = False
        """Whether anything has come since the alarm was set."""
        self._runnable = Runnable()
        self._blocked = 0
        """How many connections wait for a peer that does not read."""
        self._scolded: set[str] = set()

    def add(self, listener: "Listener") -> None:
        for sock in listener.sockets:
            self._listeners[sock.fileno()] = listener
            self._epoll.register(sock.fileno(), select.EPOLLIN)

    @property
    def connections(self) -> int:
        return len(self._connections)

    # -- the loop ------------------------------------------------------------------------------

    async def run(self) -> None:
        """Never ends."""
        trio.lowlevel.add_instrument(self._runnable)
        try:
            await self._serve()
        finally:
            trio.lowlevel.remove_instrument(self._runnable)

    async def _serve(self) -> None:
        connections, poll = self._connections, self._epoll.poll
        while True:
            await trio.lowlevel.wait_readable(self._epoll.fileno())
            begun = trio.current_time()
            self._brisk = begun - self._now < BRISK_SECONDS
            self._now = begun
            while ready := poll(self._patience(), TOGETHER):
                served: list[Connection] = []
                for fd, _ in ready:
                    connection = connections.get(fd)
                    if connection is None:
                        self._hear(fd)
                    elif connection.aside:
                        self._unwatch(connection)
                        if connection.later is not None:
                            self._press(connection)
                    elif self._take(connection):
                        served.append(connection)
                        self._stirred = True
                        if self._taken > TOGETHER_BYTES:
                            self._give(served)
                self._give(served)
                self._now = trio.current_time()
                if self._now - begun > TURN_SECONDS:
                    # Not back to trio's own wait: a request would have to come all the way through it.
                    await trio.lowlevel.checkpoint()
                    begun = trio.current_time()

    def _patience(self) -> int:
        """How long to wait for more here: until the alarm rings, or not at all if others would wait with us."""
        if not self._brisk or self._runnable.tasks or self._blocked or self._broker.upkeep.flushing:
            return NOT_AT_ALL
        if not self._alarm.armed:
            self._alarm.set(PATIENCE_SECONDS)
            self._stirred = False
        return FOREVER

    def _hear(self, fd: int) -> None:
        """The alarm, or a listener."""
        if fd != self._alarm.fileno():
            self._accept(fd)
            return
        self._alarm.hear()
        self._brisk = self._stirred  # if nothing has come for so long, trio may wait for it

    def stop_listening(self) -> None:
        for fd, listener in self._listeners.items():
            self._epoll.unregister(fd)
            for sock in listener.sockets:
                if sock.fileno() == fd:
                    sock.close()
        self._listeners.clear()

    def close(self) -> None:
        for connection in list(self._connections.values()):
            self._close(connection)
        self._epoll.close()
        self._alarm.close()

    async def sweep(self) -> None:
        """Never ends: closes connections that have been silent for too long."""
        while True:
            await trio.sleep(SWEEP_SECONDS)
            now = trio.current_time()
            idle = self._broker.config["connections.max.idle.ms"] / 1000
            for connection in list(self._connections.values()):
                if connection.aside:
                    continue
                silent = now - connection.last_active
                if silent > idle or (0 < connection.tail_size < SIZE.size and silent > SIZE_SECONDS):
                    self._close(connection)

    # -- connections ---------------------------------------------------------------------------

    def _accept(self, fd: int) -> None:
        listener = self._listeners.get(fd)
        if listener is None:
            return  # closed by what came just before it
        server = next(sock for sock in listener.sockets if sock.fileno() == fd)
        for _ in range(ACCEPTED_PER_TURN):
            try:
                sock, came_from = server.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE):
                    logger.error("no more connections: the limit of open files is reached")
                return
            host = plain_host(came_from[0])
            if not self._has_room(host):
                sock.close()
                continue
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                came_in = sock.getsockname()
            except OSError:
                sock.close()  # gone before we could greet
                continue
            local = plain_host(came_in[0]), came_in[1]
            if host == local[0]:
                unpaced(sock)
            connection = Connection(self._broker, sock, Peer(listener.name, host, local))
            connection.last_active = self._now
            self._connections[sock.fileno()] = connection
            self._hosts[connection.peer.host] += 1
            self._watch(connection)

    def _has_room(self, host: str) -> bool:
        """Whether one more connection, from there, is within the limits."""
        config = self._broker.config
        if len(self._connections) >= config["max.connections"]:
            return False
        limit: int = config["max.connections.per.ip"]
        for each in filter(None, config["max.connections.per.ip.overrides"].split(",")):
            whose, _, number = each.rpartition(":")  # the host may be an IPv6 address
            if whose == host and number.isdigit():
                limit = int(number)
        return self._hosts[host] < limit

    def _take(self, connection: Connection) -> bool:
        """Handle what a connection has to say; whether it is still there."""
        try:
            if connection.tail is not None:
                there = self._receive_more(connection, connection.tail)
            else:
                there = self._receive(connection)
            if there:
                connection.last_active = self._now
                return True
            self._close(connection)
        except (MalformedMessage, Hangup, OSError) as error:
            self._drop(connection, error)
        except Exception:
            logger.exception("a bug of ours, met by %s", connection.peer)
            self._close(connection)
        return False

    def _give(self, served: list[Connection]) -> None:
        """Answer those who need not wait for it."""
        for connection in served:
            try:
                if connection.later is not None or not connection.flush():
                    self._set_aside(connection)
            except (Hangup, OSError) as error:
                self._drop(connection, error)
        served.clear()
        self._taken = 0

    def _receive(self, connection: Connection) -> bool:
        """Read once and handle what is complete.  False if the peer has hung up."""
        try:
            size = connection.sock.recv_into(self._buffer)
        except BlockingIOError:
            return True
        if size == 0:
            return False
        self._taken += size
        done = connection.feed(self._view[:size])
        if done < size:
            self._keep(connection, self._view[done:size])
        return True

    def _receive_more(self, connection: Connection, tail: bytearray) -> bool:
        """Go on with a frame that has begun; never beyond its end: what follows it comes into the shared buffer."""
        have = connection.tail_size
        wanted = SIZE.size if have < SIZE.size else SIZE.size + SIZE.unpack_from(tail)[0]
        if wanted > len(tail):
            # Grows with what has arrived, not with what was announced; replaced, because views of it may live on.
            tail = bytearray(min(wanted, 2 * max(have, RECEIVE_BYTES)))
            tail[:have] = connection.tail[:have] if connection.tail else b""
            connection.tail = tail
        with memoryview(tail) as view:
            try:
                size = connection.sock.recv_into(view[have : min(wanted, len(tail))])
            except BlockingIOError:
                return True
        if size == 0:
            return False
        self._taken += size
        connection.tail_size = have + size
        if connection.tail_size >= SIZE.size:
            self._drain(connection)
        return True

    def _drain(self, connection: Connection) -> None:
        """Handle the complete frames among what was kept."""
        tail, size = connection.tail, connection.tail_size
        if tail is None:
            return
        with memoryview(tail) as view, view[:size] as filled:
            done = connection.feed(filled)
        if done == size:
            connection.tail, connection.tail_size = None, 0
            self._recycle(tail)
        elif done:
            tail[: size - done] = tail[done:size]
            connection.tail_size = size - done

    def _keep(self, connection: Connection, rest: memoryview) -> None:
        if self._spare and len(rest) > SIZE.size and len(rest) <= len(self._spare[-1]):
            connection.tail = self._spare.pop()
            connection.tail[: len(rest)] = rest
        else:
            connection.tail = bytearray(rest)
        connection.tail_size = len(rest)

    def _recycle(self, tail: bytearray) -> None:
        if RECEIVE_BYTES <= len(tail) <= SPARE_BYTES and len(self._spare) < SPARE_BUFFERS:
            self._spare.append(tail)

    # -- connections that wait -----------------------------------------------------------------

    def _set_aside(self, connection: Connection) -> None:
        # It stays in the epoll until something comes: mostly it is back before.
        connection.aside = True
        self._nursery.start_soon(self._attend, connection)

    def _press(self, connection: Connection) -> None:
        """More has come from one who waits, or its end.  Unless that is the next fetch, it need not wait for news."""
        if connection.next_key() != FETCH:
            connection.peer.hurry()

    def _watch(self, connection: Connection) -> None:
        if not connection.watched:
            self._epoll.register(connection.sock.fileno(), select.EPOLLIN)
            connection.watched = True

    def _unwatch(self, connection: Connection) -> None:
        """Out of the epoll altogether: with an empty mask it would still go on reporting that the peer hung up."""
        if connection.watched:
            self._epoll.unregister(connection.sock.fileno())
            connection.watched = False

    async def _attend(self, connection: Connection) -> None:
        """Everything that has to be waited for, until the connection can go back to the gate."""
        try:
            while True:
                if connection.later is not None:
                    if connection.tail is not None or not connection.watched:
                        self._press(connection)
                    await connection.finish()
                while not connection.flush():
                    self._blocked += 1
                    try:
                        await trio.lowlevel.wait_writable(connection.sock)
                    finally:
                        self._blocked -= 1
                before = connection.tail_size
                self._drain(connection)
                if connection.later is None and not connection.out and connection.tail_size == before:
                    break
            connection.last_active = trio.current_time()
            connection.aside = False
            self._watch(connection)
        except (MalformedMessage, Hangup, OSError, trio.ClosedResourceError) as error:
            self._drop(connection, error)
        except Exception:
            logger.exception("a bug of ours, met by %s", connection.peer)
            self._close(connection)

    def _drop(self, connection: Connection, error: Exception) -> None:
        """Close, and say why if that helps anybody: once for each kind of trouble, not once for each attempt."""
        if isinstance(error, MalformedMessage | Hangup):
            said = f"{connection.peer}: {error}"
            if said not in self._scolded and len(self._scolded) < 1000:
                self._scolded.add(said)
                logger.warning("closed a connection from %s", printable(said))
        self._close(connection)

    def _close(self, connection: Connection) -> None:
        fd = connection.sock.fileno()
        if fd < 0:
            return
        trio.lowlevel.notify_closing(connection.sock)
        del self._connections[fd]
        self._hosts[connection.peer.host] -= 1
        if not self._hosts[connection.peer.host]:
            del self._hosts[connection.peer.host]
        self._unwatch(connection)
        connection.sock.close()
        if connection.later is not None:
            connection.later.close()
            connection.later = None


def unpaced(sock: socket.socket) -> None:
    """For a peer on this machine: no congestion control that spreads what is sent over time.

    Where BBR is the default, its timers took a third of the CPU that sending to a consumer takes.  Reno is in every
    kernel and has none; between processes of one machine there is no congestion to control.
    """
    if hasattr(socket, "TCP_CONGESTION"):
        with contextlib.suppress(OSError):  # an administrator may have forbidden it
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")


def printable(text: str) -> str:
    """What strangers say does not get to move our terminal's cursor."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
