"""A client of ZooKeeper's that is none of our brokers'."""

from collections.abc import Iterator
from contextlib import contextmanager

from kazoo.client import KazooClient

Keeper = KazooClient
"""For whoever is given one."""


@contextmanager
def keeper(address: str) -> Iterator[Keeper]:
    client = KazooClient(address)
    client.start()
    try:
        yield client
    finally:
        client.stop()
        client.close()


def end_session(address: str, session_id: int) -> None:
    """Of somebody else: who comes with its id and password may."""
    double = KazooClient(address, client_id=(session_id, password(session_id)))
    double.start()
    assert double.client_id[0] == session_id
    double.stop()
    double.close()


def password(session_id: int) -> bytes:
    """ZooKeeper's server draws it with Java's Random, from the id and a number of its own."""
    seed, drawn = (session_id ^ 0xB3415C00 ^ 0x5DEECE66D) & ((1 << 48) - 1), b""
    for _ in range(4):
        seed = (seed * 0x5DEECE66D + 0xB) & ((1 << 48) - 1)
        drawn += (seed >> 16).to_bytes(4, "little")
    return drawn
