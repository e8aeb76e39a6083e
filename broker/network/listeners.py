"""Where we listen, and what we tell others to connect to."""

import errno
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from trilogue.broker.config import BrokerConfig
from trilogue.broker.config.catalog import without_listener

if TYPE_CHECKING:
    from trilogue.broker.network.sasl import Sasl

PLAINTEXT, SASL_PLAINTEXT = SPOKEN = ("PLAINTEXT", "SASL_PLAINTEXT")

OF_SASL = ("sasl.enabled.mechanisms", "sasl.jaas.config")

BACKLOG = 1024
"""How many may knock at once before we open; the kernel has its own limit too."""


class CannotStart(Exception):
    """What is wrong, where, and what to change: one line for the user."""


class Address(NamedTuple):
    listener: str
    host: str
    port: int


class Listener(NamedTuple):
    name: str
    host: str
    port: int
    """The real one, also where 0 was asked for."""
    sockets: Sequence[socket.socket]
    advertised: Address | None
    """What clients are told; None tells them whatever address they have reached us by."""
    protocol: str = PLAINTEXT
    sasl: "Sasl | None" = None
    """How clients say who they are, if they are asked."""

    @property
    def endpoint(self) -> Address:
        """What other brokers are told."""
        return self.advertised or Address(self.name, self.host or "localhost", self.port)


def parse_addresses(setting: str, text: Sequence[str]) -> list[Address]:
    """`PLAINTEXT://127.0.0.1:9092` and the like; an IPv6 address stands in brackets."""
    found = []
    for each in text:
        name, mark, rest = each.strip().partition("://")
        host, colon, port = rest.rpartition(":")
        if not mark or not colon or not name or not port.lstrip("-").isdigit() or not -1 <= int(port) <= 65535:
            raise CannotStart(f"{setting}={each}: write it like PLAINTEXT://127.0.0.1:9092")
        found.append(Address(name.upper(), host.removeprefix("[").removesuffix("]"), int(port)))
    if len({each.listener for each in found}) != len(found):
        raise CannotStart(f"{setting}: each listener name may stand there once")
    return found


def open_listeners(config: BrokerConfig) -> list[Listener]:
    """Bind everything that `listeners` names.  Nothing is accepted before the gate opens."""
    advertised = {
        each.listener: each for each in parse_addresses("advertised.listeners", config["advertised.listeners"] or [])
    }
    controllers = {name.upper() for name in config["controller.listener.names"] or []}
    opened: list[Listener] = []
    try:
        for wanted in parse_addresses("listeners", config["listeners"]):
            if wanted.listener in controllers:
                continue  # of Kafka's quorum, which we do not have
            protocol = protocol_of(wanted.listener, config)
            sasl = None
            if protocol == SASL_PLAINTEXT:
                from trilogue.broker.network.sasl import sasl_of  # nothing for most brokers

                sasl = sasl_of(config, wanted.listener)
            sockets = bind(wanted)
            port = sockets[0].getsockname()[1]
            told = advertised.pop(wanted.listener, None)
            if told is not None and told.port == 0:
                told = told._replace(port=port)
            opened.append(Listener(wanted.listener, wanted.host, port, sockets, told, protocol, sasl))
        if advertised:
            name = next(iter(advertised))
            raise CannotStart(f"advertised.listeners names {name}, which listeners does not have")
        if not opened:
            raise CannotStart("listeners is empty: nobody could connect")
        if setting := in_vain(config, [each.name.lower() for each in opened if each.sasl]):
            raise CannotStart(
                f"{setting} is set, and no such listener asks who clients are: let it speak {SASL_PLAINTEXT}"
            )
    except BaseException:
        close_listeners(opened)
        raise
    return opened


def protocol_of(listener: str, config: BrokerConfig) -> str:
    """Refuses what we do not speak: who asks for TLS must not be given plain text."""
    setting = "listener.security.protocol.map"
    pairs = (each.strip().upper().partition(":") for each in config[setting].split(","))
    protocol = {name: protocol for name, _, protocol in pairs}.get(listener)
    if protocol is None:
        raise CannotStart(f"listeners names {listener}, and {setting} does not say what it speaks")
    if protocol not in SPOKEN:
        raise CannotStart(
            f"listener {listener} is to speak {protocol}, and we only speak {' and '.join(SPOKEN)} (KNOWN_GAPS.md)"
        )
    return str(protocol)


def in_vain(config: BrokerConfig, asking: Sequence[str]) -> str | None:
    """The first setting of SASL that is for nobody; `asking` are the listeners that ask who clients are."""
    for name in config.static:
        plain = without_listener(name)
        if (plain in OF_SASL and name.split(".")[2] not in asking) or (name in OF_SASL and not asking):
            return name
    return None


def close_listeners(listeners: Sequence[Listener]) -> None:
    for listener in listeners:
        for sock in listener.sockets:
            sock.close()


def plain_host(host: str) -> str:
    """An address of IPv4 as such, also where a socket of both kinds shows it in the clothes of IPv6.

    Clients without IPv6 are told it: as ::ffff:10.0.0.1 they could not go there.
    """
    return host.removeprefix("::ffff:") if "." in host else host


def bind(address: Address) -> list[socket.socket]:
    """One socket for each address that the host has; no host is every address, old and new."""
    if address.host == "":
        try:
            return [listen(socket.AF_INET6, ("::", address.port), both=True)]
        except OSError:
            return [listen(socket.AF_INET, ("0.0.0.0", address.port))]
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as error:
        raise CannotStart(f"cannot listen on {address.host}: {error.strerror}") from None
    sockets: list[socket.socket] = []
    port = address.port
    try:
        for family, _, _, _, where in dict.fromkeys(found):
            sock = listen(family, (where[0], port))
            port = sock.getsockname()[1]  # with port 0, all addresses share what the first was given
            sockets.append(sock)
    except OSError as error:
        for sock in sockets:
            sock.close()
        problem = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used ({error.strerror})"
        raise CannotStart(
            f"port {address.port} on {address.host} {problem}: stop what listens there, or choose another with --listen"
        ) from None
    return sockets


def listen(family: int, where: tuple[str | int, int], *, both: bool = False) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        # Windows means by the one option what others mean by the other: that nobody else may have the port.
        exclusive: int | None = getattr(socket, "SO_EXCLUSIVEADDRUSE", None)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR if exclusive is None else exclusive, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if both else 1)
        sock.setblocking(False)
        sock.bind(where)
        sock.listen(BACKLOG)
    except BaseException:
        sock.close()
        raise
    return sock
