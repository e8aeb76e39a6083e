"""Stands between clients and a broker, passes everything on, and notes which requests went by.

A client finds its way here only if the broker says that it is here: it is to be started with `advertised`.
"""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

HEAD = struct.Struct(">ihh")
"""How a request begins: its size, which API, which version of it."""
SIZE = 4


class Proxy:
    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._broker: tuple[str, int] | None = None
        self._seen: set[tuple[int, int]] = set()

    @property
    def advertised(self) -> dict[str, str]:
        return {"advertised.listeners": f"PLAINTEXT://{self.address}"}

    def versions(self, api_key: int) -> set[int]:
        """In which versions this API was asked so far."""
        return {version for key, version in set(self._seen) if key == api_key}

    def serve(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self._broker = host, int(port)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        assert self._broker is not None
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # closed
            broker = socket.create_connection(self._broker)
            for each in (client, broker):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._pass_on, args=(client, broker, True), daemon=True).start()
            threading.Thread(target=self._pass_on, args=(broker, client, False), daemon=True).start()

    def _pass_on(self, one: socket.socket, other: socket.socket, are_requests: bool) -> None:
        pending = b""
        with one:
            try:
                while data := one.recv(1 << 16):
                    if are_requests:
                        pending = self._note(pending + data)
                    other.sendall(data)
                other.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # one of them was killed, which is what these tests do

    def _note(self, data: bytes) -> bytes:
        """Note the requests that begin here; what is left of the last one."""
        while len(data) >= HEAD.size:
            size, key, version = HEAD.unpack_from(data)
            self._seen.add((key, version))
            if len(data) < SIZE + size:
                break
            data = data[SIZE + size :]
        return data


@contextmanager
def proxy() -> Iterator[Proxy]:
    made = Proxy()
    try:
        yield made
    finally:
        made.close()
