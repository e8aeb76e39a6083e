"""A way to ZooKeeper that breaks when a commit passes through it: before it has arrived, or before its answer has."""

import struct
from collections.abc import Callable

import trio

MULTI = 14


class Cutter:
    """Listens at `port`.  `verdict` is asked for every commit: None, "before" or "after"."""

    def __init__(self, upstream: int) -> None:
        self._upstream = upstream
        self.port = 0
        self.cuts = 0
        self.verdict: Callable[[], str | None] = lambda: None

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        self.port = listeners[0].socket.getsockname()[1]
        await trio.serve_listeners(self._serve, listeners, task_status=task_status)

    async def _serve(self, client: trio.SocketStream) -> None:
        doomed = trio.Event()
        try:
            async with (
                client,
                await trio.open_tcp_stream("127.0.0.1", self._upstream) as server,
                trio.open_nursery() as n,
            ):
                n.start_soon(self._back, server, client, doomed, n.cancel_scope)
                requests = Frames(client)
                while (frame := await requests.next()) is not None:
                    verdict = self.verdict() if len(frame) > 8 and frame[4:8] == struct.pack(">i", MULTI) else None
                    if verdict is not None:
                        self.cuts += 1
                    if verdict == "before":
                        break
                    if verdict == "after":
                        doomed.set()
                    await server.send_all(struct.pack(">i", len(frame)) + frame)
                n.cancel_scope.cancel()
        except* (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            pass

    async def _back(
        self, server: trio.SocketStream, client: trio.SocketStream, doomed: trio.Event, scope: trio.CancelScope
    ) -> None:
        async for data in server:
            if doomed.is_set():
                break  # it was done, and nobody hears of it
            await client.send_all(data)
        scope.cancel()


class Frames:
    """What a client sends, one request at a time."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream, self._kept = stream, b""

    async def next(self) -> bytes | None:
        while True:
            if len(self._kept) >= 4 and len(self._kept) >= 4 + (size := struct.unpack_from(">i", self._kept)[0]):
                frame, self._kept = self._kept[4 : 4 + size], self._kept[4 + size :]
                return frame
            data = await self._stream.receive_some()
            if not data:
                return None
            self._kept += data
