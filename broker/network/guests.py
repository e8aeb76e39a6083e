"""Who is connected: who is let in, who has been silent for too long, and what is said of those who are shown out.

A guest is a connection with its socket.  Both ways of serving them, `gate.py` and `tasks.py`, keep theirs here.
"""

import contextlib
import errno
import logging
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from math import inf
from typing import Generic, TypeVar

import trio

from trilogue.broker.broker import Broker
from trilogue.broker.network.buffers import Spares
from trilogue.broker.network.connection import Connection
from trilogue.broker.network.listeners import Listener, plain_host
from trilogue.broker.requests.peer import Hangup, Peer
from trilogue.broker.security.sasl.login import Login, Offered
from trilogue.wire.errors import MalformedMessage
from trilogue.wire.frame import SIZE

logger = logging.getLogger(__name__)

ACCEPTED_PER_TURN = 256
SWEEP_SECONDS = 1.0
SIZE_SECONDS = 10.0
"""How long the four bytes of a size may take.  Who needs longer is not a client."""

FULL_SECONDS = 0.2
"""How long nobody is let in when the system has no descriptors left."""

REPORTED_MAX = 1000
"""So many different troubles are named in the log."""
SAID_CHARS = 500
"""Of each so many characters: what strangers call themselves may be long."""

Watched = Callable[[type[Connection]], type[Connection]]


def unwatched(kind: type[Connection]) -> type[Connection]:
    return kind


class NoDescriptors(Exception):
    """Whoever knocks goes on knocking: let some time pass before looking again."""


class Guest:
    __slots__ = ("busy", "connection", "last_active", "sock")

    def __init__(self, sock: socket.socket, connection: Connection, now: float) -> None:
        self.sock, self.connection, self.last_active = sock, connection, now
        self.busy = False
        """We have something to do for it: it is not silent, whatever it says."""


G = TypeVar("G", bound=Guest)


class Guests(Generic[G]):
    """`close` is how one of them is shown out."""

    def __init__(self, broker: Broker, close: Callable[[G], None]) -> None:
        self._broker, self._close = broker, close
        self.watched: Watched = unwatched
        """What is made of each kind of connection; see `serve_with`."""
        self._kinds: dict[type[Connection], None] = {Connection: None}
        """Those that have been welcomed."""
        self._offered: dict[str, Offered] = {}
        """By listener."""
        self.by_fd: dict[int, G] = {}
        self._hosts: Counter[str] = Counter()
        """How many of them come from where."""
        self._reported: set[str] = set()
        self._full = False
        """Nobody could be let in when somebody knocked last."""

    # -- coming --------------------------------------------------------------------------------

    def greet(self, peer: Peer, listener: Listener, spares: Spares) -> Connection:
        """Of the listener's kind."""
        kind = Connection
        if listener.sasl is not None:
            from trilogue.broker.network.authenticating import Authenticating, offered  # nothing for most brokers

            if listener.name not in self._offered:
                self._offered[listener.name] = offered(self._broker, listener.sasl)
            peer.login = Login(self._offered[listener.name])
            self._kinds[Authenticating] = None
            kind = Authenticating
        return self.watched(kind)(self._broker, peer, spares)

    def accept(self, server: socket.socket, listener: Listener) -> Iterator[tuple[socket.socket, Peer]]:
        """Those who knock, as far as there is room for them.  Raises NoDescriptors if the system has none left."""
        for _ in range(ACCEPTED_PER_TURN):
            try:
                sock, came_from = server.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE):
                    raise NoDescriptors from error
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
            yield sock, Peer(listener.name, host, local)

    def _has_room(self, host: str) -> bool:
        """Whether one more connection, from there, is within the limits."""
        config = self._broker.config
        if len(self.by_fd) >= config["max.connections"]:
            return False
        limit: int = config["max.connections.per.ip"]
        for each in filter(None, config["max.connections.per.ip.overrides"].split(",")):
            whose, _, number = each.rpartition(":")  # the host may be an IPv6 address
            if whose == host and number.isdigit():
                limit = int(number)
        return self._hosts[host] < limit

    async def wait_for_descriptors(self) -> None:
        if not self._full:
            logger.error("nobody is let in: the limit of open files is reached")
        self._full = True
        await trio.sleep(FULL_SECONDS)

    def serve_with(self, watched: Watched) -> None:
        """Connections are of kinds made of theirs from here on, those that there are as well.  A kind adds no
        attributes; `unwatched` leaves them as they are."""
        kinds = {self.watched(kind): watched(kind) for kind in self._kinds}
        for guest in self.by_fd.values():
            if (kind := kinds.get(type(guest.connection))) is not None:
                guest.connection.__class__ = kind
        self.watched = watched

    def hang_up(self, which: Callable[[Peer], bool]) -> None:
        """Show these out, without a word."""
        for guest in list(self.by_fd.values()):
            if which(guest.connection.peer):
                self._close(guest)

    def add(self, guest: G) -> None:
        self._full = False
        self.by_fd[guest.sock.fileno()] = guest
        self._hosts[guest.connection.peer.host] += 1

    # -- going ---------------------------------------------------------------------------------

    async def sweep(self) -> None:
        """Never ends: closes connections that have been silent for too long."""
        while True:
            await trio.sleep(SWEEP_SECONDS)
            now = trio.current_time()
            idle_ms = self._broker.config["connections.max.idle.ms"]
            idle = idle_ms / 1000 if idle_ms >= 0 else inf
            for guest in list(self.by_fd.values()):
                if guest.busy or guest.connection.waits:
                    continue
                silent = now - guest.last_active
                if silent > idle or (0 < guest.connection.tail_size < SIZE.size and silent > SIZE_SECONDS):
                    self._close(guest)

    def drop(self, guest: G, error: Exception) -> None:
        """Close, and say why if that helps anybody: once for each kind of trouble, not once for each attempt."""
        if isinstance(error, MalformedMessage | Hangup):
            said = f"{guest.connection.peer}: {error}"[:SAID_CHARS]
            if said not in self._reported and len(self._reported) < REPORTED_MAX:
                self._reported.add(said)
                logger.warning("closed a connection from %s", printable(said))
        self._close(guest)

    def drop_for_bug(self, guest: G) -> None:
        """Called where an exception is handled that nobody has thought of."""
        logger.exception("a bug of ours, met by %s", guest.connection.peer)
        self._close(guest)

    def remove(self, guest: G) -> None:
        """It is leaving: its socket is closed, and nobody waits for it any more."""
        del self.by_fd[guest.sock.fileno()]
        host = guest.connection.peer.host
        self._hosts[host] -= 1
        if not self._hosts[host]:
            del self._hosts[host]
        trio.lowlevel.notify_closing(guest.sock)
        guest.sock.close()
        guest.connection.close()

    def close(self) -> None:
        for guest in list(self.by_fd.values()):
            self._close(guest)


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
