"""Who is asking."""

from trilogue.broker.security.brokers import Exchange, Identity
from trilogue.broker.security.principals import ANONYMOUS, Principal
from trilogue.broker.security.sasl.login import Login


class Hangup(Exception):
    """The connection is to be closed; the message says why, if there is anything to say."""


class Peer:
    """Whoever is at the other end of a connection.  `version` and `client_id` are those of the request at hand."""

    __slots__ = (
        "broker",
        "client_id",
        "exchange",
        "host",
        "listener",
        "local",
        "login",
        "principal",
        "software_name",
        "software_version",
        "version",
    )

    def __init__(self, listener: str, host: str, local: tuple[str, int]) -> None:
        self.listener, self.host, self.local = listener, host, local
        self.principal: Principal = ANONYMOUS
        self.broker: Identity | None = None
        """Which broker of the cluster it is, if it has proven that."""
        self.exchange: Exchange | None = None
        """By which it is about to, where nobody else is asked who he is."""
        self.login: Login | None = None
        """On a listener with SASL."""
        self.client_id: str | None = None
        self.version = 0
        self.software_name = self.software_version = "unknown"

    def __str__(self) -> str:
        software = "" if self.software_name == "unknown" else f" ({self.software_name} {self.software_version})"
        return f"{self.host}{software}"
