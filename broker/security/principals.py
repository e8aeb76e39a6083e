"""Who somebody is: Kafka's KafkaPrincipal."""

from typing import NamedTuple, Self

USER = "User"
BROKER = "Broker"
"""One of the cluster, which has proven it.  No word of Kafka's: there brokers are users like others."""


class Principal(NamedTuple):
    """Two of them are equal if kind and name are."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """As ACLs and `super.users` have it.  ValueError if there is no colon, or nothing before or behind it."""
        kind, _, name = text.partition(":")
        if not kind or not name:
            raise ValueError(f"{text!r} is not a principal: write it like User:alice")
        return cls(kind, name)


def user(name: str) -> Principal:
    return Principal(USER, name)


ANONYMOUS = user("ANONYMOUS")
"""Who has not been asked who he is."""
