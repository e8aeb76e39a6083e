"""Who is asking."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trilogue.broker.partitions.partition import Bell


class Peer:
    """Who is asking: handlers look here.  `version` and `client_id` are those of the request at hand."""

    __slots__ = (
        "bell",
        "client_id",
        "host",
        "impatient",
        "listener",
        "local",
        "principal",
        "software_name",
        "software_version",
        "version",
    )

    def __init__(self, listener: str, host: str, local: tuple[str, int]) -> None:
        self.listener, self.host, self.local = listener, host, local
        self.principal = "User:ANONYMOUS"
        self.client_id: str | None = None
        self.version = 0
        self.software_name = self.software_version = "unknown"
        self.impatient = False
        """Has asked for something else while it waits for news: then it hears that there is none, and is answered."""
        self.bell: Bell | None = None
        """What it is woken by, if it waits for news."""

    def hurry(self) -> None:
        self.impatient = True
        if self.bell is not None:
            self.bell.ring()

    def __str__(self) -> str:
        software = "" if self.software_name == "unknown" else f" ({self.software_name} {self.software_version})"
        return f"{self.host}{software}"


class Hangup(Exception):
    """The connection is to be closed; the message says why, if there is anything to say."""
