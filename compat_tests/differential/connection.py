"""A connection that says whatever it is told to, and hears what comes back."""

import socket
from typing import Any

from trilogue.wire.catalog import responses
from trilogue.wire.frame import HEADER, SIZE, read_response, write_request
from trilogue.wire.schema import Request, Response

PATIENCE_SECONDS = 10.0
"""How long an answer may take.  Nothing that is asked here waits longer than a second."""


class Closed(Exception):
    """The broker has hung up instead of answering."""


class Connection:
    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, PATIENCE_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._number = 0

    def close(self) -> None:
        self._socket.close()

    def ask(
        self,
        request: Request,
        version: int,
        *,
        client_id: str | None = "differential",
        trailing: bytes = b"",
        answered_in: int | None = None,
    ) -> Response:
        """Send, and hear the answer.  `trailing` bytes follow the request within its frame."""
        self.send(request, version, client_id=client_id, trailing=trailing)
        return self.hear(request, version if answered_in is None else answered_in)

    def send(
        self, request: Request, version: int, *, client_id: str | None = "differential", trailing: bytes = b""
    ) -> None:
        self._number += 1
        frame = bytearray(b"".join(map(bytes, write_request(request, version, self._number, client_id))))
        frame += trailing
        SIZE.pack_into(frame, 0, len(frame) - SIZE.size)
        self._say(frame)

    def send_raw(self, key: int, version: int, body: bytes, client_id: bytes = b"differential") -> None:
        """A request whose body, tags of the header included, is what the caller says it is."""
        self._number += 1
        frame = HEADER.pack(key, version, self._number, len(client_id)) + client_id + body
        self._say(SIZE.pack(len(frame)) + frame)

    def hear(self, request: Request, version: int) -> Response:
        frame = self._frame()
        number, answer = read_response(memoryview(frame), responses()[request.api_key], version)
        assert number == self._number, f"answer {number} to question {self._number}"
        return answer

    def hangs_up(self) -> bool:
        """Whether the next thing to come is the end."""
        try:
            return not self._socket.recv(1, socket.MSG_PEEK)
        except ConnectionResetError:
            return True

    def _say(self, frame: Any) -> None:
        try:
            self._socket.sendall(frame)
        except (BrokenPipeError, ConnectionResetError):
            raise Closed from None

    def _frame(self) -> bytes:
        (size,) = SIZE.unpack(self._bytes(SIZE.size))
        return self._bytes(size)

    def _bytes(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            try:
                part = self._socket.recv(size - len(parts))
            except ConnectionResetError:
                raise Closed from None
            if not part:
                raise Closed
            parts += part
        return bytes(parts)
