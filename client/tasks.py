"""The world of trio's tasks: any number of them may share a client, and any of them may be cancelled."""

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
                return TrioWire(await trio.open_tcp_stream(address.host, address.port), address)
        except trio.TooSlowError:
            raise CannotConnect(f"nobody answers at {address} in time") from None
        except OSError as error:
            raise CannotConnect(f"nobody answers at {address}: {error.strerror or error}") from None


class TrioWire:
    def __init__(self, stream: trio.SocketStream, address: Address) -> None:
        self._stream, self._address = stream, address
        self.sending: Lock = trio.Lock()
        self.receiving: Lock = trio.Lock()

    async def send(self, parts: list[Any], deadline: float) -> None:
        try:
            with trio.fail_at(deadline):
                await self._stream.send_all(b"".join(parts))
        except trio.TooSlowError:
            raise TimedOut(f"{self._address} takes nothing more") from None
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise ConnectionLost(f"{self._address}: {error.__cause__ or 'closed'}") from None

    async def receive(self, deadline: float) -> bytes:
        try:
            with trio.fail_at(deadline):
                return bytes(await self._stream.receive_some(RECEIVE_BYTES))
        except trio.TooSlowError:
            raise TimedOut(f"{self._address} has not answered in time") from None
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise ConnectionLost(f"{self._address}: {error.__cause__ or 'closed'}") from None

    def close(self) -> None:
        self._stream.socket.close()
