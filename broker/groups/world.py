"""What a coordinator looks at without owning it, and who is asking."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from trilogue.broker.cluster.image import Image
from trilogue.broker.config import BrokerConfig


class World(Protocol):
    """The broker around a coordinator.  Tests make their own, and so decide what time it is."""

    @property
    def config(self) -> BrokerConfig: ...

    @property
    def image(self) -> Image: ...

    @property
    def clock(self) -> Callable[[], int]:
        """The wall's, in milliseconds: for what is stored.  Deadlines are told by `now`."""
        ...


class Caller(NamedTuple):
    """Who is asking, and in which version of the API."""

    version: int
    client_id: str = ""
    host: str = ""
