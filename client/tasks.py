"""The world of trio's tasks: any number of them may share a client, and any of them may be cancelled.

Brokers replicate over this, so it goes to trio only where it has to wait: trio's own streams and locks take a turn of
the loop each time, several for a question and its answer.
"""

import socket
from contextlib import suppress
from math import inf
from typing import Any

import trio

from trilogue.client.errors import CannotConnect, ConnectionLost, TimedOut
from trilogue.client.world import Address, Lock, Wire

RECEIVE_BYTES = 256 * 1024


class Tasks:
    def now(self) -> float:
        return trio.current_time()

    async def pause(self, seconds: float) -> None:
        await trio.sleep(max(0.0, seconds))

    async def dial(self, address: Address, deadline: float) -> Wire:
        try:
            with trio.fail_at(deadline):
                stream = await trio.open_tcp_stream(address.host, address.port)
        except trio.TooSlowError:
            raise CannotConnect(f"nobody answers at {address} in time") from None
        except OSError as error:
            raise CannotConnect(f"nobody answers at {address}: {error.strerror or error}") from None
        return TrioWire(socket.socket(fileno=stream.socket.detach()), address)


class QuickLock:
    """Whoever finds it free has it at once; trio's own would look at tasks and their ends each time."""

    __slots__ = ("_held", "_waiting")

    def __init__(self) -> None:
        self._held = False
        self._waiting = trio.lowlevel.ParkingLot()

    async def __aenter__(self) -> None:
        if self._held:
            await self._waiting.park()  # whoever lets it go hands it over
        self._held = True

    async def __aexit__(self, *_: object) -> None:
        if self._waiting:
            self._waiting.unpark()
        else:
            self._held = False


class TrioWire:
    def __init__(self, sock: socket.socket, address: Address) -> None:
        self._sock, self._address = sock, address
        sock.setblocking(False)
        self.sending: Lock = QuickLock()
        self.receiving: Lock = QuickLock()

    async def send(self, parts: list[Any], deadline: float) -> None:
        left = memoryview(b"".join(parts))
        try:
            while True:
                with suppress(BlockingIOError):
                    left = left[self._sock.send(left) :]
                if not left:
                    return
                with trio.CancelScope(deadline=deadline) as scope:
                    await trio.lowlevel.wait_writable(self._sock)
                if scope.cancelled_caught:
                    raise TimedOut(f"{self._address} takes nothing more")
        except (OSError, trio.ClosedResourceError) as error:
            raise self._lost(error) from None

    async def receive(self, deadline: float) -> bytes:
        try:
            while True:
                if deadline == inf:
                    await trio.lowlevel.wait_readable(self._sock)
                else:
                    with trio.CancelScope(deadline=deadline) as scope:
                        await trio.lowlevel.wait_readable(self._sock)
                    if scope.cancelled_caught:
                        raise TimedOut(f"{self._address} has not answered in time")
                try:
                    return self._sock.recv(RECEIVE_BYTES)
                except BlockingIOError:
                    continue
        except (OSError, trio.ClosedResourceError) as error:
            raise self._lost(error) from None

    def _lost(self, error: Exception) -> ConnectionLost:
        return ConnectionLost(f"{self._address}: {error if isinstance(error, OSError) else 'closed'}")

    def close(self) -> None:
        if self._sock.fileno() >= 0:
            trio.lowlevel.notify_closing(self._sock)
            self._sock.close()
