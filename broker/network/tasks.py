"""A task for each connection: for systems without epoll, and for streams that are more than a socket.

Slower than the gate where many connections ask for little (`docs/performance.md`), and made of nothing but what trio
has on every system.
"""

import socket
from collections import deque
from collections.abc import Callable
from typing import Protocol

import trio

from trilogue.broker.broker import Broker
from trilogue.broker.network.buffers import RECEIVE_BYTES, Spares
from trilogue.broker.network.connection import Connection, Part
from trilogue.broker.network.guests import Guest, Guests, NoDescriptors, Watched
from trilogue.broker.network.listeners import Listener
from trilogue.broker.network.sending import send_some
from trilogue.broker.requests.peer import Hangup, Peer
from trilogue.wire.errors import MalformedMessage


class Channel(Protocol):
    """How bytes come and go."""

    async def receive_into(self, buffer: memoryview) -> int:
        """How many have come; 0 if the peer has hung up.

        No other task runs between their coming and the return, so that many may share a buffer.
        """
        ...

    async def send(self, out: deque[Part]) -> None:
        """Everything."""
        ...


class PlainChannel:
    """A socket that does not block."""

    __slots__ = ("_sock",)

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    async def receive_into(self, buffer: memoryview) -> int:
        while True:
            await readable(self._sock)
            try:
                return self._sock.recv_into(buffer)
            except BlockingIOError:
                continue

    async def send(self, out: deque[Part]) -> None:
        while not send_some(self._sock, out):
            await trio.lowlevel.wait_writable(self._sock)


async def readable(sock: socket.socket) -> None:
    """Trio notices when a socket is closed that is waited for, but not that it was closed before."""
    if sock.fileno() < 0:
        raise trio.ClosedResourceError
    await trio.lowlevel.wait_readable(sock)


class LookAhead:
    """While a connection waits, hears what it is asked for next: what gives way to that is answered at once."""

    def __init__(self, connection: Connection, channel: Channel) -> None:
        self._connection, self._channel = connection, channel
        self._scope = trio.CancelScope()
        self._ended = trio.Event()

    async def run(self) -> None:
        try:
            with self._scope:
                while lacks := self._connection.head_lacks:
                    head = bytearray(lacks)
                    size = await self._channel.receive_into(memoryview(head))
                    if not size:
                        break
                    self._connection.keep(bytes(head[:size]))
                self._connection.look_ahead(b"")
        except (OSError, trio.ClosedResourceError):
            self._connection.look_ahead(b"")  # whoever reads next will hear of it
        finally:
            self._ended.set()

    async def end(self) -> None:
        """From here on somebody else may read."""
        self._scope.cancel()
        await self._ended.wait()


class Tasks:
    def __init__(self, broker: Broker, nursery: trio.Nursery) -> None:
        self._broker, self._nursery = broker, nursery
        self._listeners: list[tuple[socket.socket, Listener]] = []
        self._guests: Guests[Guest] = Guests(broker, self._close)
        self._spares = Spares()
        self._view = memoryview(bytearray(RECEIVE_BYTES))

    def add(self, listener: Listener) -> None:
        self._listeners += ((sock, listener) for sock in listener.sockets)

    async def run(self) -> None:
        for sock, listener in self._listeners:
            self._nursery.start_soon(self._accept, sock, listener)

    async def sweep(self) -> None:
        await self._guests.sweep()

    def serve_with(self, watched: Watched) -> None:
        self._guests.serve_with(watched)

    def hang_up(self, which: Callable[[Peer], bool]) -> None:
        self._guests.hang_up(which)

    def stop_listening(self) -> None:
        for sock, _ in self._listeners:
            trio.lowlevel.notify_closing(sock)
            sock.close()
        self._listeners.clear()
        for guest in list(self._guests.by_fd.values()):
            if not guest.busy:
                self._close(guest)

    def close(self) -> None:
        self._guests.close()

    # -- connections ---------------------------------------------------------------------------

    async def _accept(self, server: socket.socket, listener: Listener) -> None:
        while True:
            try:
                await readable(server)
            except trio.ClosedResourceError:
                return
            try:
                for sock, peer in self._guests.accept(server, listener):
                    self._welcome(sock, peer, listener)
            except NoDescriptors:
                await self._guests.wait_for_descriptors()

    def _welcome(self, sock: socket.socket, peer: Peer, listener: Listener) -> None:
        guest = Guest(sock, self._guests.greet(peer, listener, self._spares), trio.current_time())
        self._guests.add(guest)
        self._nursery.start_soon(self._serve, guest, PlainChannel(sock))

    async def _serve(self, guest: Guest, channel: Channel) -> None:
        connection = guest.connection

        async def finish() -> None:
            await self._finish(connection, channel)

        async def send() -> None:
            await channel.send(connection.out)

        try:
            while not self._broker.stopping and await self._receive(connection, channel):
                guest.busy = True
                await connection.settle(finish, send)
                guest.last_active, guest.busy = trio.current_time(), False
            self._close(guest)  # the peer has hung up, or we stop
        except (MalformedMessage, Hangup, OSError, trio.ClosedResourceError) as error:
            self._guests.drop(guest, error)
        except Exception:
            self._guests.drop_for_bug(guest)

    async def _receive(self, connection: Connection, channel: Channel) -> int:
        """Read once and handle what is complete; 0 if the peer has hung up."""
        if connection.tail is None:
            size = await channel.receive_into(self._view)
            connection.receive(self._view[:size])
        else:
            with connection.room() as room:
                size = await channel.receive_into(room)
            connection.received(size)
        return size

    async def _finish(self, connection: Connection, channel: Channel) -> None:
        if not connection.gives_way:
            await connection.finish()
            return
        ahead = LookAhead(connection, channel)
        self._nursery.start_soon(ahead.run)
        try:
            await connection.finish()
        finally:
            await ahead.end()

    def _close(self, guest: Guest) -> None:
        if guest.sock.fileno() >= 0:
            self._guests.remove(guest)
