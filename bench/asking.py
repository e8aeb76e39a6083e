"""A plain socket that asks a broker through `wire`."""

import socket
from typing import Any

from trilogue.wire.catalog import responses
from trilogue.wire.frame import Frames, read_response, write_request
from trilogue.wire.schema import Request

LARGEST_ANSWER = 100 << 20


class Connection:
    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, timeout=30)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._frames = Frames(LARGEST_ANSWER)
        self._ready: list[bytes] = []

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def receive(self) -> bytes:
        while not self._ready:
            data = self._socket.recv(1 << 20)
            if not data:
                raise EOFError("the broker has hung up")
            self._ready += self._frames.feed(data)
        return self._ready.pop(0)

    def ask(self, request: Request, version: int) -> Any:
        self.send(encoded(request, version))
        return self.hear(request.api_key, version)

    def close(self) -> None:
        self._socket.close()

    def hear(self, api_key: int, version: int) -> Any:
        return read_response(memoryview(self.receive()), responses()[api_key], version)[1]


def encoded(request: Request, version: int) -> bytes:
    return b"".join(bytes(part) for part in write_request(request, version, 1, "bench"))
