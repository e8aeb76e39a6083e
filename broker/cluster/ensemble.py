"""Where ZooKeeper is, and how it is entered.  Knows nothing of how it is spoken to."""

import re
from dataclasses import dataclass

CHROOT = re.compile(r"(/[^/\s]+)+")
HOST = re.compile(r"(\[[0-9a-fA-F:.%]+\]|[^\s/:\[\],]+)(:(\d{1,5}))?")
DEFAULT_PORT = 2181
PORT_MAX = 65535


@dataclass(frozen=True, slots=True)
class Tls:
    ca: str | None = None
    """PEM files: who is believed, and who we are."""
    certificate: str | None = None
    password: str | None = None
    check_hostname: bool = True


@dataclass(frozen=True, slots=True)
class Ensemble:
    hosts: str
    """host:port, with commas between them."""
    chroot: str = ""
    """The node that everything of ours lies below: "" or /a/path."""
    session_timeout_seconds: float = 18.0
    connection_timeout_seconds: float = 10.0
    digest: str | None = None
    """user:password"""
    tls: Tls | None = None
    set_acl: bool = False
    """Nodes of ours can be changed by us alone."""

    def __str__(self) -> str:
        return f"ZooKeeper at {self.hosts}{self.chroot}"


def parse_connect(text: str) -> tuple[str, str]:
    """`host:port,host:port/chroot` as hosts and chroot.  ValueError says what is wrong."""
    hosts, slash, rest = text.strip().partition("/")
    chroot = f"{slash}{rest}".rstrip("/")
    if chroot and (not CHROOT.fullmatch(chroot) or {".", ".."} & set(chroot.split("/"))):
        raise ValueError(f"{chroot!r} is no path of ZooKeeper's: write HOST:PORT[,HOST:PORT][/PATH]")
    found = []
    for each in hosts.split(","):
        match = HOST.fullmatch(each.strip())
        if not match or int(match[3] or DEFAULT_PORT) > PORT_MAX:
            raise ValueError(f"{each!r} is no address: write HOST:PORT[,HOST:PORT][/PATH]")
        found.append(f"{match[1]}:{match[3] or DEFAULT_PORT}")
    return ",".join(found), chroot
