"""The world of a plain socket: one thing at a time, no tasks, no trio.

`run` drives `async` code that never has to suspend, because everything it waits for blocks instead.
"""

import socket
import time
from collections.abc import Coroutine
from contextlib import nullcontext
from typing import Any, TypeVar

from trilogue.client.errors import CannotConnect, ConnectionLost, TimedOut
from trilogue.client.world import Address, Lock, Wire

RECEIVE_BYTES = 256 * 1024

T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    coroutine.close()
    raise RuntimeError("it waits for something that blocking code does not have")


class Blocking:
    def now(self) -> float:
        return time.monotonic()

    async def pause(self, seconds: float) -> None:
        time.sleep(max(0.0, seconds))  # noqa: ASYNC251  # nobody else is running

    async def dial(self, address: Address, deadline: float) -> Wire:
        try:
            sock = socket.create_connection(address, timeout=left(deadline))
        except OSError as error:
            raise CannotConnect(f"nobody answers at {address}: {error.strerror or error}") from None
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return BlockingWire(sock, address)


class BlockingWire:
    def __init__(self, sock: socket.socket, address: Address) -> None:
        self._sock, self._address = sock, address
        self.sending: Lock = nullcontext()
        self.receiving: Lock = nullcontext()

    async def send(self, parts: list[Any], deadline: float) -> None:
        try:
            self._sock.settimeout(left(deadline))
            self._sock.sendall(b"".join(parts))
        except TimeoutError:
            raise TimedOut(f"{self._address} takes nothing more") from None
        except OSError as error:
            raise ConnectionLost(f"{self._address}: {error.strerror}") from None

    async def receive(self, deadline: float) -> bytes:
        try:
            self._sock.settimeout(left(deadline))
            return self._sock.recv(RECEIVE_BYTES)
        except TimeoutError:
            raise TimedOut(f"{self._address} has not answered in time") from None
        except OSError as error:
            raise ConnectionLost(f"{self._address}: {error.strerror}") from None

    def close(self) -> None:
        self._sock.close()


def left(deadline: float) -> float:
    """Until then; a socket takes 0 for "do not wait", so never quite 0."""
    return max(0.001, deadline - time.monotonic())
