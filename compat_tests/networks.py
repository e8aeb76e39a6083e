"""A network of the tests' own: hosts that are namespaces, joined by a bridge.  Ways between them can be cut, each
direction by itself.

Clients are where the bridge is, and whoever is `inside` it.  A way is cut by telling one host a hardware address of
another that nobody has: what it sends there is lost without a word, as on a broken line.  That asks for iproute2 and
root, and for no firewall.
"""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pytest

CLONE_NEWNET = 0x40000000
NOBODY = "02:00:00:00:00:99"
CLIENTS = "clients"


def ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")


class Network:
    def __init__(self, hosts: Iterable[str]) -> None:
        self._addresses = {name: f"10.99.0.{number}" for number, name in enumerate((CLIENTS, *hosts), 1)}

    def address(self, host: str) -> str:
        return self._addresses[host]

    def namespace(self, host: str) -> str:
        return f"trilogue-{os.getpid()}-{host}"

    def within(self, host: str) -> tuple[str, ...]:
        """What runs a command there."""
        return ("ip", "netns", "exec", self.namespace(host))

    def make(self) -> None:
        for name in self._addresses:
            ip("netns", "add", self.namespace(name))
            ip("-n", self.namespace(name), "link", "set", "lo", "up")
        bridge = self.namespace(CLIENTS)
        ip("-n", bridge, "link", "add", "port", "type", "bridge")
        for name in self._addresses:
            if name != CLIENTS:
                veth = ("type", "veth", "peer", "name", f"to-{name}", "netns", bridge)
                ip("-n", self.namespace(name), "link", "add", "port", *veth)
                ip("-n", bridge, "link", "set", f"to-{name}", "master", "port", "up")
            ip("-n", self.namespace(name), "address", "add", f"{self.address(name)}/24", "dev", "port")
            ip("-n", self.namespace(name), "link", "set", "port", "up")

    def remove(self) -> None:
        for name in self._addresses:
            subprocess.run(["ip", "netns", "delete", self.namespace(name)], capture_output=True)

    @contextmanager
    def inside(self, host: str = CLIENTS) -> Iterator[None]:
        """This thread is there meanwhile, and so is whatever it starts: threads, processes, sockets."""
        here = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        there = os.open(f"/run/netns/{self.namespace(host)}", os.O_RDONLY)
        try:
            enter(there)
            yield
        finally:
            enter(here)
            os.close(there)
            os.close(here)

    @contextmanager
    def cut(self, *ways: tuple[str, str]) -> Iterator[None]:
        """Nothing comes from the first of each pair to the second."""
        try:
            for source, target in ways:
                lost = (self.address(target), "lladdr", NOBODY, "dev", "port", "nud", "permanent")
                ip("-n", self.namespace(source), "neighbour", "replace", *lost)
            yield
        finally:
            for source, target in ways:
                ip("-n", self.namespace(source), "neighbour", "delete", self.address(target), "dev", "port")


def enter(namespace: int) -> None:
    if ctypes.CDLL(None, use_errno=True).setns(namespace, CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def both_ways(one: str, others: Iterable[str]) -> list[tuple[str, str]]:
    return [way for each in others for way in ((one, each), (each, one))]


@contextmanager
def network(hosts: Iterable[str]) -> Iterator[Network]:
    """Skips where there is none to be made."""
    if shutil.which("ip") is None:
        pytest.skip("network namespaces are made with iproute2, which is not here")
    made = Network(hosts)
    try:
        try:
            made.make()
        except OSError as error:
            pytest.skip(f"no network namespaces can be made here: {error}")
        yield made
    finally:
        made.remove()
