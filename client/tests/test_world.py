"""Addresses, and driving `async` code without a loop."""

import pytest

from trilogue.client.blocking import Blocking, run
from trilogue.client.errors import CannotConnect
from trilogue.client.link import connect
from trilogue.client.world import Address


@pytest.mark.parametrize(
    ("text", "address", "shown"),
    [
        ("localhost:9093", ("localhost", 9093), "localhost:9093"),
        (" kafka ", ("kafka", 9092), "kafka:9092"),
        ("[::1]:9093", ("::1", 9093), "[::1]:9093"),
        ("[::1]", ("::1", 9092), "[::1]:9092"),
        ("::1", ("::1", 9092), "[::1]:9092"),
    ],
)
def test_addresses(text, address, shown):
    assert Address.parse(text) == address
    assert str(Address.parse(text)) == shown


@pytest.mark.parametrize("text", ["", ":9092", "host:", "host:abc", "host:0", "host:65536", "[::1", "[::1]9092"])
def test_what_is_not_an_address(text):
    with pytest.raises(ValueError, match="is not an address: write HOST:PORT"):
        Address.parse(text)


def test_run_gives_back_what_the_coroutine_does():
    async def inner():
        return 42

    assert run(inner()) == 42


def test_run_refuses_what_would_have_to_wait():
    class Forever:
        def __await__(self):
            yield

    async def waits():
        await Forever()

    with pytest.raises(RuntimeError, match="waits for something that blocking code does not have"):
        run(waits())


def test_nobody_there():
    with pytest.raises(CannotConnect, match=r"nobody answers at 127\.0\.0\.1:1: Connection refused"):
        run(connect(Blocking(), Address("127.0.0.1", 1)))
