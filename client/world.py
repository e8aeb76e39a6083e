"""What the client needs from its surroundings: the time, a pause, a connection.

`tasks.Tasks` and `blocking.Blocking` are the two there are.  Their functions are `async`; the blocking ones never
suspend.
"""

from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, Protocol

DEFAULT_PORT = 9092


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> "Address":
        """`host`, `host:port` or `[host]:port`.  ValueError for anything else."""
        text = text.strip()
        if text.startswith("["):
            host, bracket, rest = text[1:].partition("]")
            colon, port = rest[:1], rest[1:]
            if not bracket or (rest and colon != ":"):
                raise ValueError(f"{text!r} is not an address: write HOST:PORT")
        elif text.count(":") > 1:
            host, colon, port = text, "", ""
        else:
            host, colon, port = text.partition(":")
        if not host or (colon and not (port.isdecimal() and 0 < int(port) < 65536)):
            raise ValueError(f"{text!r} is not an address: write HOST:PORT")
        return cls(host, int(port) if colon else DEFAULT_PORT)


Lock = AbstractAsyncContextManager[Any, bool | None]


class Wire(Protocol):
    """A connection, as bytes.  Deadlines are in the world's own time."""

    sending: Lock
    receiving: Lock
    """Whoever sends or receives holds these: two at a time would mix their bytes up."""

    async def send(self, parts: list[Any], deadline: float) -> None: ...

    async def receive(self, deadline: float) -> bytes:
        """At least one byte; none says that the other side has hung up.  Raises TimedOut."""
        ...

    def close(self) -> None: ...


class World(Protocol):
    def now(self) -> float:
        """Seconds, from wherever; deadlines are in it."""
        ...

    async def pause(self, seconds: float) -> None: ...

    async def dial(self, address: Address, deadline: float) -> Wire:
        """Raises CannotConnect."""
        ...
