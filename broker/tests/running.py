"""A broker of ours in this process, and raw bytes for it."""

import contextlib
import socket
import tempfile
import threading
from collections.abc import Iterator

import trio

from trilogue.broker.config import DEVELOPMENT, BrokerConfig
from trilogue.broker.server import Server, serve
from trilogue.wire.frame import Frames, read_response, write_request
from trilogue.wire.schema import Request, Response


@contextlib.contextmanager
def running(**settings: str) -> Iterator[Server]:
    """A broker on a free port, in a thread; settings with underscores for dots."""
    given = {name.replace("_", "."): value for name, value in settings.items()}
    ready = threading.Event()
    box: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder:
        config = BrokerConfig.parse(
            {**DEVELOPMENT, "listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": folder, **given}
        )

        async def main() -> None:
            box["token"] = trio.lowlevel.current_trio_token()
            async with trio.open_nursery() as nursery:
                box["server"] = await nursery.start(serve, config)
                ready.set()

        def thread() -> None:
            try:
                trio.run(main)
            except BaseException as error:
                box["error"] = error
                ready.set()

        worker = threading.Thread(target=thread)
        worker.start()
        ready.wait(20)
        if "error" in box:
            worker.join()
            raise box["error"]
        server = box["server"]
        try:
            yield server
        finally:
            token = box["token"]
            with contextlib.suppress(trio.RunFinishedError):
                token.run_sync_soon(server.stop)
            worker.join(20)
            assert not worker.is_alive(), "the broker does not stop"
            if "error" in box:
                raise box["error"]


class Raw:
    """A client that says exactly what it is told to say."""

    def __init__(self, server: Server) -> None:
        self.sock = socket.create_connection(("127.0.0.1", server.listeners[0].port), timeout=10)
        self._frames = Frames(200 << 20)
        self._ready: list[bytes] = []

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def receive(self) -> bytes:
        """The next frame; b"" if the broker has hung up."""
        while not self._ready:
            try:
                data = self.sock.recv(1 << 20)
            except ConnectionResetError:
                return b""
            if not data:
                return b""
            self._ready += self._frames.feed(data)
        return self._ready.pop(0)

    def ask(self, request: Request, version: int, answer: type[Response], correlation_id: int = 7) -> Response:
        self.send(b"".join(write_request(request, version, correlation_id, "raw")))
        frame = self.receive()
        assert frame, "the broker has hung up"
        number, response = read_response(memoryview(frame), answer, version)
        assert number == correlation_id
        return response

    def close(self) -> None:
        self.sock.close()

    def __enter__(self) -> "Raw":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
